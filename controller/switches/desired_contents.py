# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Hands the desired contents of one switch from the fleet to the session of the switch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from netfold.controller.switches.entries import Contents


@dataclass(frozen=True)
class DesiredContents:
    """Desired contents; their versions count up."""

    version: int
    contents: Contents


class DesiredContentsInbox:
    """The newest desired contents; older ones are dropped."""

    def __init__(self) -> None:
        self.newest: DesiredContents | None = None
        self._changed = asyncio.Event()

    def put(self, desired: DesiredContents) -> None:
        self.newest = desired
        self._changed.set()

    async def newer_than(self, version: int) -> DesiredContents:
        """Wait for a version above `version`; at once if there is one."""
        while self.newest is None or self.newest.version <= version:
            self._changed.clear()
            await self._changed.wait()
        return self.newest
