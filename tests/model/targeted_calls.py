# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Models scatters (docs/reference/protocol.md, section 5.8) together with the rules of `calls.py`.

Each worker has another result of a scatter, so none can be handed over. A scatter ends with a closing chunk. A worker
that only waits for its result when the epoch changes is *ready*, and its vote says so. If all that lack the call are
ready they finish it, else all make it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.calls import Calls, Epoch, Worker, said
from tests.model.network import Violation


@dataclass(frozen=True)
class TargetedCalls(Calls):
    """`scatters`: calls of which each worker has a result of its own."""

    scatters: frozenset[int] = frozenset()

    def parts_of(self, call: int) -> list[tuple[str, int]]:
        parts = super().parts_of(call)
        return [*parts, ("closing", call)] if call in self.scatters - self.large else parts

    def without_closing(self, w: Worker) -> Worker:
        """E9."""
        return w._replace(ready=w.epoch + 1) if w.done in self.scatters else super().without_closing(w)

    def ballot(self, w: Worker) -> object:
        return w.done, w.tried, bool(w.ready)

    def is_finished_by(self, vote: tuple[int, bool, bool], epoch: Epoch) -> bool:
        """E10. A worker that lacks an earlier call lacks this one, too."""
        return vote[2] and all(v[0] > vote[0] or (v[0] == vote[0] and v[2]) for v in said(epoch.votes))

    def span(self, epoch: Epoch) -> tuple[int, int]:
        lacked = [vote[0] + self.is_finished_by(vote, epoch) for vote in said(epoch.votes)]
        return min(lacked), max(lacked)

    def known_finished(self, epoch: Epoch) -> int:
        """E11. A worker that is ready does not know yet that it may finish its call."""
        return min(vote[0] for vote in said(epoch.votes))

    def closing_proves(self, call: int) -> bool:
        """E11. Another worker may wait for the votes of all."""
        return call not in self.scatters

    def together(self, w: Worker, epoch: Epoch, number: int) -> tuple[Worker, Epoch]:
        if w.ready:
            is_finished = self.is_finished_by((w.done, w.tried, True), epoch)
            w = (self.finish(w, w.ready - 1) if is_finished else w)._replace(ready=0)
        handed_over = self.scatters.intersection(range(*self.span(epoch)))
        if handed_over:
            raise Violation("handover", f"calls {handed_over} are lacked by some: {epoch.votes}")
        return super().together(w, epoch, number)
