# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""For how long something has held."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

Thing = TypeVar("Thing", bound=Hashable)


class Lasting(Generic[Thing]):
    """Since when something holds of things, without a pause."""

    def __init__(self) -> None:
        self._since: dict[Thing, float] = {}

    def update(self, things: Iterable[Thing], seconds: float) -> list[Thing]:
        """These are all of which it holds now. Returns those of which it has for longer than `seconds`."""
        now = asyncio.get_running_loop().time()
        self._since = {t: self._since.get(t, now) for t in things}
        return [t for t, since in self._since.items() if now - since > seconds]

    def clear(self) -> None:
        self._since.clear()
