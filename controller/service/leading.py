# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Leads and stands by in turn. In one process, one controller after the other leads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from enum import Enum

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import NotLeaderError, StoreError, StoreUnavailableError
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.service.leadership import Leadership

STEP_DOWN_S = 3.0
"""Seconds in which a leader that stepped down leaves it to others to lead."""


class End(Enum):
    """Why a controller of this process does not lead any more."""

    NEW_FABRIC = "the store has another fabric"
    STEPPED_DOWN = "an operator requested it"
    LOST = "another controller leads, or the store cannot be reached"
    STOPPED = "a signal, or its own end"


async def take_turns(
    leadership: Leadership,
    stop: asyncio.Event,
    stand_by: Callable[[float], Awaitable[int | None]],
    lead: Callable[[int], Awaitable[End]],
    report: Callable[[str], None],
) -> None:
    """Return once `stop` is set. `stand_by` gets the seconds in which others are to lead, and returns the term in which
    this process leads; None: it stops before. `lead` gets the term. Raises StoreError for a store that this version
    cannot use."""
    end = End.NEW_FABRIC
    while not stop.is_set():
        term = _term(leadership) if end is End.NEW_FABRIC else None
        if term is None:
            term = await stand_by(STEP_DOWN_S if end is End.STEPPED_DOWN else 0.0)
        if term is None:
            break
        try:
            end = await lead(term)
        except (NotLeaderError, StoreUnavailableError) as error:
            report(f"stands by: {error}")
            end = End.LOST
        if end is not End.NEW_FABRIC:
            leadership.release()


async def lead_until_end(
    controller: Controller, store: Store, stop: asyncio.Event, serve: Callable[[], Awaitable[None]]
) -> End:
    """Run a controller, and let it serve. Raises NotLeaderError if this process does not lead any more."""
    running = asyncio.create_task(controller.run())
    applied, steps_down = controller.planning.fabric_changes.applied, controller.state.steps_down
    ends = [asyncio.create_task(event.wait()) for event in (stop, applied, steps_down, store.engine.lost)]
    settling = asyncio.create_task(_settle(store))
    try:
        await serve()
        await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
        if store.engine.lost.is_set():
            raise NotLeaderError(f"{store.name}: this controller has lost its lease, or the store")
        if applied.is_set():
            return End.NEW_FABRIC
        return End.STEPPED_DOWN if steps_down.is_set() else End.STOPPED
    finally:
        for task in (settling, *ends):
            task.cancel()
        running.cancel()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await running
        finally:
            controller.end()


async def _settle(store: Store) -> None:
    """Undo changes that were refused, and which the store may have all the same: the next leader would find them, long
    after an operator was refused."""
    while True:
        await asyncio.sleep(STORE_RETRY_S)  # after an error, too
        with contextlib.suppress(StoreError), store.change():
            pass


def _term(leadership: Leadership) -> int | None:
    """The next term; None while another process leads, or the store cannot be reached."""
    try:
        return leadership.try_lead()
    except (NotLeaderError, StoreUnavailableError):
        return None
