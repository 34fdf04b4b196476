# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A member's stream looks at its job and then waits for a change. None may be lost in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from netfold.controller.lifecycle.events import ChangeNotifier

DEADLINE_S = 10.0


async def is_awake(*waiting: Awaitable[object]) -> list[bool]:
    """Which of these end without a further change."""
    tasks = [asyncio.ensure_future(w) for w in waiting]
    for _ in range(5):  # steps of the loop
        await asyncio.sleep(0)
    found = [task.done() for task in tasks]
    for task in tasks:
        task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), DEADLINE_S)
    return found


@pytest.mark.parametrize("job", ["a", None])
async def test_a_change_before_a_wait_is_awaited_is_not_lost(job: str | None):
    changes = ChangeNotifier()
    waits = [changes.wait(job), changes.wait(job)]
    changes.notify("a")
    assert await is_awake(*waits) == [True, True]


async def test_a_wait_is_for_later_changes_of_its_own_job():
    changes = ChangeNotifier()
    changes.notify("a")
    waits = [changes.wait("a"), changes.wait("b"), changes.wait()]
    changes.notify("b")
    assert await is_awake(*waits) == [False, True, True]
