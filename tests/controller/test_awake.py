# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A machine that stands still for a while lets no test fail."""

from __future__ import annotations

import asyncio
import time

import pytest

from netfold.topologies.generators import single_switch
from tests.controller.awake import STEP_S, Awake
from tests.controller.deployment import deployed, ready


async def test_a_wait_does_not_count_while_the_machine_stands_still(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        loop, there = asyncio.get_running_loop(), []
        loop.call_later(0.1, time.sleep, 2 * STEP_S + 0.2)
        loop.call_later(2 * STEP_S + 0.4, there.append, 1)
        await deployment.until(lambda: bool(there), "it is there", within_s=2 * STEP_S)


def test_computing_counts_for_as_long_as_it_takes():
    awake, begun = Awake(), time.process_time()
    while time.process_time() < begun + 2 * STEP_S:
        pass
    assert awake() >= 2 * STEP_S


async def test_a_wait_ends_and_says_for_what(tmp_path):
    async with deployed(single_switch(2), tmp_path) as deployment:
        with pytest.raises(TimeoutError, match="a miracle"):
            await deployment.until(lambda: False, "a miracle", within_s=0.3)
