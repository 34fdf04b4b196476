# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The STF runner: what it reads, what it reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import PROGRAMS
from softswitch.stf import StfError, Verdict, parse, run_stf
from softswitch.stf.script import Add, Cli, Expect, Packet, SetDefault

COPIES = """
# port 4, then a clone to 3
mc_mgrp_create 7
mc_node_create 2 3 1
mc_node_associate 7 0
mirroring_add_mc 5 7
packet 1 02000004 00000000 aabb
expect 1 00000001 0002 **** 0001 ******** 0300 **** 0200 0004 0000 0200 AABB $
expect 3 00000001 0002 **** 0003
expect 4 00000000 0000 0001 0004
"""


def outcome(tmp_path: Path, cache_dir: Path, program: str, text: str) -> tuple[Verdict, str]:
    stf = tmp_path / "t.stf"
    stf.write_text(text)
    o = run_stf(PROGRAMS / f"{program}.json", stf, cache_dir)
    return o.verdict, o.reason


def test_statements_are_read() -> None:
    text = """add a.t 3 hdr.x:0x1* y:0b1 act(p:0x2, q:3) = id
setdefault t drop()
packet 0 0102 03
expect 1 0*$
expect 2
wait
register_write r 1 2"""
    assert [c.statement for c in parse(text)] == [
        Add("a.t", 3, (("hdr.x", "0x1*"), ("y", "0b1")), "act", (("p", "0x2"), ("q", "3"))),
        SetDefault("t", "drop", ()),
        Packet(0, b"\x01\x02\x03"),
        Expect(1, "0*", True),
        Expect(2, None, False),
        Cli(("register_write", "r", "1", "2")),
    ]


@pytest.mark.parametrize("line", ["frobnicate 1", "packet x 00", "packet 0 0g", "add t nothing"])
def test_what_is_not_stf_is_an_error_with_its_line(line: str) -> None:
    with pytest.raises(StfError, match="line 2"):
        parse("# first\n" + line)


def test_clones_and_groups_by_the_cli_commands(tmp_path: Path, cache_dir: Path) -> None:
    verdict, reason = outcome(tmp_path, cache_dir, "copies", COPIES)
    assert (verdict, reason) == (Verdict.PASS, "")


def test_a_wrong_byte_is_reported(tmp_path: Path, cache_dir: Path) -> None:
    verdict, reason = outcome(tmp_path, cache_dir, "copies", COPIES.replace("AABB $", "AABC $"))
    assert verdict is Verdict.FAIL
    assert "port 1, packet 0" in reason


def test_a_missing_and_an_unexpected_packet_are_reported(tmp_path: Path, cache_dir: Path) -> None:
    text = "packet 1 0000000400000000\nexpect 2 00"
    verdict, reason = outcome(tmp_path, cache_dir, "copies", text)
    assert verdict is Verdict.FAIL
    assert "port 2: 0 packets came out, 1 expected" in reason
    assert "port 4: 1 packets came out, 0 expected" in reason


def test_tables_by_suffix_and_each_match_kind(tmp_path: Path, cache_dir: Path) -> None:
    text = """
    add lpm_t ip:0x0A000000/8 set_b(v:7)
    add ternary_t 10 key.ip:0x0A0000** port:0x0001 set_a(v:1)
    add MyIngress.ternary_t 20 ip:0x0A0000** MyIngress.set_a(v:2)
    setdefault MyIngress.exact_t set_a(v:0x55)
    packet 1 09 0A000001 0001 0000 00 00000000000000000000000000
    expect 2 02 07 00 0000 80020108
    packet 1 09 0B000001 0001 0000 00 00000000000000000000000000
    expect 2 55 00 00 0000 80030108
    """
    verdict, reason = outcome(tmp_path, cache_dir, "tables", text)
    assert (verdict, reason) == (Verdict.PASS, "")


@pytest.mark.parametrize(
    "text", ["add nope set(x:1)", "setdefault lpm_t nope()", "add lpm_t bogus:0x1 set_b(v:1)"]
)
def test_names_that_are_not_there(tmp_path: Path, cache_dir: Path, text: str) -> None:
    verdict, reason = outcome(tmp_path, cache_dir, "tables", text)
    assert verdict is Verdict.FAIL
    assert reason
