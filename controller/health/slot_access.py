# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Sends READ and RESET of slots for the controller, in-band: by the CPU port, or by a loopback port to the slots of
another pipe. The recycler resets free slots whose epochs are nearly used up, so that their epochs start again at 1."""

from __future__ import annotations

import asyncio
import logging

from netfold.controller.jobs.records import LAST_EPOCH
from netfold.controller.jobs.slot_allocator import BLOCK
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.switches.deadline import Deadline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.management import SlotView, management_packet
from netfold.controller.switches.session import SwitchUnreachableError
from netfold.protocol.wire import Kind
from netfold.topologies.fabric import Switch

log = logging.getLogger(__name__)

ANSWER_TIMEOUT_S = 5.0
"""Seconds that an answer may take: a switch on a busy machine answers late."""

RECYCLE_EPOCH = LAST_EPOCH * 3 // 4
RECYCLE_PERIOD_S = 10.0
"""Seconds between two checks of free blocks. Few are near the limit, and none is needed shortly: the pace spares the
switches."""


class SlotAccess:
    def __init__(self, config: FabricConfig, lanes: int, fleet: Fleet) -> None:
        self._config = config
        self._lanes = lanes
        self._fleet = fleet
        self._ports = {s.name: _controller_ports(config, s) for s in config.fabric.switches}
        self._waiting: dict[tuple[str, int], asyncio.Future[SlotView]] = {}
        self._request = 0

    def pipes(self, switch: str) -> list[int]:
        """The pipes of a switch that have slots, the controller's own first."""
        fabric, ports = self._config.fabric, self._ports[switch]
        used = {fabric.switch(switch).pipe(p) for p in fabric.ports[switch].values()}
        return [*ports, *sorted(used - ports.keys())]

    async def manage(self, switch: str, kind: Kind, slot: int, pipe: int | None = None) -> SlotView:
        """READ or RESET a slot of the controller's own pipe, or of `pipe`. Raises SwitchUnreachableError if no answer
        comes within ANSWER_TIMEOUT_S, or the pipe has no loopback port."""
        ports = self._ports[switch]
        own = next(iter(ports))
        chosen = own if pipe is None else pipe
        if chosen not in ports:
            raise SwitchUnreachableError(
                f"slot {slot} of switch {switch} is out of reach: pipe {chosen} has no loopback port"
            )
        egress_port = 0 if chosen == own else ports[chosen]
        self._request = (self._request + 1) & 0xFFFF
        key = (switch, self._request)
        answer: asyncio.Future[SlotView] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        try:
            packet = management_packet(self._config, self._lanes, switch, kind, slot, self._request)
            await self._fleet.sessions[switch].packet_out(packet, egress_port)
            async with Deadline(ANSWER_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise SwitchUnreachableError(
                f"switch {switch} did not answer for slot {slot} within {ANSWER_TIMEOUT_S:g} s"
            ) from None
        finally:
            self._waiting.pop(key, None)

    async def check_forwards(self, switch: str) -> None:
        """Wait until the switch has answered a READ: it has then processed all earlier packets. Raises
        SwitchUnreachableError."""
        await self.manage(switch, Kind.READ, 0)

    def on_answer(self, switch: str, view: SlotView) -> bool:
        """Take the answer to a READ or RESET of the controller. False: the packet came from a neighbor."""
        if view.ingress_port not in self._ports[switch].values():
            return False
        answer = self._waiting.pop((switch, view.request), None)
        if answer is not None and not answer.done():
            answer.set_result(view)
        return True


class Recycler:
    """Resets blocks near the epoch limit every `period_s` in `run`, until it is canceled."""

    def __init__(self, registry: JobRegistry, slots: SlotAccess, period_s: float = RECYCLE_PERIOD_S) -> None:
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


def _controller_ports(config: FabricConfig, switch: Switch) -> dict[int, int]:
    """The ports by which the controller's packets enter, by pipe: the CPU port first, then loopback ports."""
    cpu_port = config.device(switch.name).cpu_port
    ports = {switch.pipe(cpu_port): cpu_port}
    for loopback in switch.loopbacks:
        ports.setdefault(switch.pipe(loopback.port), loopback.port)
    return ports
