# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The trace of a packet, as BMv2's log tells it, and log_msg()."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import netfold_case
import pytest
from cases import CASES, PORTS
from netfold_programs import COMPILED, needs_netfold
from running import PROGRAMS, program, running
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from softswitch.state.entities import ActionCall, Exact, Lpm, Range, TableEntry, Ternary
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch
from softswitch.translate.program import translate
from softswitch.translate.trace import quoted
from testnet import Namespace, ethernet, needs_root, wait_for

SEED = 20260102


@contextmanager
def traced(name: str, cache_dir: Path) -> Iterator[tuple[Pipeline, Switch, list[tuple[str, str]]]]:
    told: list[tuple[str, str]] = []
    with running(program(name), cache_dir, traced=True) as (pipeline, switch):
        switch.log_to(lambda level, text: told.append((level, text)))
        yield pipeline, switch, told


def test_the_steps_of_a_packet_are_told_in_bmv2s_words(cache_dir: Path) -> None:
    with traced("router", cache_dir) as (pipeline, switch, told):
        call = ActionCall("MyIngress.route", {"nexthop": b"\1", "count": b"\1"})
        pipeline.table_insert("MyIngress.routes", TableEntry({"hdr.ip.dst": Lpm(b"\x0a\0\0\0", 24)}, call))
        call = ActionCall("MyIngress.forward", {"port": b"\3", "dst": bytes.fromhex("0a0000000001")})
        pipeline.table_insert("MyIngress.nexthops", TableEntry({"meta.nexthop": Exact(b"\1")}, call))
        packet = IP(src="10.0.0.5", dst="10.0.0.1", ttl=64) / UDP() / bytes(4)
        frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet)
        assert [port for port, _ in switch.inject(1, frame, 0)] == [3]
    lines = [f"{level} {text}" for level, text in told]
    in_order = iter(lines)
    for wanted in EXPECTED.strip().splitlines():
        text = wanted.replace("\\n", "\n")
        assert any(line == f"{text[:2]}[0.0] [cxt 0] {text[2:]}" for line in in_order), (text, lines)


def test_the_first_bytes_of_packets_are_told_as_bmv2_tells_them(cache_dir: Path) -> None:
    told: list[str] = []
    with running(program("router"), cache_dir) as (pipeline, switch):
        switch.log_to(lambda level, text: told.append(f"{level} {text}"))
        route = ActionCall("MyIngress.route", {"nexthop": b"\1", "count": b"\1"})
        forward = ActionCall("MyIngress.forward", {"port": b"\3", "dst": bytes(6)})
        pipeline.table_set_default("MyIngress.routes", route)
        pipeline.table_set_default("MyIngress.nexthops", forward)
        frame = bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst="10.0.0.1") / UDP())
        for wanted in (0, 6, 10_000, 0):
            switch.dump_packets(wanted)
            sent = switch.inject(1, frame, 0)
            expected = [("Received", 1, frame), *(("Sending", port, data) for port, data in sent)]
            assert told == [
                f"I {what} packet of length {len(data)} on port {port}: {data[:wanted].hex()}"
                for what, port, data in expected
                if wanted
            ]
            assert sent
            told.clear()


EXPECTED = r"""
D Processing packet received on port 1
D Parser 'parser': start
D Parser 'parser' entering state 'start'
D Extracting header 'eth'
T Bytes parsed: 14
D Parser state 'start': key is 0800
D Parser 'parser' entering state 'ip'
D Verified checksum 'cksum_0': passed
D Parser 'parser': end
D Pipeline 'ingress': start
T Applying table 'MyIngress.routes'
D Looking up key:\n* hdr.ip.dst          : 0a000001\n
D Table 'MyIngress.routes': hit with handle 0
D Dumping entry 0\nMatch key:\n* hdr.ip.dst          : LPM       0a000000/24\n
D Action entry is MyIngress.route - 1,1,
T Action MyIngress.route
T ip.ttl is now 3f
T Applying table 'MyIngress.nexthops'
D Looking up key:\n* meta.nexthop        : 01\n
D Table 'MyIngress.nexthops': hit with handle 0
D Action entry is MyIngress.forward - 3,a0000000001,
T standard_metadata.egress_spec is now 0003
D Pipeline 'ingress': end
D Egress port is 3
D Pipeline 'egress': start
D Pipeline 'egress': end
D Deparser 'deparser': start
D Updating checksum 'cksum'
D Deparsing header 'eth'
D Deparser 'deparser': end
D Transmitting packet of size 46 out of port 3
"""


def test_a_miss_and_entries_of_every_kind_are_told(cache_dir: Path) -> None:
    wide = 0xABCDE_00000000_00000001
    with traced("tables", cache_dir) as (pipeline, switch, told):
        key = {"hdr.key.sel": Exact(b"\1"), "hdr.key.wide": Exact(wide.to_bytes(13, "big"))}
        pipeline.table_insert(
            "MyIngress.exact_t", TableEntry(key, ActionCall("MyIngress.set_f", {"v": b"\x12\x34"}))
        )
        mask = {"hdr.key.ip": Ternary(b"\1\2\0\0", b"\xff\xff\0\0")}
        call = ActionCall("MyIngress.set_a", {"v": b"\0"})
        pipeline.table_insert("MyIngress.ternary_t", TableEntry(mask, call, priority=5))
        bounds = {"hdr.key.low": Range(b"\0\1", b"\2\0")}
        pipeline.table_insert("MyIngress.range_t", TableEntry(bounds, call, priority=5))
        fields = (1).to_bytes(1, "big") + bytes.fromhex("010203040050010007")
        switch.inject(1, fields + (wide << 4).to_bytes(13, "big"), 0)
    text = "\n".join(text for _, text in told)
    for wanted in (
        "* hdr.key.sel         : EXACT     01\n* hdr.key.wide        : EXACT     00000abcde0000000000000001",
        "Action entry is MyIngress.set_f - 1234,",
        "Table 'MyIngress.lpm_t': miss",
        "* hdr.key.ip          : TERNARY   01020000 &&& ffff0000",
        "* hdr.key.low         : RANGE     0001 -> 0200",
        "Action entry is MyIngress.set_a - 0,",
    ):
        assert wanted in text, text


def test_copies_and_what_becomes_of_them_are_told(cache_dir: Path) -> None:
    with traced("copies", cache_dir) as (pipeline, switch, told):
        setup, frames = CASES["copies"]
        setup(pipeline, random.Random(SEED))
        for i, (port, frame) in enumerate(frames(random.Random(SEED))):
            switch.inject(port, frame, i)
    text = "\n".join(text for _, text in told)
    for wanted in (
        "Cloning packet at ingress",
        "Cloning packet at egress",
        "Cloning packet to egress port",
        "Resubmitting packet",
        "Recirculating packet",
        "Multicast requested for packet",
        "Replicating packet on port",
        "Dropping packet at the end of ingress",
    ):
        assert wanted in text


def test_a_frame_too_short_is_told(cache_dir: Path) -> None:
    with traced("router", cache_dir) as (_, switch, told):
        switch.inject(1, b"short", 0)
    assert ("E", "[0.0] [cxt 0] Exception while parsing: PacketTooShort") in told


@pytest.mark.parametrize("name", ["parsing", "tables", "profiles", "copies", "lanes"])
def test_a_traced_program_does_the_same(name: str, cache_dir: Path) -> None:
    setup, frames = CASES[name]
    out = []
    for trace in (False, True):
        with running(program(name), cache_dir, traced=trace) as (pipeline, switch):
            setup(pipeline, random.Random(SEED))
            chosen = enumerate(frames(random.Random(SEED + 1)))
            out.append([switch.inject(port, frame, i * 1_000_000) for i, (port, frame) in chosen])
    assert out[0] == out[1]
    assert any(port <= PORTS for sent in out[0] for port, _ in sent)


@needs_netfold
def test_targeted_packets_are_traced_and_stay_the_same(cache_dir: Path) -> None:
    """Short contributions, sums that leave whole after one, and results that are cut, padded or not."""
    told: list[str] = []
    p4_json = (COMPILED / f"netfold-v1model-{netfold_case.LANES}.json").read_bytes()
    with (
        running(p4_json, cache_dir) as (plain, alone),
        running(p4_json, cache_dir, traced=True) as (told_of, switch),
    ):
        switch.log_to(lambda _, text: told.append(text))
        for pipeline in (plain, told_of):
            netfold_case.setup(pipeline, random.Random(SEED))
        lengths = set()
        for i, (port, frame) in enumerate(netfold_case.frames(random.Random(SEED))):
            sent = switch.inject(port, frame, i * 1000)
            assert sent == alone.inject(port, frame, i * 1000)
            lengths |= {len(data) for _, data in sent}
    assert {58, 58 + 4 * netfold_case.LANES} <= lengths
    text = "\n".join(told)
    for wanted in (
        "entering state 'accept_short'",
        "Applying table 'SwitchIngress.sum_form.owners'",
        "Table 'SwitchIngress.sum_form.owners': miss",
        "Action SwitchIngress.sum_form.lead",
        "Action SwitchIngress.sum_form.make_short",
        "Action SwitchIngress.sum_form.make_whole",
        "Action SwitchEgress.result_cut.cut",
        "Transmitting packet of size 58 out of port",
    ):
        assert wanted in text, wanted


def test_without_the_trace_nothing_of_it_is_in_the_program() -> None:
    assert "ss_trace" not in translate(program("tables")).source
    assert "ss_trace" in translate(program("tables"), traced=True).source


def test_no_name_leaves_its_literal() -> None:
    assert quoted('a"b\\c??/\n%é') == r'"a\042b\134c\077\077/\012%\303\251"'


@pytest.mark.root
@needs_root[1]
def test_a_switch_traces_to_its_console_and_log_msg_reaches_the_log(
    start_switch, namespace: Namespace
) -> None:
    host = namespace.host(1)
    ports = ("-i", "1@sw1", "-i", "2@sw2")
    switch = start_switch(namespace, PROGRAMS / "router.json", "--log-console", *ports)
    host.send(ethernet(0x1234, bytes(46)))
    wait_for(lambda: "Dropping packet at the end of ingress" in switch.log(), "the trace of a packet")
    assert "[bmv2] [D] [thread " in switch.log()
    switch.kill()
    plain = start_switch(namespace, PROGRAMS / "misc.json", *ports)
    host.send(bytes([5, 3]) + bytes(2) + (77).to_bytes(6, "big") + bytes(50))
    wait_for(lambda: "a=3 c=77 100%" in plain.log(), "log_msg")
    assert "Parser" not in plain.log()
