# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Controllers that share a store in a simulated etcd. One leads, and the others stand by, by the daemon's own
turns (controller/service/leadership.py)."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import StoreUnavailableError
from netfold.controller.jobs.etcd_engine import EtcdEngine
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.service.leadership import End, Leadership, lead_until_end, take_turns
from netfold.controller.service.servicer import service_of
from netfold.controller.service.watchdog import MAX_PERIOD_S
from tests.simulation.etcd_channel import Link, runtime_of
from tests.simulation.leaders import Leaders
from tests.simulation.loop import PROCESS, VirtualLoop
from tests.simulation.process import Process
from tests.simulation.scenario import Way
from tests.simulation.server import Server
from tests.simulation.stores import MARK, EtcdStores, engine_on

if TYPE_CHECKING:
    from tests.simulation.world import World

AGAIN_S = 1.0
"""After a process could not begin, until another one does, as of systemd."""
MAX_NOTICED_S = 2.0
"""Until a member leaves a controller that does not lead any more."""


class Cluster:
    def __init__(self, world: World, count: int, way: Way) -> None:
        self.world = world
        self.stores = EtcdStores()
        self.leaders = Leaders(self)
        self.starts = 0
        self.way = way
        self.replicas = [Replica(self, f"machine{n}", Link(faults=way.faults)) for n in range(count)]

    def start(self) -> None:
        """Start the replicas that do not run."""
        for replica in self.replicas:
            replica.start()

    def kill(self) -> None:
        """The process whose code this is; all of them where the world does it."""
        own = PROCESS.get()
        for replica in self.replicas:
            if own is None or replica.process is own:
                replica.kill()

    @property
    def leader(self) -> Replica | None:
        """The one whose lease etcd has."""
        holder = self.stores.etcd.leader.rpartition(":")[2]
        return next((r for r in self.replicas if r.engine is not None and r.engine._process == holder), None)

    def replica(self, number: int) -> Replica:
        """0: the leader; else one that stands by. Where none is such, it is any."""
        leader = self.leader or self.replicas[0]
        others = [r for r in self.replicas if r is not leader]
        return leader if number == 0 or not others else others[(number - 1) % len(others)]

    def on_serve(self, server: Server) -> None:
        """Members come to the new leader. No answer of another one keeps them."""
        for other in (r.server for r in self.replicas if r.server not in (None, server)):
            assert other is not None
            delay_s = self.world.draws.of("members notice").uniform(0, MAX_NOTICED_S)
            asyncio.get_running_loop().call_later(delay_s, other.cut_streams, context=contextvars.Context())

    def heal(self) -> None:
        self.stores.etcd.find_majority()
        for replica in self.replicas:
            replica.link = replica.link.heal()
            replica.resume()


class Replica:
    """A machine of a controller. `engine` and `server` are of the process that runs."""

    def __init__(self, cluster: Cluster, name: str, link: Link) -> None:
        self.name = name
        self.link = link
        self.process: Process | None = None
        self.engine: EtcdEngine | None = None
        self.server: Server | None = None
        self._cluster = cluster
        self._world = cluster.world
        self._store: Store | None = None
        self._ended = asyncio.Event()
        self._beats = 0

    @property
    def _runs(self) -> bool:
        process = self.process
        return process is not None and process.is_alive and not process.is_stopped and not process.is_hung

    @property
    def is_whole(self) -> bool:
        return self._runs and self.link.is_whole

    @property
    def leads(self) -> bool:
        """Whether a process leads, as far as it sees."""
        return self._runs and self.engine is not None and self.engine.is_held

    def resume(self) -> None:
        if self.process is not None and self.process.is_alive:
            self.process.resume()

    # ---- the process ----------------------------------------------------------------------------------

    def start(self) -> None:
        if self.process is not None:
            return
        self._cluster.starts += 1
        process = self.process = Process(f"controller {self._cluster.starts}", has_threads=True)
        self._say(f"{process.name} starts")
        living = process.spawn(self._live(process, self._cluster.starts))
        living.add_done_callback(lambda task: self._on_end(process, task), context=contextvars.Context())

    def kill(self) -> None:
        process = self.process
        if process is None or not process.is_alive:
            return
        self._say(f"{process.name} is killed")
        process.die()
        self._end_lead(process)
        self._world.drop_connections(process)

        def bury() -> None:
            process.unwind()
            if self._store is not None:
                self._store._db.close()
            self.process = self.engine = self._store = None

        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.call_next(bury)

    def _on_end(self, process: Process, task: asyncio.Task[None]) -> None:
        if not process.is_alive:
            return
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailableError):
            self._say(f"{process.name} ends: {error}")
            self.kill()
            asyncio.get_running_loop().call_later(AGAIN_S, self.start)
        else:
            self._world.violations.append(f"{process.name} ended by itself: {error!r}")

    async def _live(self, process: Process, number: int) -> None:
        """Raises StoreUnavailableError if it cannot begin."""
        world, cluster = self._world, self._cluster
        runtime = runtime_of(cluster.stores.etcd, lambda: self.link, process, world.draws)
        engine = self.engine = engine_on(runtime, number, cluster.way.max_keys)
        store = self._store = Store(engine, fabric_text(world.fabric), mark=MARK)
        leadership = Leadership(
            store, world.clock.wall_s, progress=lambda: (self._beats, store.ended_changes)
        )
        beating = asyncio.create_task(self._beat())
        never = asyncio.Event()

        async def stand_by(pause_s: float) -> int | None:
            return await leadership.wait_until_leader(never, pause_s, self.name)

        async def lead(term: int) -> End:
            if beating.done():
                beating.result()
            return await self._lead(process, store, leadership, term, never)

        await take_turns(leadership, never, stand_by, lead, lambda line: self._say(f"{process.name} {line}"))

    async def _beat(self) -> None:
        while True:
            self._beats += 1
            await asyncio.sleep(MAX_PERIOD_S)

    async def _lead(
        self, process: Process, store: Store, leadership: Leadership, term: int, never: asyncio.Event
    ) -> End:
        world = self._world
        world.lead(process, store)
        controller = world.controller = world.make_controller(
            process, store, term, lambda: store.engine.is_held
        )

        async def serve() -> None:
            await asyncio.sleep(world.start_delay_s())
            self._serve(process, controller)
            leadership.publish(self.name, None)

        try:
            end = await lead_until_end(controller, store, never, serve)
            if end is End.STEPPED_DOWN:
                self._cluster.leaders.on_step_down()
            return end
        finally:
            if process.is_alive:
                self._end_lead(process)

    def _serve(self, process: Process, controller: Controller) -> None:
        self._ended = asyncio.Event()
        self.server = Server(service_of(controller), process, self._world.draws, self._ended)
        if self._world.process is process:
            self._world.serve(process, self.server)
            self._cluster.on_serve(self.server)

    def _end_lead(self, process: Process) -> None:
        self._ended.set()
        self.server = None
        self._world.end_lead(process)

    def _say(self, text: str) -> None:
        self._world.history.add(self.name, text)
