# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A pipe between processes in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from typing import Any


async def received(pipe: Connection) -> AsyncIterator[Any]:
    """The messages of the peer until it closes the pipe."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(pipe.fileno(), readable.set)
    try:
        while True:
            await readable.wait()
            readable.clear()
            while pipe.poll():
                try:
                    message = pipe.recv()
                except EOFError:
                    return
                yield message
    finally:
        loop.remove_reader(pipe.fileno())
