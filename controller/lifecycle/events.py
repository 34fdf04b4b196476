# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Events between the packages of the controller. A publisher does not depend on its subscribers: core.py connects them,
and its table is the whole list. Commands go the other way, by plain calls from a package to those below it.
Tasks that wait for a change of any kind have the ChangeNotifier."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from netfold.controller.switches.failed_elements import FailedElements


@dataclass(frozen=True)
class JobRunning:
    """All switches hold the job's entries: its members may take part."""

    job: str


@dataclass(frozen=True)
class JobStranded:
    """An installed job lost a member, or switches failed to take its entries. It has to be placed again. `is_final`: it
    ends if there is no other plan; otherwise it waits where it is."""

    job: str
    reason: str
    is_final: bool = True


@dataclass(frozen=True)
class EpochsExhausted:
    """An installed job needs an epoch after `epoch`, and its slots have none. It has to move to other slots."""

    job: str
    epoch: int
    reason: str


@dataclass(frozen=True)
class MembersRejoining:
    """Members outside the present epoch wait to take part in the next one."""

    job: str


@dataclass(frozen=True)
class LeaseExpired:
    job: str
    host: str


@dataclass(frozen=True)
class FailuresChanged:
    """Routes and plans have to avoid other links and switches than before."""


@dataclass(frozen=True)
class LinksKnown:
    """Each link between switches has answered a probe in both directions."""


@dataclass(frozen=True)
class ElementsFailed:
    """Jobs that use these links or switches have to move. `is_final`: those without another plan end."""

    elements: FailedElements
    reason: str
    is_final: bool


@dataclass(frozen=True)
class MaintenanceRequested:
    """An operator or a rollout has withdrawn elements of the fabric, or given them back."""

    text: str
    elements: tuple[str, ...]


@dataclass(frozen=True)
class CapacityFreed:
    """A job has ended or moved, a queued one lost a member, or a link or switch may be used again: a queued job may
    fit, and one over drained elements may leave them."""


@dataclass(frozen=True)
class MoveFailed:
    """A job stays where it was, because it could not move. `switches`: those that did not take its entries."""

    job: str
    reason: str
    switches: frozenset[str] = frozenset()


E = TypeVar("E")


class EventBus:
    """Calls the subscribers of an event's type in the order of their subscription, before `publish` returns. A handler
    records, or starts a task; it does not call its publisher."""

    def __init__(self) -> None:
        self._handlers: defaultdict[type, list[Callable[[Any], None]]] = defaultdict(list)

    def subscribe(self, kind: type[E], handler: Callable[[E], None]) -> None:
        self._handlers[kind].append(handler)

    def publish(self, event: object) -> None:
        for handler in self._handlers[type(event)]:
            handler(event)


class ChangeNotifier:
    """Lets tasks `wait` for any change, or for a change of one job. A thousand members wait for their own job only."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._job_events: dict[str, asyncio.Event] = {}

    def notify(self, *jobs: str) -> None:
        """Announce a change; it wakes waiters for any change and those for one of `jobs`."""
        self._event.set()
        self._event = asyncio.Event()
        for job in jobs:
            if job in self._job_events:
                self._job_events.pop(job).set()

    def wait(self, job: str | None = None) -> Awaitable[object]:
        """An awaitable that completes at the next notification after this call (for the job), whenever it is
        awaited."""
        if job is None:
            return self._event.wait()
        return self._job_events.setdefault(job, asyncio.Event()).wait()
