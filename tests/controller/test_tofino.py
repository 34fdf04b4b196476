# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The target `tofino`: what is written into a switch with Stratum's manners, and what its file may say."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import finsy as fy
import pytest
import typer
from typer.testing import CliRunner

from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.slot_allocator import Range
from netfold.controller.lifecycle.switch_requirements import MAX_ENTRIES, MAX_ENTRIES_OF_CHIPS
from netfold.controller.lifecycle.tree_numbers import MAX_TREES
from netfold.controller.operator.controller_commands import run_controller
from netfold.controller.switches.base_entries import BaseEntries
from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import Device, SwitchTarget, packet_cells, programs
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.entries import SelectorGroup, SelectorMember, TableEntry
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.install import Phase, phase_of, write_batches
from netfold.controller.switches.server_forms import expand_action_sets
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, Host, Link, Loopback, Switch, SwitchRole
from netfold.topologies.generators import fat_tree, leaf_spine
from netfold.topologies.ports import Chip
from netfold.topologies.yaml_locations import SpecError
from tests.controller.deployment import COMPILED, PIPELINE, deployed, ready, switch_contents

PIPE = 128
SPEC = "name: job\nscheme: switchml\nrate: 20\n"


def chips() -> Fabric:
    """A leaf with two pipes and two spines; the other leaf is a program."""
    ports = (("h1", 4), ("h2", PIPE + 4), ("spine1", 8), ("spine2", PIPE + 8))
    loopbacks = (Loopback(68, 100), Loopback(PIPE + 68, 100))
    leaf1 = Switch("leaf1", SwitchRole.LEAF, 1000.0, 64, ports, Chip.TOFINO, loopbacks)
    others = [Switch(n, capacity=1000.0, slots=64) for n in ("leaf2", "spine1", "spine2")]
    hosts = tuple(Host(f"h{i}") for i in range(1, 5))
    pairs = [("h1", "leaf1"), ("h2", "leaf1"), ("h3", "leaf2"), ("h4", "leaf2")]
    pairs += [(leaf, spine) for leaf in ("leaf1", "leaf2") for spine in ("spine1", "spine2")]
    return Fabric("chips", hosts, (leaf1, *others), tuple(Link(a, b, 100.0) for a, b in pairs))


def tofino(folder: Path) -> Device:
    config = folder / "netfold.pb.bin"
    config.write_bytes(b"\x0a\x07netfold")
    pipeline = Pipeline(PIPELINE.p4info, config)
    return Device(SwitchTarget.TOFINO, None, 7, pipeline, 192, packet_cells(Chip.TOFINO, 32))


async def test_a_job_runs_over_a_switch_with_stratum_s_manners(tmp_path):
    device = tofino(tmp_path)
    async with ready(chips(), tmp_path, devices={"leaf1": device}) as deployment:
        await deployment.run(SPEC)
        deployment.assert_exact()
        leaf = deployment.switches["leaf1"]
        assert leaf.state.config.p4_device_config == device.pipeline.blob.read_bytes()
        assert len(leaf.sets) == 1, "both spines lead to the other rack"
        assert set(leaf.members) == {4, PIPE + 4, 8, PIPE + 8}
        await leaf.restart()
        await deployment.until(lambda: leaf.pushes == 2 and bool(leaf.sets), "pushed again and refilled")
        await deployment.runs("job")
        deployment.assert_exact()
        await leaf.drop_connections()
        await deployment.until(lambda: bool(leaf.clients), "noticed")
        await deployment.settled()
        assert deployment.controller.switches.fleet.health("leaf1").repaired == 0, (
            "what is read back is what was written"
        )
        deployment.controller.requests.cancel("job")
        await deployment.settled_exactly()


async def test_groups_follow_the_links_that_work(tmp_path):
    async with ready(chips(), tmp_path, devices={"leaf1": tofino(tmp_path)}) as deployment:
        leaf = deployment.switches["leaf1"]
        [whole] = leaf.sets
        deployment.controller.switches.link_probes.reported("leaf1", "spine1", down=True)
        await deployment.settled_exactly()
        assert not leaf.sets, "one way is left, which needs no group"
        assert 8 not in leaf.members
        deployment.controller.switches.link_probes.reported("leaf1", "spine1", down=False)
        await deployment.settled_exactly()
        assert list(leaf.sets) == [whole], "the same set has the same number"


async def test_drifted_members_are_repaired_by_an_audit(tmp_path):
    devices = {"leaf1": tofino(tmp_path)}
    async with ready(chips(), tmp_path, devices=devices, audit_s=0.1) as deployment:
        leaf, health = deployment.switches["leaf1"], deployment.controller.switches.fleet.health("leaf1")
        before = switch_contents(leaf)
        [group] = leaf.sets.values()
        del group.members[1:]
        await deployment.until(lambda: health.repaired == 1, "seen")
        await deployment.until(lambda: switch_contents(leaf) == before, "written again")
        deployment.assert_exact()


def test_slots_are_reset_in_every_pipe_or_stay_worn(tmp_path):
    async def scenario(fabric: Fabric, reached: list[int]):
        async with ready(fabric, tmp_path, devices={"leaf1": tofino(tmp_path)}) as deployment:
            with deployment.store.change():
                deployment.store.use_slots({"leaf1": [Range(0, 64)]}, 4000)
            ways = []
            carried = deployment.switches["leaf1"].on_packet_out
            deployment.switches["leaf1"].on_packet_out = lambda packet: (
                ways.append(int.from_bytes(packet.metadata[0].value, "big")),
                carried(packet),
            )
            done = await deployment.controller.switches.recycler.recycle("leaf1")
            assert sorted(set(ways)) == reached
            worn = dict.fromkeys(range(4), 4000)
            expected = (4, {}) if len(reached) == 2 else (0, worn)
            assert (done, deployment.store.epochs("leaf1")) == expected

    asyncio.run(scenario(chips(), [0, 68]))  # the controller's own port 192 lies in pipe 1
    fabric = chips()
    leaf = dataclasses.replace(fabric.switches[0], loopbacks=())
    (tmp_path / "state.db").unlink()
    asyncio.run(scenario(dataclasses.replace(fabric, switches=(leaf, *fabric.switches[1:])), [0]))


@pytest.mark.parametrize("fabric", [leaf_spine(3, 3, 2), fat_tree(4)], ids=["leaf-spine", "fat-tree"])
def test_sets_are_spelled_out_and_nothing_refers_to_what_is_not_there(fabric):
    config = FabricConfig(fabric, addresses(fabric), management_tree=2000)
    for contents in BaseEntries(config).contents(FailedElements()).values():
        written = expand_action_sets(contents)
        assert expand_action_sets(contents) == written
        held: dict = {}
        for step in write_batches({}, written):
            for entity in step.entities:
                for needed in _needs(entity):
                    assert needed in held, f"{entity} comes before {needed}"
            held |= {e.key: e for e in step.entities}
        phases = [phase_of(step.entities[0]) for step in write_batches(written, {})]
        assert phases == sorted(phases, reverse=True), "what refers goes before what it refers to"
        assert {Phase.MEMBERS, Phase.SETS} <= set(phases) or not _ecmp(contents)
        assert _back(written) == contents


def _needs(entity):
    if isinstance(entity, SelectorGroup):
        return [("member", (("member", m),), 0) for m in entity.members]
    if isinstance(entity, TableEntry):
        named = [
            (a.name.removeprefix("by_"), dict(a.args)) for a in entity.actions if a.name.startswith("by_")
        ]
        return [(what, ((what, args[what]),), 0) for what, args in named]
    return []


def _ecmp(contents) -> bool:
    return any(isinstance(e, TableEntry) and len(e.actions) > 1 for e in contents.values())


def _back(written):
    """One-shot contents again."""
    members = {e.member: e.action for e in written.values() if isinstance(e, SelectorMember)}
    groups = {e.group: e.members for e in written.values() if isinstance(e, SelectorGroup)}
    found = {}
    for entity in written.values():
        if isinstance(entity, TableEntry) and entity.actions[0].name.startswith("by_"):
            args = dict(entity.actions[0].args)
            numbers = groups[args["group"]] if "group" in args else (args["member"],)
            actions = tuple(sorted((members[m] for m in numbers), key=lambda a: (a.name, a.args)))
            found[entity.key] = dataclasses.replace(entity, actions=actions)
        elif not isinstance(entity, SelectorMember | SelectorGroup):
            found[entity.key] = entity
    return found


@pytest.mark.parametrize("chip", [None, *Chip])
def test_the_controller_knows_the_sizes_of_every_program(chip):
    path = COMPILED / f"netfold-{chip or 'v1model-32'}.p4info.txtpb"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there: the sizes of that program are not compared")
    schema = fy.P4Schema(path)
    sizes = {t.alias.rpartition(".")[2]: t.size for t in schema.tables}
    entries = MAX_ENTRIES if chip is None else MAX_ENTRIES_OF_CHIPS
    assert sizes["admission"] == entries
    assert sizes["uplink"] > MAX_TREES[chip], "a tree's number is its index"
    assert sizes["downlink"] > MAX_TREES[chip]
    assert schema.counters["verdicts"].size == 32 * (MAX_TREES[chip] + 1)


# ---- the file ------------------------------------------------------------------------------------

GOOD = """\
defaults: {target: tofino, p4info: p4info.txtpb, config: config.bin}
switches:
  leaf1: {address: "10.0.0.11:9339", cpu_port: 320}
  leaf2: {target: v1model, device_id: 9}
  spine1: {target: v1model}
  spine2: {target: v1model}
"""


def _file(tmp_path: Path, text: str) -> Path:
    for name in ("p4info.txtpb", "config.bin"):
        (tmp_path / name).write_text("x")
    path = tmp_path / "switches.yaml"
    path.write_text(text)
    return path


def test_the_file_says_what_each_switch_is(tmp_path):
    devices = read_devices(_file(tmp_path, GOOD), chips(), lanes=32)
    own = Pipeline(tmp_path / "p4info.txtpb", tmp_path / "config.bin")
    assert devices["leaf1"] == Device(SwitchTarget.TOFINO, "10.0.0.11:9339", 1, own, 320, 3)
    assert devices["leaf2"] == Device(SwitchTarget.V1MODEL, None, 9, own, 510, 1)
    assert programs(chips(), devices) == ["leaf2", "spine1", "spine2"]
    known = read_devices(_file(tmp_path, GOOD.replace(", cpu_port: 320", "")), chips(), lanes=32)
    assert known["leaf1"].cpu_port == 192


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("leaf1:", "leaf9:", 3, "'leaf9' is no switch of fabric 'chips'; it has leaf1, leaf2"),
        ("target: tofino", "target: tofina", 1, "'v1model' or 'tofino'"),
        ("cpu_port", "cpuport", 3, "unknown key 'cpuport'; did you mean 'cpu_port'?"),
        ("320", "512", 3, "expected at most 511"),
        ("320", "132", 3, "port 132 of 'leaf1' is the controller's; the fabric has a link or loopback there"),
        ("320", "68", 3, "port 68 of 'leaf1' is the controller's"),
        ('"10.0.0.11:9339"', "localhost", 3, "expected HOST:PORT or unix:PATH"),
        ('address: "10.0.0.11:9339", ', "", 3, "'leaf1' is a tofino and needs 'address'"),
        (", config: config.bin", "", 3, "needs both of p4info and config, or none"),
        ("config.bin", "gone.bin", 1, "the config of 'leaf1' is missing"),
        ("{target: v1model, device_id: 9}", "{device_id: -1}", 4, "expected at least 0"),
        ("spine1: {target: v1model}", 'spine1: {address: "s:1"}', 1, "'spine1' has no 'chip' in fabric 'chips'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_file(tmp_path, old, new, line, says):
    assert GOOD.count(old) == 1, "the case must change one place"
    with pytest.raises(SpecError) as caught:
        read_devices(_file(tmp_path, GOOD.replace(old, new)), chips(), lanes=32)
    assert says in str(caught.value)
    assert line in [p.line for p in caught.value.problems]


def test_the_command_refuses_a_bad_file_before_it_starts(tmp_path):
    path = _file(tmp_path, "switches: {leaf9: {}}\n")
    app = typer.Typer()
    app.command()(run_controller)
    ended = CliRunner().invoke(app, ["leaf-spine-2x2", "--switches", str(path)])
    assert ended.exit_code == 2
    assert "'leaf9' is no switch of fabric" in ended.output.replace("\n", " ")


async def test_programs_keep_their_port_numbers_and_need_no_loopback(tmp_path):
    fabric = chips().in_one_pipe(["leaf1"])
    async with deployed(fabric, tmp_path) as deployment:
        await deployment.run(SPEC)
        deployment.assert_exact()
        assert deployment.state("job") is JobState.RUNNING
        ports = {
            dict(e.match).get("ingress_port")
            for e in deployment.held()["leaf1"].values()
            if e.key[0] == "admission"
        }
        assert 68 not in ports
        assert PIPE + 4 in ports
