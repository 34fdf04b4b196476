# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's process: the whole controller and its service on a unix socket, its switches in memory."""

from __future__ import annotations

import asyncio
import logging
import resource
from contextlib import AsyncExitStack, closing
from multiprocessing.connection import Connection
from pathlib import Path

from netfold.controller.core import Controller, Options
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.job_admission import PacketModel
from netfold.controller.scheduling.plan_process import PlanProcess
from netfold.controller.service.connection_limits import raise_file_limit
from netfold.controller.service.daemon import fingerprint
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import Service
from netfold.controller.switches.compiled_programs import program_for
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.program_limits import limit_children, program_of
from netfold.evaluation.speed.member_streams.pipes import received
from netfold.evaluation.speed.member_streams.switches import MemorySwitches
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric

LANES = 64
SAVE = "save"


def control(fabric: Fabric, folder: Path, pipe: Connection) -> None:
    """Sends True when all switches are connected, then its processor time (s, without the planner's process) for each
    message, and ends with the pipe. SAVE: writes down what the switches have, and sends True. The next controller of
    this folder takes over its store and these switches."""
    with closing(Store(folder / "state.db", fingerprint(fabric))) as store:
        asyncio.run(_control(fabric, folder, store, pipe))


async def _control(fabric: Fabric, folder: Path, store: Store, pipe: Connection) -> None:
    logging.basicConfig(level=logging.ERROR)  # the end of the measurement is a loss of all switches
    raise_file_limit()
    pipeline = program_for(fabric.switches, LANES)
    limited = limit_children(fabric, program_of(fabric, pipeline, {}))
    term = store.try_lead()
    assert term is not None
    config = FabricConfig(limited, addresses(limited), store.mark)
    plans = PlanProcess(limited)
    options = Options(PacketModel(LANES), pipeline, probe_s=0.0)
    switches = MemorySwitches(folder / "switches")
    controller = Controller(config, store, options, term, plans, connect=switches.connect)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(plans.close)
        await plans.start()
        running = asyncio.create_task(controller.run())
        stack.callback(running.cancel)
        await stack.enter_async_context(serving(Service(controller), socket_of(folder), None))
        await controller.failure_monitor.all_known()
        pipe.send(True)
        async for message in received(pipe):
            if message == SAVE:
                switches.save()
                pipe.send(True)
            else:
                pipe.send(processor_s())


def socket_of(folder: Path) -> str:
    return f"unix:{folder}/s"


def processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
