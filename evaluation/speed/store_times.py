# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Times of changes to a store, of small jobs and of large ones, and a store of many jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from netfold.controller.core import Controller
from netfold.controller.jobs.engine import StoreUnavailableError
from netfold.controller.jobs.etcd_engine import engine_of
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement
from netfold.controller.jobs.slot_allocator import BLOCK, Range
from netfold.controller.jobs.store import Store
from netfold.controller.jobs.stored_fabric import fabric_text
from netfold.controller.lifecycle.allocation import ranges_of
from netfold.controller.lifecycle.background_tasks import STORE_RETRY_S
from netfold.controller.lifecycle.joins import Joins
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.scheduling.plan_process import PlanProcess
from netfold.controller.subsystems import Options
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.programs import program_for
from netfold.p4src.manifest import Form
from netfold.protocol.constants import PORT_FIRST
from netfold.simulator.schemes.straight import straight_plan
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine

LANES = 32
LEAVES, SPINES, HOSTS, SLOTS = 32, 4, 32, 1 << 15
FABRIC = f"""name: many
generate: {{leaf_spine: {{leaves: {LEAVES}, spines: {SPINES}, hosts_per_leaf: {HOSTS}, slots: {SLOTS}}}}}
"""
SMALL, LOST_S = 8, 120.0
SPINE = "spine1"
"""The root of a tree of each job."""
JOB = "name: {}\nworkers: [{}]\nscheme: switchml\nrate: 0.01\nlease_ms: 600000\njoin_s: 3600\n"


@dataclass(frozen=True)
class ManyJobs:
    """`records` are jobs that run, on `fabric`."""

    fabric: Fabric
    records: Sequence[JobRecord]

    @property
    def config(self) -> FabricConfig:
        return FabricConfig(self.fabric, addresses(self.fabric), 2000)


def many_jobs(small: int, large: int) -> ManyJobs:
    """Jobs of 8 workers with a tree each, and of all workers with two. Their numbers are made here: an allocation reads
    all jobs, so that a thousand of them take minutes."""
    fabric = leaf_spine(LEAVES, SPINES, HOSTS, slots=SLOTS, name="many")
    hosts = [host.name for host in fabric.hosts]
    numbers = iter(range(1, 1024))
    records = [_job(fabric, f"large{n}", hosts, 2, numbers, n) for n in range(large)]
    for n in range(small):
        workers = [hosts[(SMALL * n + 129 * i) % len(hosts)] for i in range(SMALL)]
        records.append(_job(fabric, f"small{n}", workers, 1, numbers, large + n))
    return ManyJobs(fabric, records)


def _job(
    fabric: Fabric, name: str, workers: Sequence[str], trees: int, numbers: Iterator[int], seq: int
) -> JobRecord:
    plan = straight_plan(fabric, workers, name, trees)
    allocated = []
    for tree in plan.trees:
        number = next(numbers)
        bases = {node: BLOCK * number for node in tree.nodes if not fabric.is_host(node)}
        allocated.append(AllocatedTree(tree=number, slots=BLOCK, window=BLOCK // 2, bases=bases))
    return JobRecord(
        name=name,
        seq=seq,
        spec_yaml=JOB.format(name, ", ".join(workers)),
        state=JobState.RUNNING,
        udp_port=PORT_FIRST + seq % 256,
        placement=Placement(plan=plan, trees=tuple(allocated), epoch=1),
        members=tuple(Member(host=worker) for worker in workers),
        has_run=True,
        ran_since=time.time(),
    )


def fill(state: str, made: ManyJobs) -> None:
    """Put the jobs into a new store."""
    with closing(Store(engine_of(state), fabric_text(made.fabric))) as store:
        for record in made.records:
            with store.change():
                store.put(record)
                assert record.placement is not None
                store.use_slots(ranges_of(record.placement), 1)
        with store.change():
            store.set_number("seq", len(made.records))


@contextmanager
def controller_of(state: str, made: ManyJobs) -> Iterator[Controller]:
    """A controller with the jobs of a store, whose switches it does not look for. It is used in a running loop."""
    with closing(Store(engine_of(state), fabric_text(made.fabric))) as store:
        if not store.try_lead(object):
            raise AssertionError(f"{state}: another process leads")
        program = program_for(made.fabric.switches, LANES, form=Form.V1MODEL)
        options = Options(PacketModel(LANES), Pipeline(program.p4info, program.blob))
        yield Controller(made.config, store, options, 1, PlanProcess(made.fabric))
        store.engine.release()


def time_of(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


# ---- changes -------------------------------------------------------------------------------------


def change_times(state: str, change: Callable[[Store, int], None], count: int) -> list[float]:
    """Times of transactions, each with its number."""
    with closing(Store(engine_of(state), "")) as store:
        found = []
        for number in range(count):
            began = time.perf_counter()
            with store.change():
                change(store, number)
            found.append(time.perf_counter() - began)
        return found


def member_joins(store: Store, number: int) -> None:
    store.put_member("large0", Member(host=f"h{number}", joined=True, process=number))


def job_changes(store: Store, number: int) -> None:
    store.put(_record("runs", 8, 1500, number))


def submit_small(store: Store, number: int) -> None:
    _submit(store, _record("small", 8, 1500, number), 4, number)


def submit_large(store: Store, number: int) -> None:
    _submit(store, _record("large", 1024, 100_000, number), 80, number)


def _record(name: str, workers: int, size: int, number: int) -> JobRecord:
    """A job whose record has `size` bytes beside its members."""
    members = tuple(Member(host=f"h{n}") for n in range(workers))
    text = "".join(chr(97 + (n * n + number) % 26) for n in range(size))
    return JobRecord(name=name, seq=number, spec_yaml=text, state=JobState.RUNNING, members=members)


def _submit(store: Store, record: JobRecord, switches: int, number: int) -> None:
    store.set_number("seq", number)
    store.put(record)
    store.use_slots({f"s{n}": [Range(0, 1024)] for n in range(switches)}, number + 1)


CHANGES: dict[str, tuple[Callable[[Store, int], None], int]] = {
    "a member joins": (member_joins, 200),
    "a job of 8 workers changes": (job_changes, 200),
    "submit over 4 switches": (submit_small, 100),
    "submit over 80 switches, 1,024 workers": (submit_large, 30),
}
"""Transactions by name, and how many are timed."""


# ---- many jobs -----------------------------------------------------------------------------------


def join_time(state: str, made: ManyJobs) -> float:
    """Seconds in which all workers of the first job join, in one turn of the loop."""

    async def all_joined() -> float:
        with controller_of(state, made) as controller:
            job = made.records[0]
            members = controller.jobs.members
            joins = Joins(controller.state, members)

            async def join(host: str) -> None:
                members.join(job.name, host, 1, is_new=True)
                await joins.store(job.name, host, 1, supports_targets=True)
                members.heartbeat(job.name, host, 1)

            began = time.perf_counter()
            await asyncio.gather(*(join(member.host) for member in job.members))
            return time.perf_counter() - began

    return asyncio.run(all_joined())


def open_time(state: str, made: ManyJobs) -> float:
    """Seconds in which a store is read, and its jobs are parsed."""

    def opened() -> None:
        with closing(Store(engine_of(state), fabric_text(made.fabric))) as store:
            store.jobs()

    return time_of(opened)


def lost_spine_time(state: str, made: ManyJobs) -> float:
    """Seconds in which all jobs get a new epoch, because the switch below all of them lost its registers."""

    async def lost() -> float:
        with controller_of(state, made) as controller:
            await controller.jobs.lifecycle.compute_routes()
            controller.jobs.lifecycle.retarget()
            began, end = time.perf_counter(), time.monotonic() + LOST_S
            done = set[str]()
            while True:
                try:
                    await controller.jobs.epochs.on_registers_lost(SPINE, done)
                except StoreUnavailableError:  # etcd is late, and a controller tries again
                    if time.monotonic() > end:
                        raise
                    await asyncio.sleep(STORE_RETRY_S)
                else:
                    return time.perf_counter() - began

    return asyncio.run(lost())
