# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The sender's rules of docs/reference/protocol.md, section 5.1, for workers whose windows differ and change.

`network.py` lets a worker send all that its channels allow; here it sends the lowest chunk first and keeps to a window,
which can make workers wait for each other. The node is reduced to what this needs: a chunk is complete when every
worker's packet is in. Losing a packet is a step that does not happen yet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.model.network import Violation


class Sender(NamedTuple):
    """Chunks as bits: results received, chunks ever sent, packets that are in at the node."""

    received: int
    sent: int
    arrived: int


State = tuple[Sender, ...]


class Step(NamedTuple):
    """`need`: the least window of `worker` that lets it happen; 0 for all but the sending of a new chunk."""

    after: State
    worker: int
    need: int


@dataclass(frozen=True)
class Rules:
    """`fill_holes`: rule 3, a chunk below the highest one ever sent goes whatever the window."""

    workers: int
    slots: int
    chunks: int
    fill_holes: bool = True

    def ready(self, sender: Sender) -> int | None:
        """The lowest chunk that is not sent and whose channel is free (rule 1)."""
        for chunk in range(self.chunks):
            before = chunk - self.slots // 2
            if not sender.sent >> chunk & 1 and (before < 0 or sender.received >> before & 1):
                return chunk
        return None

    def steps(self, state: State) -> Iterator[Step]:
        """Raises Violation if a packet claims a slot whose sum a worker still waits for."""
        complete = (1 << self.chunks) - 1
        for sender in state:
            complete &= sender.arrived
        for worker, sender in enumerate(state):
            chunk = self.ready(sender)
            if chunk is not None:
                after = sender._replace(sent=sender.sent | 1 << chunk)
                yield Step(_put(state, worker, after), worker, self.need(sender, chunk))
            for chunk in _bits(sender.sent & ~sender.arrived):
                self._check_claim(state, chunk)
                yield Step(
                    _put(state, worker, sender._replace(arrived=sender.arrived | 1 << chunk)), worker, 0
                )
            for chunk in _bits(complete & sender.sent & ~sender.received):
                yield Step(
                    _put(state, worker, sender._replace(received=sender.received | 1 << chunk)), worker, 0
                )

    def need(self, sender: Sender, chunk: int) -> int:
        """The least window with which the lowest ready chunk goes."""
        if self.fill_holes and sender.sent >> chunk:
            return 0
        return (sender.sent & ~sender.received).bit_count() + 1

    def _check_claim(self, state: State, chunk: int) -> None:
        older = chunk - self.slots
        if older >= 0 and not all(sender.received >> older & 1 for sender in state):
            raise Violation("window", f"chunk {chunk} claims the slot of {older}: {state}")


def explore(rules: Rules) -> dict[State, list[Step]]:
    """Everything that any windows, changing at any time, can bring about: the largest window allows it all."""
    start = (Sender(0, 0, 0),) * rules.workers
    found: dict[State, list[Step]] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state not in found:
            found[state] = [step for step in rules.steps(state) if step.need <= rules.slots // 2]
            waiting += [step.after for step in found[state]]
    return found


def check_progress(rules: Rules, graph: dict[State, list[Step]]) -> int:
    """From every state, with the windows frozen at any values from 1 to A/2, all can get all results. Gives the
    number of window vectors looked at; raises Violation."""
    vectors = list(itertools.product(range(1, rules.slots // 2 + 1), repeat=rules.workers))
    everything = (1 << rules.chunks) - 1
    done = [state for state in graph if all(sender.received == everything for sender in state)]
    before: dict[State, list[tuple[State, int, int]]] = {state: [] for state in graph}
    for state, steps in graph.items():
        for step in steps:
            before[step.after].append((state, step.worker, step.need))
    for windows in vectors:
        waiting, finishing = list(done), set(done)
        while waiting:
            for earlier, worker, need in before[waiting.pop()]:
                if need <= windows[worker] and earlier not in finishing:
                    finishing.add(earlier)
                    waiting.append(earlier)
        if len(finishing) < len(graph):
            stuck = next(state for state in graph if state not in finishing)
            raise Violation("progress", f"windows {windows} get stuck in {stuck}")
    return len(vectors)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        mask ^= low
        yield low.bit_length() - 1


def _put(state: State, worker: int, sender: Sender) -> State:
    return (*state[:worker], sender, *state[worker + 1 :])
