# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that leave while others stay, docs/reference/protocol.md, section 5.7, beside the rules of `calls.py`.

Each worker makes a number of calls of its own, then leaves. When the others learn of it is left open: what they do then
is a step that they may take at any later time. Epochs are the controller's: the newest one is entered by all that stay,
each at a moment of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tests.model.calls import ABSENT, TOGETHER, Calls, Epoch, State, Worker
from tests.model.network import Violation

UNBORN = Epoch((), (), ())


@dataclass(frozen=True)
class Departures(Calls):
    """`stops`: calls that each worker makes. `elastic`: the job continues without those that left. `spare`: so many
    epochs may begin for another reason, with the trees of the one before. `aborts`: workers leave with a call in
    flight."""

    stops: tuple[int, ...] = (1, 3)
    elastic: bool = True
    spare: int = 0
    aborts: bool = False

    @property
    def is_quiet(self) -> bool:
        """Then a worker that leaves has nothing that another one may lack."""
        return not self.spare and not self.aborts

    def start(self) -> State:
        state = super().start()
        return state._replace(epochs=(state.epochs[0], *(UNBORN,) * (self.lives - 1)))

    def finished(self, state: State) -> bool:
        return all(worker.left for worker in state.workers)

    def check(self, state: State) -> None:
        here = [w for w in state.workers if self.is_quiet or not w.left]
        for results in zip_longest(*(w.values for w in here)):
            if len(set(results) - {None}) > 1:
                raise Violation("agreement", f"results of different epochs: {state.workers}")
        for worker in state.workers:
            if not self.elastic and any(ABSENT in state.epochs[v].votes for v in worker.values):
                raise Violation("all", f"a sum lacks a worker: {worker}")
            if worker.failed and self.elastic:
                raise Violation("goes on", f"a call fails: {state.workers}")
            if worker.failed and self.is_quiet and worker.done != min(self.stops):
                raise Violation("too soon", f"a call fails that all began: {state.workers}")

    def successors(self, state: State) -> Iterator[tuple[str, State]]:
        newest = sum(epoch != UNBORN for epoch in state.epochs) - 1
        if newest < self.spare:
            yield "another epoch", self._created(state, newest + 1, state.epochs[newest].votes)
        for name, after in super().successors(state):
            if not name.startswith("new epoch"):
                yield name, after
        for number, worker in enumerate(state.workers):
            for name, after in () if worker.left else self._departure_steps(state, number, worker, newest):
                self.check(after)
                yield name, after

    def _departure_steps(
        self, state: State, number: int, w: Worker, newest: int
    ) -> Iterator[tuple[str, State]]:
        if w.epoch < newest:
            entered = self.renewed(w)._replace(epoch=newest)
            yield f"new epoch at {number}", self._settle(_put(state, number, entered), number)
        if w.done >= self.stops[number]:
            w = self.finish(w, w.epoch) if self.lacks_closing_only(w) else w
            yield f"leave at {number}", _put(state, number, w._replace(left=True))
            return
        epoch = state.epochs[w.epoch]
        if self.ends_closing(state, w):
            yield f"close at {number}", self._settle(_put(state, number, self.finish(w, w.epoch)), number)
        if w.epoch == newest and newest + 1 < self.lives and self.requests(state, epoch, w):
            votes = tuple(ABSENT if other.left else None for other in state.workers)
            yield f"request at {number}", self._created(state, newest + 1, votes)
        if not self.elastic and self.is_over(state, epoch, w):
            yield f"fail at {number}", _put(state, number, w._replace(left=True, failed=True))

    def _steps(self, state: State, number: int, w: Worker) -> Iterator[tuple[str, Worker, Epoch]]:
        if w.left:
            return
        for name, after, epoch in super()._steps(state, number, w):
            if after.submitted <= self.stops[number] + self.aborts:
                yield name, after, epoch

    def _settled(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        """A job that needs all its workers begins no call without one."""
        after, sent = super()._settled(w, epoch, number)
        is_held = not self.elastic and ABSENT in epoch.votes and after.begun > w.begun
        return (w, epoch) if is_held else (after, sent)

    def _created(self, state: State, number: int, before: tuple[object, ...]) -> State:
        row = tuple(ABSENT if vote == ABSENT else None for vote in before)
        born = Epoch(row, (row,) * self.calls, ())  # type: ignore[arg-type]
        return state._replace(epochs=(*state.epochs[:number], born, *state.epochs[number + 1 :]))

    # ---- the rules -----------------------------------------------------------------------------------------------

    def departed(self, state: State, epoch: Epoch) -> list[Worker]:
        """Workers of the epoch that have left."""
        return [w for w, vote in zip(state.workers, epoch.votes, strict=True) if w.left and vote != ABSENT]

    def limit(self, state: State, epoch: Epoch) -> int:
        """The first call that the epoch does not complete."""
        if not self.elastic and ABSENT in epoch.votes:
            return 0
        return min((w.done for w in self.departed(state, epoch)), default=self.calls + 1)

    def lacks_results(self, epoch: Epoch, w: Worker) -> bool:
        """L2."""
        return w.stage != TOGETHER or w.done < self.span(epoch)[1]

    def ends_closing(self, state: State, w: Worker) -> bool:
        """L1."""
        return self.lacks_closing_only(w) and bool(self.departed(state, state.epochs[w.epoch]))

    def requests(self, state: State, epoch: Epoch, w: Worker) -> bool:
        """L2 and L3."""
        if w.submitted <= w.done or not self.departed(state, epoch):
            return False
        is_beyond = self.elastic and w.done >= self.limit(state, epoch)
        return self.lacks_results(epoch, w) or is_beyond

    def is_over(self, state: State, epoch: Epoch, w: Worker) -> bool:
        """L3 and L4."""
        has_call = w.submitted > w.done
        return has_call and not self.lacks_results(epoch, w) and w.done >= self.limit(state, epoch)


def _put(state: State, number: int, worker: Worker) -> State:
    return state._replace(workers=(*state.workers[:number], worker, *state.workers[number + 1 :]))
