# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The whole system around the slot machine, as a transition relation: a tree of nodes, workers with a window,
and a network that loses, repeats and reorders.

**The network is the set of all messages sent since it last lost everything.** A message in it may be
delivered at any time, any number of times, or never: that is every reordering, every number of duplicates and
every loss of single messages at once, and the set is finite because the messages are. A step of its own
empties it (all packets in flight are lost), so that nothing can rely on an old copy.

Workers may repeat what is in their window at any time. Since the set only grows between two such losses,
sending early only adds choices; so `_resend` adds all that the workers may send after every step.

A life is one installation of the tree. With two lives, every node and every worker moves from the first to
the second at a moment of its own, with packets of the first still in flight and its slots as they were left.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from tests.model.machine import EMPTY, PROTOCOL, Life, Machine, Reply, Slot, Step

OVERFLOW, CONGESTION = 2, 1
_DIGIT = 3  # bits for one contribution in a total: up to seven copies are told apart
T = TypeVar("T")


class Messages(Generic[T]):
    """Numbers messages as they appear, so that a set of them is the bits of their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self._messages: list[T] = []

    def bit(self, message: T) -> int:
        number = self._numbers.get(message)
        if number is None:
            number = self._numbers[message] = len(self._messages)
            self._messages.append(message)
        return 1 << number

    def within(self, net: int) -> Iterator[tuple[int, T]]:
        """The messages of a set, with their bits."""
        while net:
            low = net & -net
            net ^= low
            yield low, self._messages[low.bit_length() - 1]


class Violation(AssertionError):
    """An invariant that does not hold; `name` is its number in docs/reference/protocol.md, section 8, or "progress"."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name
        self.what = message


class Message(NamedTuple):
    """A gradient to a node (`to` is its number, `bit` the sender's) or a result to a worker (`bit` is 0)."""

    to: int
    bit: int
    life: int
    chunk: int
    marks: int
    value: int  # of a targeted chunk: 0 in a short packet
    is_short: bool = False  # it has no lanes


class State(NamedTuple):
    """`nodes`: life of each node; `slots`: of all nodes, A after A; `workers`: life and chunks received (a
    bit each); `net`: the messages in flight, as bits of their numbers in the system."""

    nodes: tuple[int, ...]
    slots: tuple[Slot, ...]
    workers: tuple[tuple[int, int], ...]
    net: int


@dataclass(frozen=True)
class Tree:
    """`parents[i]` is the parent of part i: the nodes come first (0 is the root, its own entry unused), then
    the workers."""

    nodes: int
    parents: tuple[int, ...]

    def children(self, node: int) -> list[int]:
        return [part for part in range(1, len(self.parents)) if self.parents[part] == node]

    def workers_below(self, part: int) -> list[int]:
        """Numbers of workers, from 0."""
        if part >= self.nodes:
            return [part - self.nodes]
        return [worker for child in self.children(part) for worker in self.workers_below(child)]


def flat(workers: int) -> Tree:
    return Tree(1, (0,) + (0,) * workers)


def two_levels(*workers: int, direct: int = 0) -> Tree:
    """A root over inner nodes with so many workers each, and `direct` workers of its own."""
    inner = len(workers)
    leaves = tuple(node for node, count in enumerate(workers, 1) for _ in range(count))
    return Tree(1 + inner, (0,) + (0,) * inner + leaves + (0,) * direct)


@dataclass(frozen=True)
class System:
    tree: Tree
    window: int
    slots: int
    chunks: int
    machine: Machine = PROTOCOL
    lives: tuple[Life, ...] = (Life(1, 1),)
    marking: bool = False  # the network may mark congestion
    overflowing: frozenset[tuple[int, int]] = frozenset()  # (worker, chunk) that carry the overflow flag

    @cached_property
    def _messages(self) -> Messages[Message]:
        return Messages()

    @cached_property
    def _children(self) -> list[list[int]]:
        return [self.tree.children(node) for node in range(self.tree.nodes)]

    @cached_property
    def _bit(self) -> list[int]:
        """The bit of each part at its parent."""
        return [0] + [
            1 << self._children[parent].index(part) for part, parent in enumerate(self.tree.parents) if part
        ]

    @cached_property
    def worker_count(self) -> int:
        return len(self.tree.parents) - self.tree.nodes

    @cached_property
    def _expected(self) -> dict[tuple[int, int, int, int], tuple[int, int]]:
        """Total and marks, without the network's, of (node, children seen, life, chunk)."""
        table = {}
        for node, children in enumerate(self._children):
            for seen in range(1 << len(children)):
                below = [
                    w for i, c in enumerate(children) if seen >> i & 1 for w in self.tree.workers_below(c)
                ]
                for life in range(len(self.lives)):
                    for chunk in range(self.chunks):
                        total = sum(self._value(w, life, chunk) for w in below)
                        marks = functools.reduce(operator.or_, (self._marks(w, chunk) for w in below), 0)
                        table[node, seen, life, chunk] = (total, marks)
        return table

    def _value(self, worker: int, life: int, chunk: int) -> int:
        return 1 << _DIGIT * (worker + self.worker_count * (chunk + self.chunks * life))

    def _marks(self, worker: int, chunk: int) -> int:
        """The sticky marks of a worker's contribution."""
        return OVERFLOW if (worker, chunk) in self.overflowing else 0

    def start(self) -> State:
        slots = (EMPTY,) * (self.slots * self.tree.nodes)
        return self._resend(State((0,) * self.tree.nodes, slots, ((0, 0),) * self.worker_count, 0))

    def finished(self, state: State) -> bool:
        everything = (len(self.lives) - 1, (1 << self.chunks) - 1)
        return all(worker == everything for worker in state.workers)

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield all steps that change something. Raises Violation if one breaks an invariant."""
        for _, message in self._messages.within(state.net):
            after = self._deliver(state, message)
            if after is not state:
                yield f"deliver {message}", after
        yield "lose all", self._resend(state._replace(net=0))
        for node, life in enumerate(state.nodes):
            if life + 1 < len(self.lives):
                yield f"reinstall node {node}", state._replace(nodes=put(state.nodes, node, life + 1))
        for worker, (life, _) in enumerate(state.workers):
            if life + 1 < len(self.lives):
                restarted = state._replace(workers=put(state.workers, worker, (life + 1, 0)))
                yield f"restart worker {worker}", self._resend(restarted)

    def _resend(self, state: State) -> State:
        """Every worker sends what its window allows."""
        net = state.net
        for worker, (life, received) in enumerate(state.workers):
            net |= self._sendable(worker, life, received)
        return state if net == state.net else state._replace(net=net)

    @cached_property
    def _sendable_cache(self) -> dict[tuple[int, int, int], int]:
        return {}

    def _sendable(self, worker: int, life: int, received: int) -> int:
        key = worker, life, received
        known = self._sendable_cache.get(key)
        if known is None:
            known = 0
            for chunk in in_window(received, self.chunks, self.window):
                for congestion in (0, CONGESTION) if self.marking else (0,):
                    for form in self._contributions(worker, life, chunk):
                        marked = form._replace(marks=form.marks | congestion)
                        known |= self._messages.bit(marked)
            self._sendable_cache[key] = known
        return known

    def _contributions(self, worker: int, life: int, chunk: int) -> Iterator[Message]:
        """The packets that a worker sends of a chunk; a rule that is left out makes it send several."""
        part = self.tree.nodes + worker
        marks, value = self._marks(worker, chunk), self._value(worker, life, chunk)
        yield Message(self.tree.parents[part], self._bit[part], life, chunk, marks, value)

    def _deliver(self, state: State, message: Message) -> State:
        return self._to_worker(state, message) if message.bit == 0 else self._to_node(state, message)

    def _to_node(self, state: State, message: Message) -> State:
        node, life = message.to, self.lives[message.life]
        here = self.lives[state.nodes[node]]
        if not self.machine.admits(here, life):
            return state
        round_, place = divmod(message.chunk, self.slots)
        index = node * self.slots + place
        before, children = state.slots[index], self._children[node]
        tag = self.machine.tag(life.epoch, round_)
        full = (1 << len(children)) - 1
        after, step = self._step(before, tag, message, full)
        net = state.net
        reply = self.machine.reply(node == 0, step)
        if reply is not Reply.NOTHING:
            net |= self._replies(node, message, after, reply)
        if after == before:
            return state if net == state.net else state._replace(net=net)
        if life != here:
            raise Violation("I4", f"{message} of {life} changed a slot of {here}: {before} -> {after}")
        self._check_slot(node, message, after)
        return state._replace(slots=put(state.slots, index, after), net=net)

    def _step(self, slot: Slot, tag: int, message: Message, full: int) -> tuple[Slot, Step]:
        return self.machine.step(slot, tag, message.bit, message.marks, message.value, full)

    def _check_slot(self, node: int, message: Message, slot: Slot) -> None:
        expected = self._expected.get((node, slot.seen, message.life, message.chunk))
        if expected is None or (slot.total, slot.marks & ~CONGESTION) != expected:
            raise Violation("I1", f"node {node} holds {slot} after {message}; right would be {expected}")

    def _replies(self, node: int, message: Message, slot: Slot, reply: Reply) -> int:
        if reply is Reply.SUM_UP:
            up = message._replace(
                to=self.tree.parents[node], bit=self._bit[node], marks=slot.marks, value=slot.total
            )
            return self._messages.bit(up)
        asking = self._children[node][message.bit.bit_length() - 1]
        bits = 0
        for worker in self.tree.workers_below(node if reply is Reply.RESULT_TO_ALL else asking):
            down = message._replace(to=worker, bit=0, marks=slot.marks, value=slot.total)
            bits |= self._messages.bit(down)
        return bits

    def _to_worker(self, state: State, message: Message) -> State:
        life, received = state.workers[message.to]
        if not self.machine.takes(self.lives[life], self.lives[message.life]):
            return state
        if message.chunk not in in_window(received, self.chunks, self.window):
            return state
        if not self._takes(message):
            return state
        full = (1 << len(self._children[0])) - 1
        if not self._is_sum(message, *self._expected[0, full, life, message.chunk]):
            raise Violation("I2", f"worker {message.to} took {message}, which is not the sum of all")
        workers = put(state.workers, message.to, (life, received | 1 << message.chunk))
        return self._resend(state._replace(workers=workers))

    def _takes(self, result: Message) -> bool:
        """Return whether a worker takes a result of a chunk that it awaits."""
        return True

    def _is_sum(self, result: Message, total: int, marks: int) -> bool:
        return (result.value, result.marks & ~CONGESTION) == (total, marks)


def in_window(received: int, chunks: int, window: int) -> list[int]:
    """The chunks a worker may send: those it lacks, whose predecessor by one window it has."""
    return [
        chunk
        for chunk in range(chunks)
        if not received >> chunk & 1 and (chunk < window or received >> chunk - window & 1)
    ]


def put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
