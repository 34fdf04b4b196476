# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE at a leaf (docs/reference/roce.md): workers in a ring over one node, each with a go-back-N connection
to the next one through it.

The network is what it is in `network.py`: the set of all packets since it last lost everything, so that each may come
in any order and number. A worker may resend whatever is not acknowledged at any time, from the first packet of its
oldest message on, so all that lies in the set again after every step. Acknowledgments are cumulative: only the furthest
one under way matters.

With two lives the leaf and each worker go over to new connections at a moment of their own. A circle of PSNs has two
halves, and the first PSN of the second life is half a circle beyond that of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from tests.model.machine import EMPTY, PROTOCOL, Machine, Reply, Slot
from tests.model.network import Violation, put


class Worker(NamedTuple):
    """Chunks that its successor has acknowledged, and that it has taken from its predecessor."""

    life: int
    acknowledged: int
    taken: int


class State(NamedTuple):
    """Packets under way as sets of bits: contributions and results of (life, worker, chunk), results by receiver;
    `acks`: the furthest under way to each worker, with its life."""

    leaf: int
    slots: tuple[Slot, ...]
    workers: tuple[Worker, ...]
    contributions: int
    results: int
    acks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Ring:
    """`messages`: packets in each; `credit`: chunks from the first one not acknowledged to the end of what may go."""

    workers: int
    slots: int
    credit: int
    messages: tuple[int, ...]
    machine: Machine = field(default=PROTOCOL, repr=False)
    lives: int = 1

    # ---- the rules, each of which a mutant breaks ---------------------------------------------------

    def answered(self, asker: int) -> int:
        """The worker that gets a complete sum again."""
        return (asker + 1) % self.workers

    def first_psn(self, life: int) -> int:
        return life * self.half

    def chunk_of(self, psn: int, life: int) -> int | None:
        """None: it came before this life."""
        chunk = (psn - self.first_psn(life)) % (2 * self.half)
        return chunk if chunk < self.half else None

    def limit(self, worker: Worker) -> int:
        """The end of what it may send."""
        return max((end for end in self.ends if end <= worker.acknowledged + self.credit), default=0)

    # ---- the system ---------------------------------------------------------------------------------

    @cached_property
    def ends(self) -> list[int]:
        return list(accumulate(self.messages))

    @cached_property
    def chunks(self) -> int:
        return self.ends[-1]

    @cached_property
    def half(self) -> int:
        return self.chunks

    def start(self) -> State:
        worker = Worker(0, 0, 0)
        empty = State(0, (EMPTY,) * self.slots, (worker,) * self.workers, 0, 0, ((0, 0),) * self.workers)
        return self._resend(empty)

    def finished(self, state: State) -> bool:
        return all(w == Worker(self.lives - 1, self.chunks, self.chunks) for w in state.workers)

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for life, worker, chunk in self._packets(state.contributions):
            if (after := self._arrives(state, life, worker, chunk)) is not None:
                yield f"{worker}'s chunk {chunk} of life {life} arrives", self._resend(after)
        for life, worker, chunk in self._packets(state.results):
            after = self._delivered(state, life, worker, chunk)
            yield f"sum {chunk} of life {life} gets to {worker}", self._resend(after)
        for worker, (life, count) in enumerate(state.acks):
            own = state.workers[worker]
            if life == own.life and count > own.acknowledged:
                after = self._with(state, worker, own._replace(acknowledged=count))
                yield f"{worker} hears of {count}", self._resend(after)
        if state.leaf + 1 < self.lives:
            yield "the leaf begins anew", self._resend(state._replace(leaf=state.leaf + 1))
        for number, own in enumerate(state.workers):
            if own.life + 1 < self.lives:
                yield (
                    f"{number} begins anew",
                    self._resend(self._with(state, number, Worker(own.life + 1, 0, 0))),
                )
        lost = state._replace(contributions=0, results=0, acks=((0, 0),) * self.workers)
        yield "all is lost", self._resend(lost)

    def _arrives(self, state: State, life: int, worker: int, chunk: int) -> State | None:
        """A contribution at the leaf; None if nothing comes of it."""
        here = self.chunk_of((self.first_psn(life) + chunk) % (2 * self.half), state.leaf)
        if here is None:
            return None
        round_, index = divmod(here, self.slots)
        slot, full = state.slots[index], (1 << self.workers) - 1
        tag = self.machine.tag(state.leaf + 1, round_)
        if tag > slot.tag:
            self._check_claim(state, here)
        after, step = self.machine.step(slot, tag, 1 << worker, 0, self._value(life, worker, chunk), full)
        made = state._replace(slots=put(state.slots, index, after))
        reply = self.machine.reply(True, step)
        if reply is not Reply.NOTHING:
            if after.total != sum(self._value(state.leaf, w, here) for w in range(self.workers)):
                raise Violation("I2", f"a wrong sum of chunk {here}: {after}")
            to = range(self.workers) if reply is Reply.RESULT_TO_ALL else [self.answered(worker)]
            bits = sum(1 << self._number(state.leaf, w, here) for w in to)
            made = made._replace(results=state.results | bits)
        return made if made != state else None

    def _check_claim(self, state: State, chunk: int) -> None:
        held = chunk - self.slots
        needy = [w for w in state.workers if w.life == state.leaf and w.taken <= held]
        if held >= 0 and needy:
            raise Violation(
                "overrun", f"chunk {chunk} claims the slot of {held}, which is needed: {state.workers}"
            )

    def _delivered(self, state: State, life: int, worker: int, chunk: int) -> State:
        """Takes the chunk that is next; any other is acknowledged again as far as chunks have come, or a NAK says the
        same."""
        own = state.workers[worker]
        before = (worker - 1) % self.workers
        if (
            (self.first_psn(life) + chunk - self.first_psn(own.life)) % (2 * self.half)
            == own.taken
            < self.chunks
        ):
            own = own._replace(taken=own.taken + 1)
        acks = list(state.acks)
        acks[before] = max(acks[before], (own.life, own.taken))
        return self._with(state, worker, own)._replace(acks=tuple(acks))

    def _resend(self, state: State) -> State:
        contributions = state.contributions
        for number, own in enumerate(state.workers):
            begin = max((end for end in [0, *self.ends] if end <= own.acknowledged), default=0)
            for chunk in range(begin, self.limit(own)):
                contributions |= 1 << self._number(own.life, number, chunk)
        return state._replace(contributions=contributions)

    def _with(self, state: State, number: int, worker: Worker) -> State:
        return state._replace(workers=put(state.workers, number, worker))

    def _number(self, life: int, worker: int, chunk: int) -> int:
        return (life * self.workers + worker) * self.chunks + chunk

    def _packets(self, bits: int) -> Iterator[tuple[int, int, int]]:
        while bits:
            low = bits & -bits
            bits ^= low
            sender, chunk = divmod(low.bit_length() - 1, self.chunks)
            yield *divmod(sender, self.workers), chunk

    def _value(self, life: int, worker: int, chunk: int) -> int:
        """A digit of its own for each contribution."""
        return 1 << 3 * self._number(life, worker, chunk)
