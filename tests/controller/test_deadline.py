# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Deadlines for answers, in virtual time: what is late because the event loop is late has not failed."""

from __future__ import annotations

import asyncio

import pytest

from netfold.controller.switches.deadline import Deadline
from tests.simulation.loop import VirtualLoop


def in_virtual_time(scenario) -> None:
    loop = VirtualLoop(1, 0.0)
    try:
        loop.run_until_complete(scenario(loop))
    finally:
        loop.close()


def test_a_deadline_ends_what_takes_longer():
    async def scenario(loop):
        with pytest.raises(TimeoutError):
            async with Deadline(5.0):
                await asyncio.sleep(60.0)
        assert loop.time() == 5.0
        async with Deadline(5.0):
            await asyncio.sleep(4.0)

    in_virtual_time(scenario)


@pytest.mark.parametrize("suspensions_s", [(20.0,), (8.0, 20.0), (10.0,) * 5])
def test_a_suspended_process_has_time_to_read_the_answers_that_came_meanwhile(suspensions_s):
    """However often it is suspended: each time timers are due before what arrived has been read."""

    async def scenario(loop):
        answer = loop.create_future()

        def suspend(rest):
            loop.suspend(rest[0])
            if rest[1:]:
                loop.call_soon(suspend, rest[1:])
            else:
                loop.call_later(0.1, answer.set_result, None)

        loop.call_later(1.0, suspend, suspensions_s)
        async with Deadline(5.0):
            await answer

    in_virtual_time(scenario)


def test_after_a_suspension_a_deadline_still_ends_what_does_not_come():
    async def scenario(loop):
        loop.call_later(1.0, loop.suspend, 20.0)
        with pytest.raises(TimeoutError):
            async with Deadline(5.0):
                await asyncio.Event().wait()
        assert 21.0 < loop.time() < 21.0 + 5.0

    in_virtual_time(scenario)


def test_a_deadline_that_is_extended_begins_anew():
    async def scenario(loop):
        deadline = Deadline(5.0)
        deadline.extend(100.0)  # before it is entered it is not extended
        loop.call_later(4.0, deadline.extend, 10.0)
        with pytest.raises(TimeoutError):
            async with deadline:
                await asyncio.sleep(60.0)
        assert loop.time() == 14.0
        deadline.extend(10.0)  # what is over is over

    in_virtual_time(scenario)
