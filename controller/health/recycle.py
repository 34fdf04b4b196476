# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Resets free slots whose epochs are nearly used up, in-band, so that their epochs start again at 1."""

from __future__ import annotations

import asyncio
import logging

from netfold.controller.health.slot_access import SlotAccess
from netfold.controller.jobs.records import LAST_EPOCH
from netfold.controller.jobs.slot_allocator import BLOCK
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind

log = logging.getLogger(__name__)

RECYCLE_EPOCH = LAST_EPOCH * 3 // 4
PERIOD_S = 10.0
"""Seconds between two checks of free blocks. Few are near the limit, and none is needed shortly: the pace spares the
switches."""


class Recycler:
    """Resets blocks near the epoch limit every `period_s` in `run`, until it is canceled."""

    def __init__(self, registry: JobRegistry, slots: SlotAccess, period_s: float = PERIOD_S) -> None:
        self._registry = registry
        self._slots = slots
        self._period_s = period_s

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._period_s)
            for switch in self._registry.occupancy():
                await self.recycle(switch)

    async def recycle(self, switch: str) -> int:
        """Reset the free blocks of a switch that are near the epoch limit, and return their number. A block is reset
        when all its slots in every pipe have answered."""
        done = 0
        for block in self._registry.pool(switch).near_epoch_limit(RECYCLE_EPOCH):
            if not self._registry.is_free(switch, block):
                continue  # a tree has got it since
            with self._registry.quarantine(switch, block):
                try:
                    for pipe in self._slots.pipes(switch):
                        for slot in range(block * BLOCK, (block + 1) * BLOCK):
                            await self._slots.manage(switch, Kind.RESET, slot, pipe)
                except SwitchUnreachableError as error:
                    log.info("slots stay near the epoch limit: %s", error)
                    break
                with self._registry.change():
                    self._registry.registers_empty(switch, [block])
            done += 1
        return done
