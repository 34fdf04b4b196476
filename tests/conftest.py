# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The event loops of tests, of which a process has many, one after the other; the namespaces of their networks, which
are those of pytest; and Hypothesis without a clock."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections import Counter
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from netfold.protocol.environment import Variable
from netfold.testbed.network.modes import NetworkMode, try_mode
from netfold.testbed.network.namespaces import identity

# Commands that tests call, or start, make and find networks in here: they would run pytest again in others.
os.environ[Variable.NAMESPACE] = str(identity("net"))
os.environ.pop(Variable.NAME, None)

# A machine that is busy with something else is slow, too.
settings.register_profile("netfold", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("netfold")


class _Loop(asyncio.SelectorEventLoop):
    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """gRPC has one queue of events for all loops of a process, and hands each on by this. If that raises, as a
        closed loop does, what lies behind it stays in the queue: a later test's call may wait for good."""
        if self.is_closed():
            return asyncio.Handle(callback, args, self, context)
        return super().call_soon_threadsafe(callback, *args, context=context)


class _Loops(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return _Loop()


asyncio.set_event_loop_policy(_Loops())

_NEEDS_NAMESPACES = ("root", "mininet")
"""Markers of tests that make namespaces and links."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Root of a container may be refused what these tests need: they are skipped, with the setting that forbids it."""
    marked = [i for i in items if any(i.get_closest_marker(m) for m in _NEEDS_NAMESPACES)]
    if not marked or os.geteuid() != 0 or (reason := try_mode(NetworkMode.MININET)) is None:
        return
    for item in marked:
        item.add_marker(pytest.mark.skip(reason=f"SKIPPED: no network namespaces: {reason}"), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Give an `async def test` a loop of its own."""
    test = pyfuncitem.obj
    if inspect.iscoroutinefunction(test):
        pyfuncitem.obj = lambda **arguments: asyncio.run(test(**arguments))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tests that could not run are counted by reason: pytest's own summary has a line for each place."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(str(r.longrepr[2]).removeprefix("Skipped: ").removeprefix("SKIPPED: ") for r in skipped)
    if reasons:
        terminalreporter.section("not run, by reason")
    for reason, count in reasons.most_common():
        terminalreporter.line(f"{count:6} {reason}")
