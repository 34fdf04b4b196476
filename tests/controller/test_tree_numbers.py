# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of trees are unique at each switch, UDP ports of jobs at each host: a fabric has more of both than one of its
switches or hosts. Switches have room for a number of admission entries."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState, Member, Placement
from netfold.controller.jobs.store import Store
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.switch_requirements import MAX_ENTRIES, AdmissionEntries
from netfold.controller.lifecycle.tree_numbers import MAX_TREES, UDP_PORTS, TreeNumbers, free_udp_port
from netfold.controller.planning.plan import Edge, Loads, Plan, Tree
from netfold.controller.planning.validate import add_loads
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.switches.desired_state import desired_contents
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.tree_entities import tree_entities
from netfold.controller.switches.tree_feature import InstalledTree
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric
from netfold.topologies.generators import leaf_spine
from tests.controller.deployment import ready
from tests.simulation.watch import check_numbers

ROOM = MAX_TREES[None]
TWO_RACKS = leaf_spine(2, 1, 2)


def rack_tree(leaf: str, hosts: Iterable[str]) -> Tree:
    """The leaf adds up its hosts."""
    names = tuple(hosts)
    edges = tuple(Edge(h, leaf, (h, leaf)) for h in names)
    return Tree(leaf, 1.0, edges, tuple((leaf, h) for h in names))


LEFT, RIGHT = rack_tree("leaf1", ("h1", "h2")), rack_tree("leaf2", ("h3", "h4"))
BOTH = Tree(
    "spine1",
    1.0,
    (Edge("h1", "spine1", ("h1", "leaf1", "spine1")), Edge("h3", "spine1", ("h3", "leaf2", "spine1"))),
    (("spine1", "leaf1"), ("leaf1", "h1"), ("spine1", "leaf2"), ("leaf2", "h3")),
)


def placed(tree: Tree, number: int) -> Placement:
    plan = Plan("job", "fabric", "test", "Gbit/s", (tree,), 1.0, Loads())
    return Placement(plan=plan, trees=(AllocatedTree(tree=number, slots=16, window=8, bases={}),), epoch=1)


def test_trees_without_a_common_switch_may_have_one_number() -> None:
    numbers = TreeNumbers(TWO_RACKS, [placed(LEFT, 1)], last=0)
    assert numbers.take(RIGHT, "job") == 1


def test_trees_with_a_common_switch_have_numbers_of_their_own() -> None:
    """Also where the switch only forwards one of them."""
    numbers = TreeNumbers(TWO_RACKS, [placed(LEFT, 1), placed(RIGHT, 2)], last=0)
    assert numbers.take(BOTH, "job") == 3
    assert numbers.take(LEFT, "job") == 4


def test_a_number_is_used_again_as_late_as_possible() -> None:
    numbers = TreeNumbers(TWO_RACKS, [], last=ROOM - 1)
    assert [numbers.take(LEFT, "job") for _ in range(3)] == [ROOM, 1, 2]


def test_a_full_switch_is_named_with_what_it_takes() -> None:
    numbers = TreeNumbers(TWO_RACKS, [placed(LEFT, n) for n in range(1, ROOM + 1)], last=0)
    with pytest.raises(
        RefusedError, match=f"none of {ROOM} tree numbers .* switch leaf1 has {ROOM} in use; wait"
    ):
        numbers.take(BOTH, "job")
    assert numbers.take(RIGHT, "job") == 1


def record(name: str, hosts: Iterable[str], port: int = 0) -> JobRecord:
    members = tuple(Member(host=h) for h in hosts)
    return JobRecord(name=name, seq=1, spec_yaml="", state=JobState.RUNNING, members=members, udp_port=port)


def test_jobs_share_a_port_if_they_share_no_host() -> None:
    others = [record(f"job{port}", ["h1"], port) for port in UDP_PORTS]
    assert free_udp_port(record("new", ["h2"]), others, last=0) == UDP_PORTS[0]
    with pytest.raises(
        RefusedError, match=f"job 'new': its hosts are in jobs with all {len(UDP_PORTS)} UDP ports"
    ):
        free_udp_port(record("new", ["h2", "h1"]), others, last=0)


def with_jobs(fabric: Fabric, folder: Path, count: int, trees: int) -> tuple[FabricConfig, list[JobRecord]]:
    """Jobs of a host in each of two racks, all placed."""
    store = Store(folder / "state.db", "fabric")
    config = FabricConfig(fabric, addresses(fabric), store.mark)
    registry = JobRegistry(config, PacketModel(32), store)
    hosts = [h.name for h in fabric.hosts]
    half, loads = len(hosts) // 2, Loads()
    for number in range(count):
        text = (
            f"name: job{number}\nworkers: [{hosts[number % half]}, {hosts[half + number % half]}]\n"
            f"scheme: panama\noptions: {{trees: {trees}}}\nslots: 16\nrate: 1\nseed: {number}\n"
        )
        resolved = resolve_job(text, fabric, "job")
        plan = plan_job(fabric, PlanRequest(resolved, loads))
        loads = add_loads(loads, plan.loads)
        with registry.change():
            registry.write(registry.with_placement(registry.new(resolved), resolved, plan))
    return config, registry.all()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("fabric", "count", "trees"),
    [
        (leaf_spine(36, 6, 16), 288, 4),
        pytest.param(leaf_spine(160, 40, 16), 1000, 8, marks=pytest.mark.long),
    ],
)
def test_a_fabric_has_more_jobs_than_ports_and_more_trees_than_a_switch(
    fabric: Fabric, count: int, trees: int, tmp_path: Path
) -> None:
    config, jobs = with_jobs(fabric, tmp_path, count, trees)
    assert len(jobs) == count > len(UDP_PORTS)
    assert count * trees > ROOM
    assert len({j.udp_port for j in jobs}) <= len(UDP_PORTS)
    assert all(len(j.placement.trees) == trees for j in jobs if j.placement)
    check_numbers(jobs)
    together = desired_contents(config, jobs, FailedElements())
    bare = desired_contents(config, [], FailedElements())
    own = Counter(switch for job in jobs for switch in switches_of_entries(fabric, job))
    assert {s: len(c) - len(bare[s]) for s, c in together.items() if s in own} == dict(own)


def switches_of_entries(fabric: Fabric, job: JobRecord) -> Iterator[str]:
    """Yields the switch of each entry that the job has alone."""
    assert job.placement is not None
    for numbers, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
        installed = InstalledTree(fabric, numbers, tree, job.epoch, job.udp_port, job)
        yield from (switch for switch, _ in tree_entities(installed))


async def test_a_host_with_another_job_of_the_same_port_is_not_added(tmp_path: Path) -> None:
    async with ready(leaf_spine(2, 1, 4), tmp_path) as deployment:
        controller, registry = deployment.controller, deployment.controller.state.registry
        for name, workers in (("a", "[h1, h2]"), ("b", "[h5, h6]")):
            spec = f"name: {name}\nworkers: {workers}\nscheme: switchml\nrate: 9\non_worker_loss: continue\n"
            await controller.requests.submit(spec, queue=False)
            await deployment.runs(name)
        with registry.change():
            registry.write(registry.get("b").model_copy(update={"udp_port": registry.get("a").udp_port}))
        with pytest.raises(
            RefusedError, match=r"'h5' cannot join job 'a': it is in job 'b', .* the same UDP port"
        ):
            controller.jobs.members.add("a", ("h3", "h5"))
        assert controller.jobs.members.add("a", ("h3",)).added == ("h3",)


def rack(leaf: str) -> Placement:
    """A tree of a leaf's two hosts."""
    tree = rack_tree(leaf, ("h1", "h2") if leaf == "leaf1" else ("h3", "h4"))
    numbers = AllocatedTree(tree=1, slots=16, window=8, bases={leaf: 0})
    return Placement(
        plan=Plan("job", "fabric", "test", "Gbit/s", (tree,), 1.0, Loads()), trees=(numbers,), epoch=1
    )


def test_a_tree_that_is_gone_is_forgotten() -> None:
    entries, stays = AdmissionEntries(TWO_RACKS), rack("leaf1")
    gone: list[weakref.ref[Tree]] = []
    for _ in range(50):
        placement = rack("leaf2")
        entries.check(placement, [stays])
        gone.append(weakref.ref(placement.plan.trees[0]))
    del placement
    gc.collect()
    assert [r for r in gone if r() is not None] == []


def test_a_full_switch_is_named_and_the_end_of_trees_makes_room() -> None:
    entries, many = AdmissionEntries(TWO_RACKS), [rack("leaf1")] * MAX_ENTRIES
    with pytest.raises(RefusedError, match=rf"leaf1 would hold \d+ admission entries; it has {MAX_ENTRIES}"):
        entries.check(rack("leaf1"), many)
    entries.check(rack("leaf2"), many[:8])
    entries.check(rack("leaf1"), many[:8])
