# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The links and switches that are down now, and those that one job has to avoid."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from netfold.controller.switches.failed_elements import FailedElements


class FailureState:
    """Holds what has failed: the failure monitor sets `failed`, `awaited` and `known`; routes and plans avoid it.

    awaited  switches and links of `failed` that may be back shortly: no job without another plan fails yet
    changes  how often `failed` was set: an element that failed and is back may have refused a plan in between
    known    set when each switch has been ready since the start, or its start timeout has passed
    """

    def __init__(self) -> None:
        self._failed = FailedElements()
        self.changes = 0
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

    def of(self, job: str) -> FailedElements:
        """The elements that the job's plan avoids: those that have failed, and switches that did not take its
        entries."""
        nothing = frozenset[str]()
        avoided = self._refusing.get(job, nothing) | self._slow.get(job, nothing)
        return FailedElements(self.failed.links, self.failed.switches | avoided)

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
