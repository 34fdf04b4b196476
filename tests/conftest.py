# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The event loops of tests, of which a process has many, one after the other; and the namespaces of their networks,
which are those of pytest."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextvars import Context
from typing import Any

from netfold.protocol.runtime import NAME_VARIABLE
from netfold.testbed.network.holder import NAMESPACE_VARIABLE
from netfold.testbed.network.namespaces import identity

# Commands that tests call, or start, make and find networks in here: they would run pytest again in others.
os.environ[NAMESPACE_VARIABLE] = str(identity("net"))
os.environ.pop(NAME_VARIABLE, None)


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
