# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A tree whose sums may be sealed without all workers (docs/reference/protocol.md, section 3.7), as a transition
relation for `checker.check`.

The network is that of `network.py`: the set of all messages since it last lost everything. A worker that lacks a result
may say at any time that its deadline is over, so the clock is left out: every chunk also goes with SEAL. `dead` workers
never send. A ghost keeps what the root sealed first; no worker may ever take anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from tests.model.network import Messages, Tree, Violation, in_window, put

_DIGIT = 2  # bits for one contribution in a total: a second copy is told apart


class Slot(NamedTuple):
    """`tag`: the chunk and one, 0 in a slot never used. `bitmap`: a bit for each sender that is in."""

    tag: int = 0
    bitmap: int = 0
    count: int = 0
    total: int = 0
    asked: bool = False
    sealed: bool = False


class Packet(NamedTuple):
    """A packet, as far as a node looks at it. `bit`: the sender's at this node."""

    tag: int
    bit: int
    count: int
    value: int
    seal: bool


class Does(Enum):
    NOTHING = "accumulated, duplicate"
    SENT = "the sum is sent, up or to all"
    RESENT = "the sum is resent, up or to the sender"
    FORWARDED = "the packet is forwarded unchanged to the parent"
    LATE = "the sealed sum is sent to the late sender"
    SLOT_REUSED = "the sender is notified that the slot was reused"


class Rules:
    """Rules of a node. A mutant overrides one of these."""

    def finished(self, slot: Slot, children: int, least: int) -> bool:
        """`children`: the bits of the node's own children, `least` the quorum, 0 at an inner node."""
        return slot.count >= least if slot.asked else slot.bitmap & children == children

    def step(self, slot: Slot, packet: Packet, children: int, least: int, root: bool) -> tuple[Slot, Does]:
        if packet.tag < slot.tag:
            return slot, self.stale(root)
        held = slot if packet.tag == slot.tag else Slot(packet.tag)
        mine = bool(held.bitmap & packet.bit)
        if held.sealed and not mine:
            return self.late(held, packet, root)
        after = held._replace(asked=self.asks(held, packet))
        if not mine:
            after = self.add(after, packet)
        if held.sealed:
            return after, Does.RESENT
        if not self.finished(after, children, least):
            return after, Does.NOTHING
        return after._replace(sealed=True), Does.SENT

    def asks(self, held: Slot, packet: Packet) -> bool:
        return held.asked or packet.seal

    def add(self, slot: Slot, packet: Packet) -> Slot:
        return slot._replace(
            bitmap=slot.bitmap | packet.bit, count=slot.count + packet.count, total=slot.total + packet.value
        )

    def stale(self, root: bool) -> Does:
        return Does.SLOT_REUSED if root else Does.FORWARDED

    def late(self, held: Slot, packet: Packet, root: bool) -> tuple[Slot, Does]:
        return held, Does.LATE if root else Does.FORWARDED

    def climbs(self, slot: Slot) -> bool:
        """Whether a sum that goes up says that a deadline is over."""
        return slot.asked

    def leaves(self, slot_reused: bool) -> bool:
        """Whether a worker that gets an answer for a chunk it awaits leaves the epoch; else it takes a result."""
        return slot_reused


PROTOCOL = Rules()


class Message(NamedTuple):
    """To a node, from a part of the tree; or to a worker (`result`), which may notify it of `slot_reused`."""

    to: int
    sender: int
    chunk: int
    count: int
    value: int
    seal: bool
    result: bool = False
    slot_reused: bool = False


class State(NamedTuple):
    """`workers`: chunks received, a bit each, -1: it left. `sealed`: by chunk what the root sealed, 0: nothing."""

    slots: tuple[Slot, ...]
    workers: tuple[int, ...]
    sealed: tuple[tuple[int, int], ...]
    net: int


@dataclass(frozen=True)
class QuorumSystem:
    """`least`: the quorum. `deadlines`: whether any is ever over. `passing`: a root knows those below its inner
    nodes by bits of their own."""

    tree: Tree
    least: int
    slots: int
    chunks: int
    rules: Rules = PROTOCOL
    deadlines: bool = True
    dead: frozenset[int] = frozenset()
    passing: bool = True

    @cached_property
    def _messages(self) -> Messages[Message]:
        return Messages()

    @cached_property
    def workers(self) -> int:
        return len(self.tree.parents) - self.tree.nodes

    @cached_property
    def _bits(self) -> list[dict[int, int]]:
        """By node the bit of each sender that it adds up: its children, and at the root all workers."""
        found = []
        for node in range(self.tree.nodes):
            senders = self.tree.children(node)
            if node == 0:
                senders += [part for part in range(1, len(self.tree.parents)) if part not in senders]
            found.append({sender: 1 << bit for bit, sender in enumerate(senders)})
        if not self.passing:
            for worker in range(self.tree.nodes, len(self.tree.parents)):
                above = worker
                while self.tree.parents[above]:
                    above = self.tree.parents[above]
                found[0][worker] = found[0][above]
        return found

    def start(self) -> State:
        nothing = (Slot(),) * (self.slots * self.tree.nodes)
        workers = tuple(-1 if worker in self.dead else 0 for worker in range(self.workers))
        return self._resend(State(nothing, workers, ((0, 0),) * self.chunks, 0))

    def finished(self, state: State) -> bool:
        everything = (1 << self.chunks) - 1
        return all(got in (-1, everything) for got in state.workers)

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for _, message in self._messages.within(state.net):
            after = self._to_worker(state, message) if message.result else self._to_node(state, message)
            if after != state:
                yield f"deliver {message}", self._pruned(after)
        yield "lose all", self._resend(state._replace(net=0))

    def _pruned(self, state: State) -> State:
        """Without messages that can do nothing any more: results of what all they go to have, and contributions to a
        slot that holds a newer chunk, to a chunk that no worker lacks."""
        useless = 0
        for bit, message in self._messages.within(state.net):
            if message.result:
                got = state.workers[message.to]
                if got < 0 or got >> message.chunk & 1:
                    useless |= bit
            elif all(got < 0 or got >> message.chunk & 1 for got in state.workers):
                slot = message.chunk % self.slots
                if all(
                    state.slots[node * self.slots + slot].tag > message.chunk
                    for node in range(self.tree.nodes)
                ):
                    useless |= bit
        return state._replace(net=state.net & ~useless) if useless else state

    def _resend(self, state: State) -> State:
        """Every worker sends what the window rule allows, with and without SEAL."""
        net = state.net
        for worker, received in enumerate(state.workers):
            if received < 0:
                continue
            part = self.tree.nodes + worker
            for chunk in self._awaited(received):
                for seal in (False, True) if self.deadlines else (False,):
                    value = 1 << _DIGIT * (worker + self.workers * chunk)
                    net |= self._messages.bit(Message(self.tree.parents[part], part, chunk, 1, value, seal))
        return state if net == state.net else state._replace(net=net)

    def _awaited(self, received: int) -> list[int]:
        return in_window(received, self.chunks, self.slots // 2)

    def _to_node(self, state: State, message: Message) -> State:
        node, root = message.to, message.to == 0
        index = node * self.slots + message.chunk % self.slots
        bits = self._bits[node]
        if message.sender not in bits:  # one that an inner node passes on whatever it holds
            return self._sent(state, message._replace(to=self.tree.parents[node]))
        own = sum(bits[child] for child in self.tree.children(node))
        packet = Packet(message.chunk + 1, bits[message.sender], message.count, message.value, message.seal)
        after, does = self.rules.step(state.slots[index], packet, own, self.least if root else 0, root)
        state = state._replace(slots=put(state.slots, index, after))
        match does:
            case Does.FORWARDED:
                return self._sent(state, message._replace(to=self.tree.parents[node]))
            case Does.SLOT_REUSED:
                return self._down(state, message, after, message.sender, slot_reused=True)
            case Does.LATE:
                return self._down(state, message, after, message.sender)
            case Does.SENT | Does.RESENT if not root:
                up = Message(
                    self.tree.parents[node],
                    node,
                    message.chunk,
                    after.count,
                    after.total,
                    self.rules.climbs(after),
                )
                return self._sent(state, up)
            case Does.SENT:
                return self._down(self._seal(state, message.chunk, after), message, after, 0)
            case Does.RESENT:
                return self._down(state, message, after, message.sender)
        return state

    def _seal(self, state: State, chunk: int, slot: Slot) -> State:
        """I1: a worker is in once, and counted. Q: they are enough, or all. I3: nothing else was sealed before."""
        digits = [
            slot.total >> _DIGIT * (w + self.workers * chunk) & (1 << _DIGIT) - 1 for w in range(self.workers)
        ]
        if max(digits) > 1 or slot.total != sum(
            d << _DIGIT * (w + self.workers * chunk) for w, d in enumerate(digits)
        ):
            raise Violation("I1", f"chunk {chunk} is sealed as {slot}")
        if sum(digits) != slot.count:
            raise Violation("count", f"chunk {chunk} is sealed as {slot}")
        if slot.count < self.least:
            raise Violation("quorum", f"chunk {chunk} is sealed as {slot}")
        if state.sealed[chunk] not in ((0, 0), (slot.total, slot.count)):
            raise Violation("I3", f"chunk {chunk} is sealed as {slot}, and was as {state.sealed[chunk]}")
        return state._replace(sealed=put(state.sealed, chunk, (slot.total, slot.count)))

    def _down(self, state: State, message: Message, slot: Slot, to: int, slot_reused: bool = False) -> State:
        """To all workers below the child that asks (all of its own switch's, as multicast), or the root."""
        child = to
        while child and self.tree.parents[child]:
            child = self.tree.parents[child]
        net = state.net
        for worker in self.tree.workers_below(child):
            net |= self._messages.bit(
                Message(worker, 0, message.chunk, slot.count, slot.total, False, True, slot_reused)
            )
        return state._replace(net=net)

    def _sent(self, state: State, message: Message) -> State:
        return state._replace(net=state.net | self._messages.bit(message))

    def _to_worker(self, state: State, message: Message) -> State:
        received = state.workers[message.to]
        if received < 0 or message.chunk not in self._awaited(received):
            return state
        if self.rules.leaves(message.slot_reused):
            if not self.deadlines:
                raise Violation(
                    "slot_reused", f"worker {message.to} has to leave though no deadline was over"
                )
            return state._replace(workers=put(state.workers, message.to, -1))
        if (message.value, message.count) != state.sealed[message.chunk]:
            raise Violation("I3", f"worker {message.to} took {message} of {state.sealed[message.chunk]}")
        after = put(state.workers, message.to, received | 1 << message.chunk)
        return self._resend(state._replace(workers=after))


class DropsLate(Rules):
    """An inner node drops what comes after its sum went."""

    def late(self, held: Slot, packet: Packet, root: bool) -> tuple[Slot, Does]:
        return held, Does.LATE if root else Does.NOTHING


class AddsLate(Rules):
    """A sealed sum goes on growing."""

    def late(self, held: Slot, packet: Packet, root: bool) -> tuple[Slot, Does]:
        return self.add(held, packet), Does.RESENT


class SealsBelowQuorum(Rules):
    """A deadline is enough."""

    def finished(self, slot: Slot, children: int, least: int) -> bool:
        return slot.asked or super().finished(slot, children, least)


class WaitsForAll(Rules):
    """A deadline changes nothing at the root."""

    def finished(self, slot: Slot, children: int, least: int) -> bool:
        return super().finished(slot._replace(asked=slot.asked and not least), children, least)


class SealsWhenChildrenAreIn(Rules):
    """A root takes its children for all workers, though an inner node may have sealed."""

    def finished(self, slot: Slot, children: int, least: int) -> bool:
        return slot.bitmap & children == children or super().finished(slot, children, least)


class CountsPackets(Rules):
    """A child counts as one, however many it speaks for."""

    def add(self, slot: Slot, packet: Packet) -> Slot:
        return super().add(slot, packet._replace(count=1))


class CountsRepeats(Rules):
    """A worker whose deadline is over counts once more."""

    def asks(self, held: Slot, packet: Packet) -> bool:
        return super().asks(held, packet)

    def step(self, slot: Slot, packet: Packet, children: int, least: int, root: bool) -> tuple[Slot, Does]:
        after, does = super().step(slot, packet, children, least, root)
        if packet.seal and slot.tag == packet.tag and slot.bitmap & packet.bit and not slot.sealed:
            after = after._replace(count=after.count + 1)
        return after, does


class LateUntold(Rules):
    """A root drops what is late."""

    def late(self, held: Slot, packet: Packet, root: bool) -> tuple[Slot, Does]:
        return held, Does.NOTHING if root else Does.FORWARDED


class SlotReusedUntold(Rules):
    """A root drops what is stale."""

    def stale(self, root: bool) -> Does:
        return Does.NOTHING if root else Does.FORWARDED


class InnerDropsStale(Rules):
    """An inner node drops what is stale, as it does in trees without a quorum."""

    def stale(self, root: bool) -> Does:
        return Does.SLOT_REUSED if root else Does.NOTHING


class SumForgetsDeadline(Rules):
    """An inner node whose children are all in does not say that their deadline is over."""

    def climbs(self, slot: Slot) -> bool:
        return False


class ForgetsDeadlineOnceSealed(Rules):
    """A deadline that is over after a sum went is not told to the parent."""

    def asks(self, held: Slot, packet: Packet) -> bool:
        return held.asked or (packet.seal and not held.sealed)


class PassesWhatIsIn(Rules):
    """An inner node passes on whatever comes after its sum went."""

    def step(self, slot: Slot, packet: Packet, children: int, least: int, root: bool) -> tuple[Slot, Does]:
        if not root and slot.sealed and slot.tag == packet.tag:
            return slot, Does.FORWARDED
        return super().step(slot, packet, children, least, root)


class WorkerTakesSlotReused(Rules):
    """A worker takes the notice that its slot was reused for a result."""

    def leaves(self, slot_reused: bool) -> bool:
        return False
