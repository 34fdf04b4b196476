# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A leaf's limits for RoCE workers are checked before anything is installed: the error names the switch, the number,
and what would fit."""

from __future__ import annotations

from collections import Counter

import pytest

from netfold.controller.features.registry import FEATURES
from netfold.controller.features.roce.requirements import MAX_CONNECTIONS, MAX_RESERVED
from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import (
    AllocatedTree,
    ConnectionRecord,
    JobRecord,
    JobState,
    Member,
    Placement,
    QueuePairs,
    Transport,
)
from netfold.controller.lifecycle.allocation import AllocationState, allocate
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.entries import TableEntry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.finsy_adapter import read_schema
from netfold.controller.switches.programs import with_programs
from netfold.p4src.manifest import own_programs
from netfold.p4src.tools.p4build import PROFILES, Profile
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine, single_switch
from tests.controller.deployment import COMPILED

LANES, CHILDREN = 64, 256
WIDE = own_programs()[Profile(LANES, CHILDREN).key]
SPEC = "name: {name}\nworkers: [{workers}]\nparameter_servers: 0\nscheme: {scheme}\ntransport: roce\n"


def wide(fabric: Fabric) -> Fabric:
    return with_programs(fabric, {switch.name: WIDE for switch in fabric.switches})


def hosts(first: int, last: int) -> list[str]:
    return [f"h{number}" for number in range(first, last + 1)]


def placed(
    fabric: Fabric, workers: list[str], *others: JobRecord, scheme: str = "switchml", name: str = "j"
) -> Placement:
    resolved = resolve_job(_spec(workers, scheme, name), fabric)
    plan = plan_job(fabric, PlanRequest(resolved))
    numbers = AllocationState(max((t.tree for job in others for t in _trees(job)), default=0), {})
    return allocate(fabric, PacketModel(LANES), resolved, plan, others, numbers, after_epoch=0)


def registered(
    fabric: Fabric, workers: list[str], *others: JobRecord, scheme: str = "switchml", name: str = "j"
) -> JobRecord:
    """A job all of whose workers have registered their connections."""
    placement = placed(fabric, workers, *others, scheme=scheme, name=name)
    return JobRecord(
        name=name,
        seq=1,
        spec_yaml=_spec(workers, scheme, name),
        state=JobState.RUNNING,
        placement=placement,
        udp_port=61440,
        members=tuple(Member(host=worker) for worker in workers),
        transport=Transport.ROCE,
        queue_pairs=tuple(pairs_of(worker, placement) for worker in workers),
    )


def pairs_of(worker: str, placement: Placement) -> QueuePairs:
    numbers = [planned.tree for planned in placement.trees]
    found = [ConnectionRecord(tree=n, send_qpn=2 * n, recv_qpn=2 * n + 1, first_psn=0) for n in numbers]
    return QueuePairs(host=worker, epoch=placement.epoch, calls=0, connections=tuple(found))


def _spec(workers: list[str], scheme: str, name: str) -> str:
    return SPEC.format(name=name, workers=", ".join(workers), scheme=scheme)


def _trees(job: JobRecord) -> tuple[AllocatedTree, ...]:
    return () if job.placement is None else job.placement.trees


def test_a_worker_at_a_port_beyond_those_of_roce_is_refused() -> None:
    """Where RoCE enters, a port is written as itself and 256, in nine bits."""
    fabric = wide(single_switch(300))
    expected = "job 'j': worker h256 is at port 256 of switch s1; RoCE needs a port of at most 255"
    with pytest.raises(RefusedError, match=expected):
        placed(fabric, ["h45", "h256"])


def test_a_worker_for_which_another_host_could_contribute_is_refused() -> None:
    """Packets by port 257 would be admitted as the RoCE worker's at port 1."""
    fabric = wide(single_switch(300))
    expected = (
        "job 'j': worker h1 is at port 1 of switch s1, and port 257 leads to h257, which could contribute in its "
        "place; RoCE needs port 257 unused"
    )
    with pytest.raises(RefusedError, match=expected):
        placed(fabric, ["h1", "h45"])
    assert placed(fabric, ["h45", "h255"])


@pytest.mark.parametrize("children", [33, 64, 255])
def test_a_leaf_has_room_for_the_roce_workers_of_its_ports(children: int) -> None:
    fabric = wide(single_switch(children))
    held = entries(fabric, registered(fabric, hosts(1, children)))
    assert held["s1", "connections"] == held["s1", "roce_receivers"] == children
    assert held["s1", "reserved_qps"] == 3 * children


def entries(fabric: Fabric, *jobs: JobRecord) -> Counter[tuple[str, str]]:
    """By switch and table."""
    config = FabricConfig(fabric, addresses(fabric), management_tree=2000)
    switches = desired_contents(config, jobs, FailedElements(), features=FEATURES)
    return Counter(
        (switch, entity.table)
        for switch, contents in switches.items()
        for entity in contents.values()
        if isinstance(entity, TableEntry)
    )


def test_a_leaf_without_room_for_a_job_s_queue_pairs_is_named() -> None:
    """Four trees of 240 workers have 960 connections, and 2,160 entries of queue pairs."""
    fabric = wide(leaf_spine(1, 8, 240))
    expected = (
        "job 'j': switch leaf1 would hold 2160 entries of RoCE queue pairs; it has 2048: 3 trees of its 240 workers "
        "there fit"
    )
    with pytest.raises(RefusedError, match=expected):
        placed(fabric, hosts(1, 240), scheme="panama")
    few = hosts(1, 220)
    held = entries(fabric, registered(fabric, few, scheme="panama"))
    assert held["leaf1", "reserved_qps"] == 9 * len(few) <= MAX_RESERVED


def test_a_leaf_without_room_beside_other_jobs_is_named() -> None:
    fabric = wide(leaf_spine(1, 8, 240))
    first = registered(fabric, hosts(1, 120), scheme="panama", name="first")
    beside = registered(fabric, hosts(121, 225), first, scheme="panama", name="second")
    held = entries(fabric, first, beside)
    assert held["leaf1", "reserved_qps"] <= MAX_RESERVED
    assert held["leaf1", "connections"] <= MAX_CONNECTIONS
    with pytest.raises(
        RefusedError, match=r"would hold \d+ entries of RoCE queue pairs; it has 2048: 0 trees"
    ):
        placed(fabric, hosts(226, 240), first, beside, scheme="panama", name="third")
    others = [job.model_copy(update={"transport": Transport.UDP}) for job in (first, beside)]
    assert placed(fabric, hosts(226, 240), *others, scheme="panama", name="third")


def test_queue_pairs_of_an_older_placement_count_until_their_worker_has_new_ones() -> None:
    """They stay closed entries."""
    fabric = wide(leaf_spine(1, 8, 240))
    old = registered(fabric, hosts(1, 220), scheme="panama")
    moved = placed(fabric, hosts(1, 220), scheme="hierarchical")
    assert (len(_trees(old)), len(moved.trees)) == (4, 1)
    job = old.model_copy(update={"placement": moved.model_copy(update={"epoch": 2})})
    assert entries(fabric, job)["leaf1", "reserved_qps"] == 9 * 220
    with pytest.raises(RefusedError, match=r"would hold \d+ entries of RoCE queue pairs"):
        placed(fabric, hosts(221, 240), job, scheme="panama", name="second")


@pytest.mark.parametrize("profile", [p for p in PROFILES if p.lanes in (64, 256)], ids=lambda p: p.name)
def test_the_controller_knows_the_sizes_of_the_programs(profile: Profile) -> None:
    sizes = {t.alias.rpartition(".")[2]: t.size for t in read_schema(COMPILED / profile.p4info).tables}
    assert sizes["connections"] == sizes["roce_receivers"] == MAX_CONNECTIONS
    assert sizes["reserved_qps"] == MAX_RESERVED
