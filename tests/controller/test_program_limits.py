# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A node takes as many children as the program of its switch has bits in its bitmap, or fewer if the fabric's file says
so; a file that claims more is refused."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import finsy as fy
import pytest
from typer.testing import CliRunner

from netfold.controller.operator.plan_command import app as plan_app
from netfold.controller.planning.plan import InvalidPlanError, Plan
from netfold.controller.planning.planner import make_plan
from netfold.controller.planning.scheme_registry import BUILT_IN_SCHEMES
from netfold.controller.planning.validate import validate
from netfold.controller.switches.programs import (
    check_lanes,
    lanes_for,
    program_for,
    read_program,
    with_programs,
)
from netfold.p4src.manifest import (
    Form,
    Manifest,
    ManifestError,
    Program,
    own_programs,
    program_of,
    sha256,
    usual_children,
)
from netfold.p4src.tools.p4build import Profile
from netfold.simulator.command.cli import app as simulate_app
from netfold.topologies.children import beyond_programs
from netfold.topologies.fabric import Fabric, FabricError, Switch
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.topologies.ports import Chip
from netfold.topologies.spec import load_fabric
from tests.controller.deployment import ready
from tests.planning.cases import job_on

COMPILED = Path(__file__).parents[2] / "p4src/compiled"
PROGRAM = own_programs()["netfold-v1model-256"]


def with_children(fabric: Fabric, children: int | None) -> Fabric:
    return replace(fabric, switches=tuple(replace(s, children=children) for s in fabric.switches))


def limited(fabric: Fabric, program: Program) -> Fabric:
    return with_programs(fabric, {s.name: program for s in fabric.switches})


def widest_node(fabric: Fabric, plan: Plan) -> int:
    """The most children of a switch in a tree."""
    counts = [
        count
        for tree in plan.trees
        for node, count in Counter(e.parent for e in tree.edges).items()
        if not fabric.is_host(node)
    ]
    return max(counts, default=0)


def test_planners_without_a_controller_assume_ordinary_programs() -> None:
    assert Switch("s1").max_children == usual_children(None) == 32
    assert all(Switch("s1", chip=chip).max_children == 64 for chip in Chip)


@pytest.mark.parametrize("name", own_programs())
def test_a_program_has_registers_and_tables_for_what_the_manifest_says(name: str) -> None:
    """The compiler's files have them: bits of the registers of one slot, actions and tables by name."""
    program, info = own_programs()[name], (COMPILED / f"{name}.p4info.txtpb").read_text()
    assert program_of(COMPILED / f"{name}.p4info.txtpb") == program
    schema = fy.P4Schema(COMPILED / f"{name}.p4info.txtpb")
    bits = {r.alias.rsplit(".", 1)[-1]: r.type_spec.bitwidth for r in schema.registers}
    assert sum(n for r, n in bits.items() if re.fullmatch(r"lanes?_[0-9a-f]+", r)) == 32 * program.lanes
    assert sum(n for r, n in bits.items() if re.fullmatch(r"bitmaps(_low|_high)?", r)) == program.children
    if program.form is not None:
        assert ("add_floats" in (COMPILED / f"{name}.json").read_text()) is program.floats
    assert (".transport_" in info) is program.roce
    assert ("quorums" in info) is program.quorum


def test_a_p4info_that_the_manifest_does_not_describe_is_refused(tmp_path: Path) -> None:
    """A program that was compiled by hand says nothing about itself, and one that has changed is another one."""
    p4info = tmp_path / "mine.p4info.txtpb"
    with pytest.raises(ManifestError, match=r"mine.p4info.txtpb cannot be read: No such file"):
        program_of(p4info)
    p4info.write_text('pkg_info { arch: "v1model" }\n')
    with pytest.raises(
        FabricError, match=r"program of switch 's1': .*manifest.json cannot be read .No such file"
    ):
        read_program(p4info, "s1")
    (tmp_path / "manifest.json").write_text('{"programs": {"mine": {"lanes": "many", "children": 32}}}')
    with pytest.raises(ManifestError, match=r"manifest.json is not a manifest: programs.mine.lanes: "):
        program_of(p4info)
    program = Program(lanes=64, children=8, form=Form.V1MODEL)
    Manifest(programs={"other": program}).write(tmp_path)
    with pytest.raises(ManifestError, match="has no program 'mine'; it has other"):
        program_of(p4info)
    Manifest(programs={"mine": program}, artifacts={p4info.name: sha256(p4info)}).write(tmp_path)
    assert program_of(p4info) == program
    p4info.write_text('pkg_info { arch: "tna" }\n')
    with pytest.raises(
        ManifestError, match=r"is not the file that manifest.json describes: compile it again"
    ):
        program_of(p4info)


def test_programs_of_two_lane_counts_in_one_fabric_are_refused() -> None:
    """A tree over both would add up nothing: a switch takes packets of its own lanes only."""
    narrow, wide = (own_programs()[Profile(lanes).key] for lanes in (64, 256))
    check_lanes({"leaf1": narrow, "leaf2": narrow}, 64)
    expected = "switch 'leaf2' runs a program of 256 lanes, and packets have 64; expected"
    with pytest.raises(FabricError, match=expected):
        check_lanes({"leaf1": narrow, "leaf2": wide}, 64)


def test_a_wider_bitmap_takes_more_children() -> None:
    fabric = limited(single_switch(48), own_programs()[Profile(64, 64).key])
    plan = make_plan(fabric, job_on(fabric))
    assert widest_node(fabric, plan) == 48
    assert plan.rate == pytest.approx(100.0)


def test_a_fabric_may_allow_less_than_the_program() -> None:
    assert {s.max_children for s in limited(with_children(leaf_spine(2, 2, 2), 4), PROGRAM).switches} == {4}
    assert {s.max_children for s in limited(leaf_spine(2, 2, 2), PROGRAM).switches} == {PROGRAM.children}


def test_a_fabric_that_claims_more_than_its_program_names_switch_and_number() -> None:
    expected = re.escape("switch 'leaf1' is said to take 64 children") + ".* takes 32; expected"
    with pytest.raises(FabricError, match=expected):
        limited(with_children(leaf_spine(2, 2, 2), 64), PROGRAM)


@pytest.mark.parametrize(
    ("children", "lanes", "program"),
    [(None, 64, Profile(64)), (4, 64, Profile(64)), (33, 64, Profile(64, 64)), (65, 64, Profile(64, 256))],
)
def test_a_fabric_gets_the_program_that_takes_its_children(
    children: int | None, lanes: int, program: Profile
) -> None:
    fabric = with_children(leaf_spine(2, 2, 2), children)
    chosen = program_for(fabric.switches, lanes)
    assert (chosen.p4info.name, chosen.blob.name) == (program.p4info, program.program)
    assert chosen.blob.is_file()


@pytest.mark.parametrize(
    ("children", "lanes", "program"),
    [
        (None, 256, Profile(256, form=Form.BMV2)),
        (32, 32, Profile(32, form=Form.BMV2)),
        (None, 64, Profile(64)),
        (33, 64, Profile(64, 64)),
    ],
)
def test_bmv2_gets_a_program_of_its_own_form_where_there_is_one(
    children: int | None, lanes: int, program: Profile
) -> None:
    fabric = with_children(leaf_spine(2, 2, 2), children)
    chosen = program_for(fabric.switches, lanes, form=Form.BMV2)
    assert (chosen.p4info.name, chosen.blob.name) == (program.p4info, program.program)
    assert chosen.blob.is_file()


@pytest.mark.parametrize(("children", "lanes"), [(None, 256), (32, 256), (33, 64), (256, 64), (999, 256)])
def test_a_controller_without_lanes_takes_the_most_of_a_program_that_fits(
    children: int | None, lanes: int
) -> None:
    assert lanes_for(with_children(leaf_spine(2, 2, 2), children).switches, 256) == lanes


@pytest.mark.parametrize(
    ("children", "lanes", "expected"),
    [
        (257, 64, "switch 'leaf1' is said to take 257 children, .*64 lanes take 32, 64, 256.*at most 256"),
        (64, 256, "switch 'leaf1' .* 64 children, .*256 lanes take 32; .* or --lanes 64 for at most 256"),
        (None, 48, "no program has 48 lanes; there are programs for 32, 64, 256, 512 lanes"),
    ],
)
def test_a_fabric_that_no_program_takes_is_refused(children: int | None, lanes: int, expected: str) -> None:
    with pytest.raises(FabricError, match=expected):
        program_for(with_children(leaf_spine(2, 2, 2), children).switches, lanes)


@pytest.mark.parametrize(("children", "chip", "most"), [(300, None, 256), (65, Chip.TOFINO, 64)])
def test_a_plan_for_more_children_than_any_program_takes_says_so(
    children: int, chip: Chip | None, most: int
) -> None:
    """Planners obey the fabric's file, and no controller installs such a plan."""
    fabric = with_children(leaf_spine(2, 2, 2), children)
    ports = fabric.ports
    switches = (replace(s, chip=chip, ports=tuple(ports[s.name].items())) for s in fabric.switches)
    fabric = replace(fabric, switches=tuple(switches))
    said = beyond_programs(fabric)
    assert said.startswith(f"switch 'leaf1' of {fabric.name} is said to take {children} children, ")
    assert said.endswith(f"expected 'children' of at most {most}")
    assert not beyond_programs(with_children(leaf_spine(2, 2, 2), 256))
    assert not beyond_programs(with_children(leaf_spine(2, 2, 2), None))


@pytest.mark.parametrize("command", ["plan", "simulate"])
def test_commands_without_a_controller_say_so(command: str, tmp_path: Path) -> None:
    fabric, job = tmp_path / "fabric.yaml", tmp_path / "job.yaml"
    fabric.write_text(
        "name: wide\ndefaults: {link: {rate: 100}, switch: {capacity: 9000, children: 300}}\n"
        "switches: {s1: {}}\nhosts: {h1: {at: s1}, h2: {at: s1}}\n"
    )
    job.write_text("name: j\nworkers: 2\nelements: 1000\n")
    app = {"plan": plan_app, "simulate": simulate_app}[command]
    result = CliRunner().invoke(app, [str(fabric), str(job)])
    assert result.exit_code == 0, result.output
    assert "netfold: switch 's1' of wide is said to take 300 children" in result.stderr


def test_a_file_says_it_for_planning_offline(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text(
        "name: small\ndefaults: {link: {rate: 100}, switch: {capacity: 900, children: 4}}\n"
        "switches: {s1: {}, s2: {children: 3}}\nhosts: {h1: {at: s1}}\nlinks: [{between: [s1, s2]}]\n"
    )
    assert [s.max_children for s in load_fabric(str(file)).switches] == [4, 3]


@pytest.mark.parametrize("scheme", BUILT_IN_SCHEMES)
def test_no_scheme_gives_a_node_more_children_than_it_takes(scheme: str) -> None:
    fabric = with_children(leaf_spine(4, 4, 3, parameter_servers=1), 4)
    assert widest_node(fabric, make_plan(fabric, job_on(fabric, scheme))) <= 4


def test_the_validator_refuses_more_children_than_a_switch_takes() -> None:
    fabric = leaf_spine(2, 2, 4)
    plan = make_plan(fabric, job_on(fabric))
    with pytest.raises(InvalidPlanError, match="children; 3 are the most"):
        validate(with_children(fabric, 3), job_on(fabric), plan)


def test_eleven_leaves_are_added_up_by_nodes_of_four_children() -> None:
    """As 66 workers over 33 leaves with 32 children, only smaller."""
    fabric = with_children(leaf_spine(11, 4, 2), 4)
    for scheme in ("packing", "auto"):
        plan = make_plan(fabric, job_on(fabric, scheme))
        assert widest_node(fabric, plan) == 4
        assert plan.bound is not None
        assert plan.rate >= 0.9 * plan.bound


@pytest.mark.slow
@pytest.mark.parametrize(("fabric", "children"), [(leaf_spine(11, 4, 2), 4), (leaf_spine(33, 2, 2), None)])
async def test_the_controller_installs_more_nodes_than_tiers(
    fabric: Fabric, children: int | None, tmp_path: Path
) -> None:
    """Entries, multicast groups and slots of every node, and no others."""
    async with ready(with_children(fabric, children), tmp_path) as deployment:
        await deployment.run("name: wide\nscheme: packing\n")
        placement = deployment.job("wide").placement
        assert placement is not None
        assert max(len(tree.nodes) for tree in placement.plan.trees) > len(fabric.hosts) // 2
        await deployment.settled_exactly()
