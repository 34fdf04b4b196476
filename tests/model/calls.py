# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The course of calls, docs/reference/protocol.md, section 5.3, with several under way and epochs that change
at each worker at a moment of its own.

What `network.py` proves is taken for granted: a chunk has a result when every worker has sent it in the same epoch,
and a result comes to each worker some time, or not before its epoch is over. A call is one chunk of the main stream
here and, by `repeated` and `large`, up to two of the control stream. What a worker sends without waiting for anything
it sends at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.model.network import Violation

APART, ASKED, TOGETHER = 0, 1, 2
ABSENT = "absent"
"""Stands in place of what a worker says, if it takes no part in the epoch."""


class Worker(NamedTuple):
    """`done`: calls whose results it has; `values`: these results, by the epoch that they were made in; the results of
    the calls before `proven` are let go. Of this epoch: `begun` calls, results `got` (bits), `parts` of the first call
    in the control stream that are back, `control` chunks sent there. `tried`: its first call was begun in an earlier
    epoch. `first`: the call that it came with, `strange`: it does not know yet which one that is (newcomers.py).
    `left`: it has left the job, or `failed` because another one has (departures.py)."""

    epoch: int = 0
    submitted: int = 0
    done: int = 0
    values: tuple[int, ...] = ()
    proven: int = 0
    tried: bool = False
    stage: int = APART
    begun: int = 0
    got: int = 0
    parts: int = 0
    control: int = 0
    first: int = 0
    strange: bool = False
    left: bool = False
    failed: bool = False
    ready: int = 0  # one more than the epoch that ended before the closing result (targeted_calls.py)


class Epoch(NamedTuple):
    """Messages sent in an epoch, by worker; None: nothing yet. A vote is (first call that the worker lacks, whether it
    was begun in an earlier epoch); a chunk of the main stream says what it is."""

    votes: tuple[tuple[int, bool] | None, ...]
    main: tuple[tuple[object, ...], ...]
    control: tuple[tuple[object, ...], ...]


def said(row: tuple[object, ...]) -> list[tuple]:  # type: ignore[type-arg]
    """Return what workers have said that counts."""
    return [word for word in row if isinstance(word, tuple)]


def unsaid(epoch: Epoch) -> tuple[object, ...]:
    """Returns the state of a chunk about which no worker has said anything yet."""
    return tuple(ABSENT if vote == ABSENT else None for vote in epoch.votes)


class State(NamedTuple):
    workers: tuple[Worker, ...]
    epochs: tuple[Epoch, ...]


@dataclass(frozen=True)
class Calls:
    workers: int = 2
    calls: int = 3
    depth: int = 2
    lives: int = 2
    repeated: frozenset[int] = frozenset()
    large: frozenset[int] = frozenset()

    def start(self) -> State:
        blank = [self.no_votes(epoch) for epoch in range(self.lives)]
        epochs = tuple(Epoch(row, (row,) * self.calls, ()) for row in blank)  # type: ignore[arg-type]
        return State((Worker(),) * self.workers, epochs)

    def finished(self, state: State) -> bool:
        return all(worker.done == self.calls for worker in state.workers)

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        for number, worker in enumerate(state.workers):
            for name, after, epoch in self._steps(state, number, worker):
                epochs = _put(state.epochs, worker.epoch, epoch)
                changed = self._settle(State(_put(state.workers, number, after), epochs), number)
                self.check(changed)
                yield f"{name} at {number}", changed

    def check(self, state: State) -> None:
        _check_agreement(state)

    def _steps(self, state: State, number: int, w: Worker) -> Iterator[tuple[str, Worker, Epoch]]:
        epoch = state.epochs[w.epoch]
        if w.submitted < self.calls:
            yield "submit", w._replace(submitted=w.submitted + 1), epoch
        if w.epoch + 1 < self.lives:
            yield "new epoch", self.renewed(w), epoch
        if w.stage == ASKED and None not in epoch.votes:
            yield "resume", *self.together(w, epoch, number)
        for call in range(w.done, w.begun):
            if not w.got >> call & 1 and None not in epoch.main[call]:
                yield f"result of {call}", self.taken(w, epoch, call), epoch
        if self.asks(w, epoch) and w.control and None not in epoch.control[w.control - 1]:
            part = epoch.control[w.control - 1][number]
            yield f"result of {part}", self.part_taken(w, part), epoch

    def renewed(self, w: Worker) -> Worker:
        """Returns the worker in a new epoch: calls under way are given up. A call that only waits for its closing
        result is done."""
        if self.lacks_closing_only(w):
            w = self.without_closing(w)
        tried = w.begun > w.done or w.tried
        return w._replace(
            epoch=w.epoch + 1, tried=tried, stage=APART, begun=w.done, got=0, parts=0, control=0
        )

    def without_closing(self, w: Worker) -> Worker:
        return self.finish(w, w.epoch)

    def lacks_closing_only(self, w: Worker) -> bool:
        parts = self.parts_of(w.done)
        return (
            w.stage == TOGETHER
            and w.got >> w.done & 1 == 1
            and bool(parts)
            and parts[-1][0] == "closing"
            and w.parts == len(parts) - 1
        )

    def parts_of(self, call: int) -> list[tuple[str, int]]:
        return [
            (name, call)
            for name, calls in (("repeat", self.repeated), ("closing", self.large))
            if call in calls
        ]

    def known_finished(self, epoch: Epoch) -> int:
        """Return the first call that some worker lacks: all have finished the calls before it."""
        return self.span(epoch)[0]

    def span(self, epoch: Epoch) -> tuple[int, int]:
        """The first call that some worker lacks, and the first that all lack."""
        lacked = [vote[0] for vote in said(epoch.votes)]
        return min(lacked), max(lacked)

    def together(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        """Hand over what any worker has, once all votes are known."""
        lowest, highest = self.span(epoch)
        if highest - lowest > self.depth:
            raise Violation("span", f"votes {epoch.votes}")
        if any(vote[0] < highest and not vote[1] for vote in said(epoch.votes)):
            raise Violation("strangers", f"votes {epoch.votes}")
        for call in range(lowest, highest):
            held = self.holds(w, call)
            if held and call < w.proven:
                raise Violation("kept", f"worker {number} has let the result of {call} go")
            epoch = _sent(epoch, call, number, ("hand", w.values[call] if held else None))
        proven = max(w.proven, self.known_finished(epoch))
        return w._replace(stage=TOGETHER, proven=proven, begun=max(w.begun, highest)), epoch

    def holds(self, w: Worker, call: int) -> bool:
        return call < w.done

    def taken(self, w: Worker, epoch: Epoch, call: int) -> Worker:
        chunks = said(epoch.main[call])
        if len({kind for kind, _ in chunks}) > 1:
            raise Violation("numbers", f"call {call}: {epoch.main[call]}")
        if chunks[0][0] == "new":
            if len(set(chunks)) > 1:
                raise Violation("numbers", f"call {call} is predicted otherwise: {epoch.main[call]}")
            w = w._replace(proven=max(w.proven, self.proof(call)))
        return w._replace(got=w.got | 1 << call)

    def proof(self, call: int) -> int:
        """All have the results of the calls before this one, as they began `call`."""
        return call - self.depth + 1

    def part_taken(self, w: Worker, part: object) -> Worker:
        w = w._replace(parts=w.parts + 1)
        if part == ("closing", w.done) and self.closing_proves(w.done):
            w = w._replace(proven=max(w.proven, w.done + 1))
        return w

    def closing_proves(self, call: int) -> bool:
        """Returns whether the closing result proves that all have the call's result."""
        return True

    def asks(self, w: Worker, epoch: Epoch) -> bool:
        """Is the first call's next part under way?"""
        return w.stage == TOGETHER and w.got >> w.done & 1 == 1 and w.done >= self.span(epoch)[1]

    def votes(self, w: Worker) -> bool:
        """A worker with results that others may lack takes part without a call, too."""
        return w.submitted > w.done or w.proven < w.done

    def ballot(self, w: Worker) -> object:
        return w.done, w.tried

    def no_votes(self, epoch: int) -> tuple[object, ...]:
        """The votes before any worker has voted."""
        return (None,) * self.workers

    def begins(self, w: Worker) -> bool:
        return w.begun < w.submitted and w.begun < w.done + self.depth

    def predicts(self, w: Worker, since: int) -> int:
        """The call that the scales of the next one come from; calls before `since` are of other epochs. -1: none."""
        latest = w.begun - self.depth
        return latest if latest >= since else -1

    def finish(self, w: Worker, value: int) -> Worker:
        return w._replace(done=w.done + 1, values=(*w.values, value), parts=0, tried=False)

    def next_part(self, w: Worker) -> tuple[str, int] | None:
        """Returns the next part in the control stream: parts of the first call alone."""
        parts = self.parts_of(w.done)
        return parts[w.parts] if w.got >> w.done & 1 and w.parts < len(parts) else None

    def _settle(self, state: State, number: int) -> State:
        """The worker sends all that it can send, and ends calls that it has all results of."""
        while True:
            w = state.workers[number]
            after, epoch = self._settled(w, state.epochs[w.epoch], number)
            if after == w:
                return state
            state = State(_put(state.workers, number, after), _put(state.epochs, w.epoch, epoch))

    def _settled(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        if w.stage == APART and self.votes(w):
            votes = _put(epoch.votes, number, self.ballot(w))
            return w._replace(stage=ASKED), epoch._replace(votes=votes)
        if w.stage != TOGETHER:
            return w, epoch
        since = self.span(epoch)[1]
        if w.got >> w.done & 1 and w.done < since:
            values = {value for _, value in said(epoch.main[w.done]) if value is not None}
            return self.finish(w, values.pop()), epoch
        part = self.next_part(w)
        sent = sum(1 for chunk in epoch.control if chunk[number] is not None)
        if part is not None and sent == w.control and not any(c[number] == part for c in epoch.control):
            control = epoch.control
            if len(control) == sent:
                control = (*control, unsaid(epoch))
            control = _put(control, sent, _put(control[sent], number, part))
            if len(set(said(control[sent]))) > 1:
                raise Violation("numbers", f"control chunk {sent}: {control[sent]}")
            return w._replace(control=w.control + 1), epoch._replace(control=control)
        if part is None and w.got >> w.done & 1 and w.parts == len(self.parts_of(w.done)):
            return self.finish(w, w.epoch), epoch
        if self.begins(w):
            chunk = ("new", self.predicts(w, since))
            return w._replace(begun=w.begun + 1), _sent(epoch, w.begun, number, chunk)
        return w, epoch


def _sent(epoch: Epoch, call: int, number: int, chunk: object) -> Epoch:
    return epoch._replace(main=_put(epoch.main, call, _put(epoch.main[call], number, chunk)))


def _check_agreement(state: State) -> None:
    for results in zip(*(worker.values for worker in state.workers), strict=False):
        if len(set(results) - {None}) > 1:
            raise Violation("agreement", f"results of different epochs: {state.workers}")


def _put(values: tuple, index: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:index], value, *values[index + 1 :])
