# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller run`: wait to lead, then lead until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from netfold.controller.core import Controller, Options
from netfold.controller.jobs.store import Store
from netfold.controller.scheduling.plan_process import PlanProcess
from netfold.controller.service.metrics import metrics_server
from netfold.controller.service.server import ListenError, Security, serving
from netfold.controller.service.servicer import Service
from netfold.controller.service.standby import ServiceProxy, StandbyService
from netfold.controller.switches.devices import Device
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.traffic.congestion import MARK_FRACTION

STANDBY_POLL_S = 0.2

PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""What gRPC looks at in the environment: ways to the web, not to switches. finsy's channels have no option
against it."""


@dataclass(frozen=True)
class DaemonOptions:
    """`state` is the database; `metrics_port` 0 serves none. `mark_fraction` is of each port's queue."""

    state: Path
    listen: str
    security: Security | None
    controller: Options
    first_grpc_port: int
    metrics_port: int = 0
    mark_fraction: float = MARK_FRACTION
    devices: Mapping[str, Device] = field(default_factory=dict)


async def run(fabric: Fabric, options: DaemonOptions, say: Callable[[str], None]) -> None:
    """Until SIGINT or SIGTERM. `say` is told in words when this process serves, as the primary or as its standby.
    Raises StoreError and ListenError."""
    for variable in PROXIES:
        os.environ.pop(variable, None)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    store = Store(options.state, fingerprint(fabric))
    known = addresses(fabric, options.first_grpc_port)
    setting = FabricConfig(fabric, known, store.mark, options.mark_fraction, options.devices)
    try:
        async with contextlib.AsyncExitStack() as serves:
            term = store.try_lead()
            if term is not None:
                await _lead(setting, options, store, term, Listener(serves, options), say, stop)
            else:
                await _stand_by(setting, options, store, Listener(serves, options), say, stop)
    finally:
        store.close()


class Listener:
    """Address on which this process serves; leader and standby may change roles while it does."""

    def __init__(self, serves: contextlib.AsyncExitStack, options: DaemonOptions) -> None:
        self._serves = serves
        self._options = options
        self._front: ServiceProxy | None = None
        self.address = ""

    async def take(self, service: pb_grpc.ControllerServicer) -> None:
        """Let `service` answer from now on. Raises ListenError."""
        if self._front is not None:
            self._front.behind = service
            return
        front = ServiceProxy(service)
        options = self._options
        self.address = await self._serves.enter_async_context(
            serving(front, options.listen, options.security)
        )
        self._front = front


async def _stand_by(
    setting: FabricConfig,
    options: DaemonOptions,
    store: Store,
    post: Listener,
    say: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Answer what the store tells, until the leader is gone; then lead."""
    service = StandbyService(setting, options.controller.wire, store)
    try:
        await post.take(service)
        say(f"standby at {post.address}; the primary is at {store.primary or 'an address not told yet'}")
    except ListenError as error:
        say(f"standby without an address of its own: {error}; give it one with --listen")
    term = await _until_leader(store, stop)
    service.retire()
    if term is not None:
        await _lead(setting, options, store, term, post, say, stop)


async def _until_leader(store: Store, stop: asyncio.Event) -> int | None:
    """The kernel gives no event for another process's lock, so a standby asks now and then."""
    while not stop.is_set():
        term = store.try_lead()
        if term is not None:
            return term
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), STANDBY_POLL_S)
    return None


async def _lead(
    setting: FabricConfig,
    options: DaemonOptions,
    store: Store,
    term: int,
    post: Listener,
    say: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    plans = PlanProcess(setting.fabric)
    await plans.start()
    controller = Controller(setting, store, options.controller, term, plans)
    running = asyncio.create_task(controller.run())
    stopping = asyncio.create_task(stop.wait())
    try:
        with metrics_server(controller, options.metrics_port):
            await post.take(Service(controller))
            with store.change():
                store.set_primary(post.address)
            say(f"serving at {post.address}")
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await plans.close()


def fingerprint(fabric: Fabric) -> str:
    """The same for the same fabric; a store belongs to one."""
    return hashlib.sha256(repr((fabric.name, fabric.elements, fabric.links)).encode()).hexdigest()[:16]
