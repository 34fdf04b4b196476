# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An event that happens again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


class Pulse:
    """Wakes everybody who waits."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def beat(self) -> None:
        self._event.set()
        self._event = asyncio.Event()

    def wait(self) -> Awaitable[object]:
        """Of the next beat after this call, whenever it is awaited."""
        return self._event.wait()
