# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Workers that come to calls under way, and go, docs/reference/protocol.md, section 5.6, beside the rules of
`calls.py`.

A newcomer begins in the epoch in which it arrives. Its program's first call is the first that no worker has; where that
is, it learns from the others' votes. A worker that departs is in no later epoch: what it had then is of no account.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.calls import ABSENT, TOGETHER, Calls, Epoch, State, Worker
from tests.model.network import Violation

STRANGER = "stranger"


@dataclass(frozen=True)
class Newcomers(Calls):
    """By worker: the first epoch that it is `arrivals` in, and the first that it is in no more."""

    arrivals: tuple[int, ...] = (0, 0, 1)
    departures: tuple[int, ...] = (9, 9, 9)

    def start(self) -> State:
        state = super().start()
        workers = [Worker(epoch=e, strange=e > 0) for e in self.arrivals]
        return state._replace(workers=tuple(workers))

    def no_votes(self, epoch: int) -> tuple[object, ...]:
        terms = zip(self.arrivals, self.departures, strict=True)
        return tuple(None if comes <= epoch < goes else ABSENT for comes, goes in terms)

    def finished(self, state: State) -> bool:
        """A worker that comes when all calls are over finds none that waits for it."""
        there = [w for w, goes in zip(state.workers, self.departures, strict=True) if goes >= self.lives]
        return all(w.done == self.calls or w.strange for w in there)

    def check(self, state: State) -> None:
        here = zip(state.workers, self.departures, strict=True)
        staying = tuple(w for w, goes in here if goes >= self.lives)
        super().check(state._replace(workers=staying))
        for worker, came in zip(state.workers, self.arrivals, strict=True):
            if any(value < came for value in worker.values[worker.first :]):
                raise Violation("others", f"a newcomer's call is one that it was not in: {worker}")

    def _steps(self, state, number, w):  # type: ignore[no-untyped-def]
        for name, after, epoch in super()._steps(state, number, w):
            if name == "submit" and w.strange and w.submitted:
                continue  # it votes with the first one
            if after.epoch < self.departures[number]:
                yield name, after, epoch

    def ballot(self, w: Worker) -> object:
        return STRANGER if w.strange else super().ballot(w)

    def votes(self, w: Worker) -> bool:
        """Also with a call that the others end before."""
        return super().votes(w) or (w.first == self.calls and not w.strange)

    def joins(self, epoch: Epoch) -> int:
        """The call that a stranger goes on with."""
        return self.span(epoch)[1]

    def holds(self, w: Worker, call: int) -> bool:
        """A newcomer has no results of the calls before its first: it says so, and is not counted as a holder."""
        return w.first <= call < w.done

    def together(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        if not w.strange:
            return super().together(w, epoch, number)
        lowest, highest = self.span(epoch)
        for call in range(lowest, highest):
            epoch = self.passed(epoch, call, number)
        first = self.joins(epoch)
        w = w._replace(
            stage=TOGETHER, strange=False, first=first, done=first, begun=first, proven=first,
            submitted=min(self.calls, first + w.submitted), values=(None,) * first,
        )  # fmt: skip
        return w, epoch

    def passed(self, epoch: Epoch, call: int, number: int) -> Epoch:
        """A result that is handed over between others holds nothing of the stranger's."""
        row = epoch.main[call]
        row = (*row[:number], ("hand", None), *row[number + 1 :])
        return epoch._replace(main=(*epoch.main[:call], row, *epoch.main[call + 1 :]))
