# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The links and switches that are down now, and those that one job has to avoid."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from netfold.controller.switches.failed_elements import FailedElements


class FailureState:
    """The failure monitor sets `failed`, `awaited` and `known`; routes and plans avoid what has failed.

    awaited  switches of `failed` that may soon be back: no job without another plan fails yet
    changes  how often `failed` was set: what failed and is back may have refused a plan meanwhile
    known    each switch has been ready since the start, or its start timeout has passed
    """

    def __init__(self) -> None:
        self._failed = FailedElements()
        self.changes = 0
        self.awaited: frozenset[str] = frozenset()
        self.known = asyncio.Event()
        self._unresponsive: dict[str, frozenset[str]] = {}

    @property
    def failed(self) -> FailedElements:
        return self._failed

    @failed.setter
    def failed(self, elements: FailedElements) -> None:
        self._failed = elements
        self.changes += 1

    def of(self, job: str) -> FailedElements:
        """What the job's plan avoids: what has failed, and switches that did not take its entries in time."""
        return FailedElements(
            self.failed.links, self.failed.switches | self._unresponsive.get(job, frozenset())
        )

    def avoid(self, job: str, switches: Iterable[str]) -> None:
        """Until the job runs or has ended."""
        self._unresponsive[job] = self._unresponsive.get(job, frozenset()).union(switches)

    def forget(self, job: str) -> None:
        self._unresponsive.pop(job, None)
