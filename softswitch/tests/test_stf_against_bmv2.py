# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""p4c's programs with the entries of their STF files, and packets made from theirs, into BMv2 and into our switch. A
minute for each twenty programs; SOFTSWITCH_P4C names a checkout of p4c."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from bmv2 import Bmv2, available
from running import running
from softswitch.stf.corpus import CompilerError, compile_p4, corpus
from softswitch.stf.run import Runner
from softswitch.stf.script import Packet, parse
from testnet import needs_root

CHECKOUT = os.environ.get("SOFTSWITCH_P4C", "")
TESTS = corpus(Path(CHECKOUT) / "testdata" / "p4_16_samples") if CHECKOUT else []
PORTS = 8
PACKETS = 40
SEED = 5
UNDEFINED = {"runtime-index-bmv2"}  # a stack index out of range: BMv2 dies of it

pytestmark = [
    *(pytest.mark.bmv2, pytest.mark.p4c, pytest.mark.long),
    *needs_root,
    pytest.mark.skipif(not available(), reason="SKIPPED: simple_switch_grpc is not on PATH"),
    pytest.mark.skipif(not CHECKOUT, reason="SKIPPED: SOFTSWITCH_P4C names no checkout of p4c"),
]


@pytest.mark.parametrize(("program", "stf"), TESTS or [(Path(), Path())], ids=lambda p: p.stem)
def test_same_bytes_as_bmv2(program: Path, stf: Path, tmp_path: Path, cache_dir: Path) -> None:
    if program.stem in UNDEFINED:
        pytest.skip("its behavior is undefined")
    compiled = tmp_path / "p.json"
    try:
        compiled.write_bytes(compile_p4(program, "--p4runtime-files", str(tmp_path / "p.p4info.txtpb")))
    except CompilerError as e:
        pytest.skip(f"p4c refuses it: {e}")
    commands = parse(stf.read_text())
    good = [c.statement.data for c in commands if isinstance(c.statement, Packet)] or [bytes(60)]
    with (
        running(compiled.read_bytes(), cache_dir) as (pipeline, switch),
        Bmv2(compiled, tmp_path, PORTS) as bmv2,
    ):
        Runner(pipeline, switch).set_up(commands)
        copy_entries(pipeline, bmv2)
        for i, frame in enumerate(packets(good)):
            ours = [
                o for o in switch.inject(1, frame, i * 1_000_000) if 1 <= o[0] <= PORTS and len(o[1]) >= 14
            ]
            theirs = bmv2.inject(1, frame, len(ours))
            assert sorted(theirs) == sorted(ours), f"seed {SEED}, packet {i}: {frame.hex()}"


def packets(good: list[bytes]) -> list[bytes]:
    """The test's own, then altered ones; Ethernet wants 14 bytes."""
    rng = random.Random(SEED)
    out = list(good[:PACKETS])
    while len(out) < PACKETS:
        frame = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            frame[rng.randrange(len(frame))] = rng.choice([0, 255, rng.randrange(256)])
        out.append(bytes(frame) + rng.randbytes(rng.randrange(40) if rng.random() < 0.3 else 0))
    return [f.ljust(14, b"\0") for f in out]


def copy_entries(pipeline: Any, bmv2: Bmv2) -> None:
    for table in pipeline.tables.values():
        for entry in [] if table.const_entries else pipeline.table_entries(table.name):
            bmv2.table_insert(table.name, entry)
    for group, replicas in pipeline.multicast_groups().items():
        bmv2.multicast_insert(group, list(replicas))
    for session in pipeline.clone_sessions().values():
        if session.replicas:
            bmv2.clone_insert(session)
