# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Free slots whose epochs are nearly used up are reset in-band, so that epochs count from the beginning again."""

from __future__ import annotations

import asyncio
import logging

from netfold.controller.health.links import LinkProbes
from netfold.controller.jobs.records import LAST_EPOCH
from netfold.controller.jobs.slot_ranges import BLOCK
from netfold.controller.lifecycle.book import Book
from netfold.controller.switches.session import SwitchAwayError
from netfold.traffic.packets.wire import Kind

log = logging.getLogger(__name__)

WORN = LAST_EPOCH * 3 // 4
PERIOD_S = 10.0


class Recycler:
    """`run` looks for worn blocks now and then, until it is canceled."""

    def __init__(self, book: Book, links: LinkProbes, period_s: float = PERIOD_S) -> None:
        self._book = book
        self._links = links
        self._period_s = period_s

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            for switch in self._book.pools():
                await self.recycle(switch)

    async def recycle(self, switch: str) -> int:
        """Reset the worn free blocks of a switch; returns how many. A block is reset when all its slots answered, in
        every pipe."""
        done = 0
        for block in self._book.pools()[switch].worn(WORN):
            if not self._book.is_free(switch, block):
                continue  # it was handed out meanwhile
            with self._book.set_aside(switch, block):
                try:
                    for pipe in self._links.pipes(switch):
                        for slot in range(block * BLOCK, (block + 1) * BLOCK):
                            await self._links.manage(switch, Kind.RESET, slot, pipe)
                except SwitchAwayError as error:
                    log.info("slots stay worn: %s", error)
                    break
                with self._book.change():
                    self._book.registers_empty(switch, [block])
            done += 1
        return done
