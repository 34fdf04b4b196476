# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The elements that are down or withdrawn now, and those that one job has to avoid."""

from __future__ import annotations

import asyncio
import functools
import operator
from collections.abc import Iterable, Mapping

from netfold.controller.jobs.withdrawal import Intent, Withdrawal
from netfold.controller.lifecycle.clock import Clock
from netfold.controller.switches.failed_elements import NO_ELEMENTS, FailedElements
from netfold.controller.switches.miscabling import Miscabling


class FailureState:
    """Holds what has failed and what is withdrawn: the failure monitor sets `failed`, `awaited` and `known`,
    maintenance calls `withdraw`. Plans avoid both. Jobs have to leave what has failed, and leave what is drained if
    they can.

    miscablings  cables that lead elsewhere than the fabric's file says
    awaited  switches and links of `failed` that may be back shortly: no job without another plan fails yet
    changes  how often `failed` or `withdrawn` was set: an element that is back may have refused a plan in between
    known    set when each switch has been ready since the start, or its start timeout has passed
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed = NO_ELEMENTS
        self._withdrawn: dict[Intent, FailedElements] = {}
        self._holds: dict[str, Withdrawal] = {}
        self.changes = 0
        self.miscablings: tuple[Miscabling, ...] = ()
        self.awaited: frozenset[str | frozenset[str]] = frozenset()
        self.known = asyncio.Event()
        self._refusing: dict[str, frozenset[str]] = {}
        self._slow: dict[str, frozenset[str]] = {}

    @property
    def failed(self) -> FailedElements:
        return self._failed

    @failed.setter
    def failed(self, elements: FailedElements) -> None:
        self._failed = elements
        self.changes += 1

    def withdraw(self, elements: Mapping[Intent, FailedElements], holds: Iterable[Withdrawal]) -> None:
        """Set the elements that operators have withdrawn, and the holds of switches."""
        self._withdrawn = dict(elements)
        self._holds = {hold.element: hold for hold in holds}
        self.changes += 1

    def held_s(self, switch: str) -> float:
        """Seconds for which the switch may still be away; 0: it is not held. They are at most those of the request,
        because the wall clock may be set back."""
        hold = self._holds.get(switch)
        if hold is None:
            return 0.0
        return max(0.0, min(hold.until - self._clock.wall_s(), hold.until - hold.since))

    @property
    def by_intent(self) -> Mapping[Intent, FailedElements]:
        """The elements that operators have withdrawn."""
        return self._withdrawn

    @property
    def drained(self) -> FailedElements:
        """Elements that jobs and routes leave where there is another way."""
        return self._withdrawn.get(Intent.DRAIN, NO_ELEMENTS)

    @property
    def withdrawn(self) -> FailedElements:
        """Elements that plans avoid although they work."""
        return functools.reduce(operator.or_, self._withdrawn.values(), NO_ELEMENTS)

    @property
    def avoided(self) -> FailedElements:
        """The elements that plans and reservations avoid: what has failed, and what is withdrawn."""
        return self.failed | self.withdrawn

    def of(self, job: str) -> FailedElements:
        """The elements that the job has to leave: those that have failed, and switches that did not take its
        entries."""
        nothing = frozenset[str]()
        avoided = self._refusing.get(job, nothing) | self._slow.get(job, nothing)
        return FailedElements(self.failed.links, self.failed.switches | avoided)

    def avoided_by(self, job: str, may_use: FailedElements = NO_ELEMENTS) -> FailedElements:
        """The elements that the job's plan avoids. It `may_use` these if they are only withdrawn."""
        return self.of(job) | (self.withdrawn - may_use)

    def avoid(self, job: str, switches: Iterable[str], *, slow: bool = False) -> None:
        """Make plans of the job avoid these switches until it runs or has ended. `slow`: they may take its entries
        yet."""
        avoided = self._slow if slow else self._refusing
        avoided[job] = avoided.get(job, frozenset()).union(switches)

    def forgive_slow(self, job: str) -> bool:
        """Stop avoiding the switches that are only slow. True: there was one."""
        return self._slow.pop(job, None) is not None

    def forget(self, job: str) -> None:
        self._refusing.pop(job, None)
        self._slow.pop(job, None)
