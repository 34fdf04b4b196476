# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tasks that are not awaited."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from netfold.controller.jobs.engine import StoreError
from netfold.controller.lifecycle import background_tasks
from netfold.controller.lifecycle.background_tasks import BackgroundTasks


async def _stop_at_once() -> None:
    tasks = BackgroundTasks()
    tasks.spawn(asyncio.sleep(1000), "work")
    tasks.stop()
    while tasks.under_way:
        await asyncio.sleep(0)


def test_work_that_is_stopped_before_it_begins_is_closed() -> None:
    """A controller that stops just then would write that a coroutine was never awaited."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(_stop_at_once())
        gc.collect()
    assert [str(w.message) for w in caught] == []


async def test_a_change_that_the_store_refuses_is_not_tried_again_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process may lead again, with another controller and the same store."""
    monkeypatch.setattr(background_tasks, "STORE_RETRY_S", 0.0)
    tasks, tries = BackgroundTasks(), 0

    def change() -> None:
        nonlocal tries
        tries += 1
        raise StoreError("full")

    tasks.persist(change)
    tasks.stop()
    tasks.persist(change)
    await asyncio.sleep(0.01)
    assert tries == 2
    assert tasks.timers == 0
