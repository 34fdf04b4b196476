# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Re-rolled loops: that they are found, that gcc makes vectors of them, and that they do what the statements did."""

from __future__ import annotations

import copy
import ctypes
import json
import random
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from netfold_programs import LANES_64, needs_netfold
from running import PROGRAMS, program, running
from softswitch.build import native
from softswitch.build.compiler import gcc
from softswitch.translate import reroll
from softswitch.translate.program import translate
from softswitch.translate.statements import read_before_write, structure

LANES = 32
TOP, BOTTOM = 2**31 - 1, -(2**31)
SEED = 7


def frame(slot: int, claim: int, lanes: list[int]) -> bytes:
    return bytes(12) + b"\x88\xb5" + struct.pack(">HBB", slot, claim, 0) + struct.pack(f">{LANES}i", *lanes)


def lanes_of(out: bytes) -> list[int]:
    return list(struct.unpack_from(f">{LANES}i", out, 18))


@pytest.mark.parametrize("name", ["lanes", "lanes_ternary"])
def test_one_loop_replaces_the_groups(name: str) -> None:
    translation = translate(program(name))
    assert len(translation.loops) == 1
    assert translation.loops[0].startswith(f"{LANES} repetitions of ")
    assert translation.source.count("ss_sadd32(") <= 2, "once for the loop, once for an index out of range"


def test_a_row_is_prefetched_where_its_index_is_set_and_never_out_of_range() -> None:
    source = translate(program("lanes")).source
    (call,) = re.findall(r"if \(SS_LIKELY\(t\d+ < 64u\)\) \{\s*ss_prefetch\(.*, 128\);", source)
    assert "K->pl->banks[0]" in call
    assert "ss_prefetch(" not in translate(program("state")).source, "a cell alone is as quickly loaded"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [PROGRAMS / "lanes.json", PROGRAMS / "lanes_ternary.json", pytest.param(LANES_64, marks=needs_netfold)],
    ids=lambda p: p.stem,
)
def test_gcc_vectorizes_every_loop_over_lanes(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text(translate(path.read_bytes()).source)
    flags = [*native.BASE_FLAGS, *native.OPTIMIZE, "-fopt-info-vec-optimized", f"-I{native.RUNTIME}"]
    command = [gcc(), *flags, "-o", str(tmp_path / "out.so"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    vectorized = {
        int(n) for n in re.findall(r"program\.c:(\d+):\d+: optimized: loop vectorized", done.stderr)
    }
    lines = source.read_text().splitlines()
    loops = loops_in_bounds(lines)
    assert loops, "no loop was made"
    bodies = {body(lines, n) for n in vectorized}
    vectorized |= {
        n for n in loops if body(lines, n) in bodies
    }  # gcc makes one of two functions that are the same
    vectorized |= {n for n in loops if lines[n].strip().endswith("] = 0;")}  # gcc calls memset
    assert loops <= vectorized, (
        f"loops at lines {sorted(loops - vectorized)} are not vectorized:\n{done.stderr}"
    )


def body(lines: list[str], loop: int) -> tuple[str, ...]:
    """The lines of a loop that begins at line `loop`, counted from 1."""
    indent = lines[loop - 1][: -len(lines[loop - 1].lstrip())]
    return tuple(lines[loop : lines.index(f"{indent}}}", loop)])


def loops_in_bounds(lines: list[str]) -> set[int]:
    """Lines of the loops, without those for an index out of range (they follow an else, and are rare)."""
    out, rare = set(), None
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if line.strip() == "else {" and rare is None:
            rare = indent
        elif rare is not None and indent <= rare and line.strip() == "}":
            rare = None
        if rare is None and line.lstrip().startswith("for (uint32_t i = 0;"):
            out.add(number)
    return out


@pytest.mark.parametrize("name", ["lanes", "lanes_ternary"])
def test_sums_follow_the_machine(name: str, cache_dir: Path) -> None:
    """Signed saturating sums that stick at a rail, over claims, adds, and slots that do not exist."""
    rng = random.Random(SEED)
    slots: dict[int, list[int]] = {s: [0] * LANES for s in range(64)}
    with running(program(name), cache_dir) as (pipeline, switch):
        for i in range(300):
            slot, claim = rng.choice([0, 1, 63, 64, 65535]), int(rng.random() < 0.2)
            values = [rng.choice([0, 1, -1, TOP, BOTTOM, rng.randrange(BOTTOM, TOP)]) for _ in range(LANES)]
            ((port, out),) = switch.inject(3, frame(slot, claim, values), i)
            old = slots.get(slot, [0] * LANES)
            want = [
                v if claim else o if o in (TOP, BOTTOM) else max(BOTTOM, min(TOP, o + v))
                for o, v in zip(old, values, strict=True)
            ]
            if slot in slots:
                slots[slot] = want
            assert (port, lanes_of(out)) == (3, want), f"seed {SEED}, packet {i}"
        for lane in (0, 9, 31):
            cells = pipeline.register_read_all(f"MyIngress.lane_{lane:02x}")
            assert cells == [slots[s][lane] for s in range(64)]


def test_lanes_that_nothing_writes_outlive_their_frame(cache_dir: Path) -> None:
    """They stay in the frame, whose memory is the engine's again while the packet waits in a queue."""
    tree = json.loads(program("lanes"))
    max(tree["actions"], key=lambda a: len(a["primitives"]))["primitives"] = []
    lanes = list(range(LANES))
    with running(json.dumps(tree).encode(), cache_dir) as (_, switch):
        switch.port_config(1, 8_000_000, 64)
        received = frame(0, 0, lanes)
        memory: Any = ctypes.create_string_buffer(received, len(received))
        assert switch.inject(1, memory, 0) == []
        memory[:] = bytes(len(received))
        ((port, out),) = switch.service(1_000_000_000)[0]
        assert (port, lanes_of(out)) == (1, lanes)


def test_a_comparison_of_headers_sees_the_lanes_written_before_it(cache_dir: Path) -> None:
    """`if (hdr.lanes == hdr.other) { hdr.lanes.v = 7; }` for each lane: the headers differ from the second one on."""
    tree = json.loads(program("lanes"))
    lanes = next(h for h in tree["headers"] if h["name"] == "lanes")
    tree["headers"].append({**lanes, "name": "other", "id": len(tree["headers"])})
    operations = tree["parsers"][0]["parse_states"][1]["parser_ops"]
    operations.append({"op": "extract", "parameters": [{"type": "regular", "value": "other"}]})
    names = [f[0] for t in tree["header_types"] if t["name"] == lanes["header_type"] for f in t["fields"]]
    operands = {
        side: {"type": "header", "value": name} for side, name in (("left", "lanes"), ("right", "other"))
    }
    equal = {"type": "expression", "value": {"op": "==", **operands}}
    as_data = {"type": "expression", "value": {"op": "b2d", "left": None, "right": equal}}
    body = max(tree["actions"], key=lambda a: len(a["primitives"]))["primitives"]
    body.clear()
    for name in names:
        behind = {"type": "hexstr", "value": hex(len(body) + 2)}
        body.append({"op": "_jump_if_zero", "parameters": [as_data, behind]})
        lane = {"type": "field", "value": ["lanes", name]}
        body.append({"op": "assign", "parameters": [lane, {"type": "hexstr", "value": "0x7"}]})
    with running(json.dumps(tree).encode(), cache_dir) as (_, switch):
        ((_, out),) = switch.inject(3, frame(0, 0, [0] * LANES) + bytes(4 * LANES), 0)
        assert lanes_of(out) == [7] + [0] * (LANES - 1)


def test_registers_of_a_bank_are_written_one_by_one(cache_dir: Path) -> None:
    with running(program("lanes"), cache_dir) as (pipeline, switch):
        pipeline.register_write("MyIngress.lane_05", 3, -7)
        assert pipeline.register_read("MyIngress.lane_05", 3) == -7
        assert pipeline.register_read("MyIngress.lane_06", 3) == 0
        ((_, out),) = switch.inject(1, frame(3, 0, [1] * LANES), 0)
        assert lanes_of(out) == [1] * 5 + [-6] + [1] * 26
        pipeline.register_reset("MyIngress.lane_05")
        assert pipeline.register_read_all("MyIngress.lane_05") == [0] * 64


def mutated(tree: dict[str, Any], rng: random.Random) -> bytes:
    """The lanes program with statements exchanged, fields and registers renamed: runs break in odd places."""
    tree = copy.deepcopy(tree)
    body = max(tree["actions"], key=lambda a: len(a["primitives"]))["primitives"]
    plain = [i for i, p in enumerate(body) if not p["op"].startswith("_jump")]
    if rng.random() < 0.5:  # all conditions look at one lane, which some turn writes
        old = {"type": "field", "value": ["scalars", "metadata_t.claim"]}
        new = {"type": "field", "value": ["lanes", f"v{rng.randrange(LANES):02x}"]}
        body[:] = json.loads(json.dumps(body).replace(json.dumps(old), json.dumps(new)))
    for _ in range(rng.randrange(1, 5)):
        kind, at = rng.randrange(3), rng.choice(plain)
        if kind == 0 and at + 1 in plain:
            body[at], body[at + 1] = body[at + 1], body[at]
        elif kind == 1:
            rename(body[at], "register_array", f"MyIngress.lane_{rng.randrange(LANES):02x}")
        else:
            rename(body[at], "field", ["lanes", f"v{rng.randrange(LANES):02x}"])
    return json.dumps(tree).encode()


def rename(node: Any, kind: str, value: Any) -> None:
    """The first leaf of a kind below a node (of fields, the first of the lanes)."""
    if isinstance(node, dict):
        if node.get("type") == kind and (kind != "field" or node["value"][0] == "lanes"):
            node["value"] = value
            return
        for v in node.values():
            rename(v, kind, value)
    elif isinstance(node, list):
        for v in node:
            rename(v, kind, value)


def outputs(p4_json: bytes, cache: Path) -> list[Any]:
    rng = random.Random(SEED)
    out: list[Any] = []
    with running(p4_json, cache) as (pipeline, switch):
        for i in range(60):
            values = [rng.choice([0, 1, TOP, BOTTOM, rng.randrange(BOTTOM, TOP)]) for _ in range(LANES)]
            out.append(switch.inject(1, frame(rng.choice([0, 1, 70]), int(rng.random() < 0.3), values), i))
        out += [pipeline.register_read_all(r) for r in pipeline.registers]
    return out


@pytest.mark.parametrize("seed", [1, 2, *[pytest.param(s, marks=pytest.mark.long) for s in range(3, 25)]])
def test_rerolled_and_unrolled_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the statements are, the loops must not change what they do."""
    p4_json = mutated(json.loads(program("lanes")), random.Random(seed))
    rolled = outputs(p4_json, tmp_path / "rolled")
    monkeypatch.setattr(reroll, "MIN_REPETITIONS", 1_000_000)
    assert translate(p4_json).loops == ()
    assert outputs(p4_json, tmp_path / "unrolled") == rolled, f"seed {seed}"


def test_a_body_with_jumps_may_read_each_field_before_it_writes_it() -> None:
    """A for loop jumps back: its order says nothing."""
    fields = [{"type": "field", "value": ["meta", name]} for name in ("written", "read")]
    back = {"op": "_jump", "parameters": [{"type": "hexstr", "value": "0x0"}]}
    body = structure([{"op": "assign", "parameters": fields}, back])
    assert read_before_write(body, set()) == ({("meta", "written"), ("meta", "read")}, set())
