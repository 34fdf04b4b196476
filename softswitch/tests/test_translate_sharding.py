# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which programs several threads may run at once, and the reason why others are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from netfold_programs import COMPILED, needs_netfold
from running import program
from softswitch.errors import PipelineError
from softswitch.state.pipeline import Pipeline
from softswitch.translate.program import translate

Tree = dict[str, Any]
INDEX = {"type": "field", "value": ["scalars", "metadata_t.index"]}
ONE = {"type": "hexstr", "value": "0x00000001"}
LANE_0 = {"type": "register_array", "value": "MyIngress.lane_00"}
WRITE = {"op": "register_write", "parameters": [LANE_0, INDEX, ONE]}
"""The program `lanes` adds to the registers at metadata_t.index (action add), which action lanes78 sets before."""


def sharding(tree: Tree) -> Any:
    return translate(json.dumps(tree).encode()).layout["sharding"]


def action(tree: Tree, name: str) -> list[Tree]:
    primitives: list[Tree] = next(a for a in tree["actions"] if a["name"] == name)["primitives"]
    return primitives


def another_index(tree: Tree) -> None:
    claim = {"type": "field", "value": ["slot", "slot"]}
    action(tree, "lanes84").append({"op": "register_write", "parameters": [LANE_0, claim, ONE]})


def fixed_index(tree: Tree) -> None:
    action(tree, "lanes84").append({"op": "register_write", "parameters": [LANE_0, ONE, ONE]})


def index_set_within(tree: Tree) -> None:
    action(tree, "MyIngress.add").append({"op": "assign", "parameters": [INDEX, ONE]})


def index_set_between(tree: Tree) -> None:
    action(tree, "lanes82").append({"op": "assign", "parameters": [INDEX, ONE]})
    action(tree, "lanes84").append(WRITE)


def random_before(tree: Tree) -> None:
    draw = {"op": "modify_field_rng_uniform", "parameters": [INDEX, ONE, ONE]}
    action(tree, "lanes78").append(draw)


def message_before(tree: Tree) -> None:
    message = {
        "op": "log_msg",
        "parameters": [{"type": "string", "value": "x"}, {"type": "parameters_vector", "value": []}],
    }
    action(tree, "lanes78").append(message)


def count_before(tree: Tree) -> None:
    tree["counter_arrays"].append({"name": "MyIngress.seen", "id": 0, "is_direct": False, "size": 4})
    counter = {"type": "counter_array", "value": "MyIngress.seen"}
    action(tree, "lanes78").append({"op": "count", "parameters": [counter, ONE]})


def direct_counter_before(tree: Tree) -> None:
    next(t for t in tree["pipelines"][0]["tables"] if t["name"] == "tbl_lanes78")["with_counters"] = True


def in_a_parser(tree: Tree) -> None:
    tree["parsers"][0]["parse_states"][1]["parser_ops"].append({"op": "primitive", "parameters": [WRITE]})


def in_egress(tree: Tree) -> None:
    tree["actions"].append({"name": "late", "id": 9, "runtime_data": [], "primitives": [WRITE]})
    egress = next(p for p in tree["pipelines"] if p["name"] == "egress")
    egress["action_calls"] = [{"name": "call_late", "id": 0, "action_id": 9, "next_node": None}]
    egress["init_table"] = "call_late"


def resubmitted(tree: Tree) -> None:
    action(tree, "lanes84").append({"op": "resubmit", "parameters": [ONE]})


INDEX_SET = "sets the index of registers, scalars.metadata_t.index, when a register may have been touched"
REFUSED: dict[Callable[[Tree], None], str] = {
    another_index: "register MyIngress.lane_00: action lanes84 has the index slot.slot, "
    "but register MyIngress.lane_00: action MyIngress.add has the index scalars.metadata_t.index",
    fixed_index: "register MyIngress.lane_00: action lanes84 has the index 0x00000001; "
    "expected a field of metadata or of a header",
    index_set_within: f"action MyIngress.add {INDEX_SET}",
    index_set_between: f"action lanes82 {INDEX_SET}",
    random_before: "action lanes78 draws a random number before registers are touched",
    message_before: "action lanes78 writes a log message before registers are touched",
    count_before: "action lanes78 counts before registers are touched",
    direct_counter_before: "table tbl_lanes78 has a direct counter, and registers are touched after it",
    in_a_parser: "register MyIngress.lane_00 is touched by a parser",
    in_egress: "register MyIngress.lane_00: action late is run by egress",
    resubmitted: "action lanes84: resubmit, so a packet may touch registers twice",
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_the_refusal_names_register_action_and_index(change: Callable[[Tree], None]) -> None:
    tree = json.loads(program("lanes"))
    change(tree)
    assert sharding(tree) == {"refusal": REFUSED[change], "steering": None}


def test_a_refused_program_runs_with_one_thread_only(tmp_path: Path) -> None:
    with pytest.raises(
        PipelineError, match=r"2 threads cannot share the program's registers: register MyIngress\.reg"
    ):
        Pipeline.load(program("state"), tmp_path, threads=2)
    Pipeline.load(program("state"), tmp_path, threads=1).close()


def test_what_changes_state_after_the_registers_is_no_reason() -> None:
    tree = json.loads(program("lanes"))
    tree["counter_arrays"].append({"name": "MyIngress.seen", "id": 0, "is_direct": False, "size": 4})
    counter = {"type": "counter_array", "value": "MyIngress.seen"}
    action(tree, "lanes84").append({"op": "count", "parameters": [counter, ONE]})
    action(tree, "lanes84").append({"op": "assign", "parameters": [INDEX, ONE]})
    assert sharding(tree)["refusal"] is None


def test_a_program_without_registers_has_no_field_to_steer_by() -> None:
    assert sharding(json.loads(program("router"))) == {"refusal": None, "steering": None}


def test_frames_are_steered_by_the_field_that_the_index_comes_from() -> None:
    check = {"offset": 12, "size": 2, "mask": 0xFFFF, "value": 0x88B5}
    expected = {"offset": 15, "checks": (check,)}
    assert sharding(json.loads(program("lanes"))) == {"refusal": None, "steering": expected}


@needs_netfold
def test_netfold_s_programs_are_shared_by_slot() -> None:
    found = sharding(json.loads((COMPILED / "netfold-v1model-32.json").read_text()))
    ethernet, ip, udp, slot_in_netfold = 14, 20, 8, 8
    assert found["refusal"] is None
    assert found["steering"]["offset"] == ethernet + ip + udp + slot_in_netfold + 1
    ports = [c for c in found["steering"]["checks"] if c["offset"] in (ethernet + ip, ethernet + ip + 2)]
    assert [(c["mask"], c["value"]) for c in ports] == [(0xFF00, 0xF000)] * 2, "UDP ports 61440 to 61695"
