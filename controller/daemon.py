# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller run`: wait to lead, then lead until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from controller.core import Controller, Options
from controller.desired import Setting
from controller.metrics import metrics_server
from controller.server import Security, serving
from controller.service import Service
from controller.store import Store
from topologies.addressing import addresses
from topologies.fabric import Fabric

log = logging.getLogger(__name__)

STANDBY_POLL_S = 0.2


@dataclass(frozen=True)
class DaemonOptions:
    """`state` is the database; `metrics_port` 0 serves none. `mark_fraction` is of each port's queue."""

    state: Path
    listen: str
    security: Security | None
    controller: Options
    first_grpc_port: int
    metrics_port: int = 0
    mark_fraction: float = 0.25


async def run(fabric: Fabric, options: DaemonOptions, started: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `started(address)` is called once this process leads and serves. Raises
    StoreError and ListenError."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    store = Store(options.state, fingerprint(fabric))
    try:
        term = await _until_leader(store, stop)
        if term is not None:
            await _lead(fabric, options, store, term, started, stop)
    finally:
        store.close()


async def _until_leader(store: Store, stop: asyncio.Event) -> int | None:
    """The kernel gives no event for another process's lock, so a standby asks now and then."""
    waiting = False
    while not stop.is_set():
        term = store.try_lead()
        if term is not None:
            return term
        if not waiting:
            log.info("standby: another controller leads")
            waiting = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), STANDBY_POLL_S)
    return None


async def _lead(
    fabric: Fabric,
    options: DaemonOptions,
    store: Store,
    term: int,
    started: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    known = addresses(fabric, options.first_grpc_port)
    setting = Setting(fabric, known, store.mark, options.mark_fraction)
    controller = Controller(setting, store, options.controller, term)
    running = asyncio.create_task(controller.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        with metrics_server(controller, options.metrics_port):
            async with serving(Service(controller), options.listen, options.security) as address:
                started(address)
                await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def fingerprint(fabric: Fabric) -> str:
    """The same for the same fabric; a store belongs to one."""
    return hashlib.sha256(repr((fabric.name, fabric.elements, fabric.links)).encode()).hexdigest()[:16]
