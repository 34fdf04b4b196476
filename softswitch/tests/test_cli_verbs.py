# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of simple_switch_CLI: what they do to a switch, and how they refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from cases import pack
from running import PROGRAMS, program, running
from softswitch.admin.verbs.arguments import CommandError
from softswitch.admin.verbs.console import VERBS, Console
from softswitch.engine.engine import Engine, PortStatus
from softswitch.state.entities import Replica
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch


class Ports:
    """An engine without a thread: it keeps its ports only."""

    def __init__(self) -> None:
        self.interfaces: dict[int, str] = {}

    def add_port(self, number: int, ifname: str) -> None:
        self.interfaces[number] = ifname

    def remove_port(self, number: int) -> None:
        del self.interfaces[number]

    def ports(self) -> list[PortStatus]:
        return [PortStatus(n, i, True, True, {}, {}, {}) for n, i in self.interfaces.items()]

    def service(self) -> None:
        pass


Running = tuple[Callable[[str], str], Pipeline, Switch]


@pytest.fixture
def start(cache_dir: Path) -> Iterator[Callable[[str], Running]]:
    open_ones = []

    def run(name: str) -> Running:
        context = running(program(name), cache_dir)
        pipeline, switch = context.__enter__()
        open_ones.append(context)
        return Console(switch, cast(Engine, Ports())).run, pipeline, switch

    yield run
    for context in open_ones:
        context.__exit__(None, None, None)


def test_a_table_is_filled_changed_shown_and_emptied(start) -> None:
    run, _, switch = start("router")
    assert "MyIngress.routes" in run("show_tables")
    assert "mk=hdr.ip.dst(lpm, 32)" in run("table_info MyIngress.routes")
    assert "port(9),\tdst(48)" in run("table_show_actions nexthops")
    run("table_set_default MyIngress.nexthops MyIngress.forward 2 00:00:00:00:00:09")
    assert "handle 0" in run("table_add MyIngress.routes MyIngress.route 10.0.0.0/8 => 0x7 1")
    assert "handle 1" in run("table_add routes route 10.1.1.99/16 => 8 1  # another")
    assert run("table_num_entries routes") == "2"
    dump = run("table_dump MyIngress.routes")
    assert "Dumping entry 0x0\nMatch key:\n* hdr.ip.dst          : LPM       0a000000/8" in dump
    assert "LPM       0a010000/16\nAction entry: MyIngress.route - 08, 01" in dump
    assert "Dumping default entry\nAction entry: MyIngress.drop - \n==========" in dump
    frame = ipv4("10.1.2.3")
    assert [port for port, _ in switch.inject(1, frame, 0)] == [2]
    run("table_modify routes drop 1")
    assert "MyIngress.drop" in run("table_dump_entry routes 1")
    run("table_delete routes 1")
    with pytest.raises(CommandError, match="no entry with handle 1"):
        run("table_delete routes 1")
    run("table_clear routes")
    assert run("table_num_entries routes") == "0"
    run("table_reset_default nexthops")
    assert "MyIngress.drop" in run("table_dump nexthops")


def ipv4(dst: str) -> bytes:
    from scapy.layers.inet import IP, UDP  # noqa: PLC0415 - slow to load
    from scapy.layers.l2 import Ether  # noqa: PLC0415

    return bytes(
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(dst=dst, ttl=9) / UDP() / bytes(8)
    )


def test_every_kind_of_match_and_the_smallest_priority_wins(start) -> None:
    run, _, switch = start("tables")
    wide = 0xABCDE_00000000_00000001

    def out() -> bytes:
        ((_, data),) = switch.inject(
            1, pack((1, 8), (0x01020304, 32), (80, 16), (256, 16), (7, 8), (wide, 100), (0, 4)), 0
        )
        return data

    run(f"table_add exact_t set_a 1 {wide:#x} => 5")
    assert out()[0] == 5
    run("table_add ternary_t set_a 1.2.0.0&&&255.255.0.0 0&&&0 7&&&0xff => 6 10")
    assert out()[0] == 6
    run("table_add ternary_t set_a 0&&&0 80&&&0xffff 0&&&0 => 7 9")
    assert out()[0] == 7
    assert "Priority: 9" in run("table_dump ternary_t")
    assert "TERNARY   00000000 &&& 00000000" in run("table_dump ternary_t")
    run("table_add range_t set_c 0x1->0x200 0&&&0 => 8 9 1")
    assert (out()[2], out()[3:5]) == (8, b"\0\x09")
    assert "RANGE     0001 -> 0200" in run("table_dump_entry range_t 0")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fly", "unknown command 'fly'"),
        ("table_add", "usage: table_add <table name>"),
        ("table_add nowhere route 1/1 => 1 1", "no table 'nowhere'; there are: .*MyIngress.routes"),
        ("table_add routes fly 1/1 => 1 1", "no action of table MyIngress.routes 'fly'"),
        ("table_add routes route 10.0.0.0 => 1 1", "hdr.ip.dst is matched as lpm: write VALUE/"),
        ("table_add routes route 10.0.0/8 => 1 1", "10.0.0"),
        ("table_add routes route 10.0.0.0/33 => 1 1", "prefix length .* not in 0..32"),
        ("table_add routes route 1/1 2/2 => 1 1", "has 1 match fields"),
        ("table_add routes route 1/1 => 1", "takes 2 parameters .*, not 1"),
        ("table_add routes route 1/1 => 1 256", "count 256 is not in 0..255"),
        ("table_add routes route 1/1 1 1", "write => between"),
        ("table_add nexthops forward 1 => 1 00:11:22", "dst: '00:11:22' is no MAC address"),
        ("table_delete routes 0", "no entry with handle 0"),
        ("table_dump_entry routes x", "entry handle 'x' is not a number"),
        ("register_read nothing", "no register 'nothing'; there are: none"),
        ("mirroring_get 9", "no mirroring session 9"),
        ("mc_node_update 1 2", "no node with handle 1"),
        ("help fly", "unknown command"),
    ],
)
def test_what_is_wrong_is_said(start, line: str, words: str) -> None:
    run, _, _ = start("router")
    with pytest.raises(CommandError, match=words):
        run(line)


def test_help_tells_of_every_command(start) -> None:
    run, _, _ = start("router")
    assert run("") == run("# only a comment") == ""
    for name in VERBS:
        assert f"  {name}" in run("help")
        assert run(f"help {name}").partition(": ")[2].startswith(name)


def test_registers_counters_and_meters(start) -> None:
    run, pipeline, switch = start("state")
    name = next(iter(pipeline.registers))
    run(f"register_write {name} 1 0x2a")
    assert run(f"register_read {name} 1") == f"{name}[1]= 42"
    assert run(f"register_read {name}").startswith(f"{name}= 0, 42, 0")
    run(f"register_reset {name}")
    assert run(f"register_read {name} 1") == f"{name}[1]= 0"
    counter = next(iter(pipeline.counters))
    run(f"counter_write {counter} 2 7 700")
    assert run(f"counter_read {counter} 2") == f"{counter}[2]= (700 bytes, 7 packets)"
    run(f"counter_reset {counter}")
    assert run(f"counter_read {counter} 2") == f"{counter}[2]= (0 bytes, 0 packets)"
    run("table_add MyIngress.direct MyIngress.hit 0 =>")
    switch.inject(1, pack((0, 8), (3, 8), (0, 80)) + bytes(18), 0)
    assert run("counter_read MyIngress.direct 0") == "MyIngress.direct[0]= (30 bytes, 1 packets)"
    run("counter_reset direct")
    assert "0 packets" in run("counter_read direct 0")
    for line, words in (
        (f"register_read {name} 99999999", "index"),
        (f"register_write {name} 0 fish", "not a number"),
        (f"counter_read {counter} x", "not a number"),
    ):
        with pytest.raises(CommandError, match=words):
            run(line)
    run, _, _ = start("misc")
    assert "not configured" in run("meter_get_rates packets 1")
    run("meter_set_rates packets 1 0.5:10 1:20")
    assert (
        run("meter_get_rates packets 1")
        == "0: info rate = 0.5, burst size = 10\n1: info rate = 1, burst size = 20"
    )
    with pytest.raises(CommandError, match="UNITS_PER_MICROSECOND"):
        run("meter_set_rates packets 1 fast 1:20")


def test_mirrors_and_multicast_groups(start) -> None:
    run, pipeline, _ = start("copies")
    run("mirroring_add 5 3")
    run("mirroring_add 5 4")
    assert run("mirroring_get 5") == "port 4 rid 0"
    run("mirroring_delete 5")
    run("mc_mgrp_create 9")
    assert "handle 0" in run("mc_node_create 1 2 3")
    run("mc_node_create 2 4")
    run("mc_node_associate 9 0")
    run("mc_node_associate 9 1")
    assert run("mc_dump").splitlines()[3:6] == [
        "mgrp(9)",
        "  -> (rid=1) -> (ports=[2, 3])",
        "  -> (rid=2) -> (ports=[4])",
    ]
    run("mc_node_update 0 1")
    run("mirroring_add_mc 6 9")
    assert run("mirroring_get 6") == "port 1 rid 1, port 4 rid 2"
    run("mc_node_dissociate 9 1")
    run("mc_node_destroy 0")
    assert list(pipeline.multicast_groups()[9]) == []
    run("mc_mgrp_destroy 9")
    with pytest.raises(CommandError, match="9"):
        run("mc_node_associate 9 1")
    run("mc_mgrp_create 9")
    run("mc_node_associate 9 1")
    assert [r.port for r in pipeline.multicast_groups()[9]] == [4]  # and nothing of the group before


def test_what_a_switch_refuses_changes_no_node(start, monkeypatch: pytest.MonkeyPatch) -> None:
    run, pipeline, _ = start("copies")
    run("mc_mgrp_create 9")
    run("mc_mgrp_create 10")
    run("mc_node_create 1 2")
    run("mc_node_create 2 4")
    for group in (9, 10):
        run(f"mc_node_associate {group} 0")
    before = {group: list(replicas) for group, replicas in pipeline.multicast_groups().items()}
    modify = pipeline.multicast_modify

    def refuse(group: int, replicas: list[Replica]) -> None:
        if group == 10 and list(replicas) != before[10]:
            raise CommandError("no room")
        modify(group, replicas)

    monkeypatch.setattr(pipeline, "multicast_modify", refuse)
    for line in ("mc_node_associate 10 1", "mc_node_dissociate 10 0", "mc_node_update 0 3"):
        with pytest.raises(CommandError, match="no room"):
            run(line)
        assert {group: list(replicas) for group, replicas in pipeline.multicast_groups().items()} == before
    monkeypatch.undo()
    run("mc_node_dissociate 10 0")
    run("mc_node_associate 10 1")
    assert [r.port for r in pipeline.multicast_groups()[10]] == [4]


def test_ports(start) -> None:
    run, _, _ = start("router")
    run("port_add veth7 7")
    assert "veth7" in run("show_ports")
    run("port_remove 7")
    assert "veth7" not in run("show_ports")


@pytest.mark.slow
def test_the_command_talks_to_a_switch_by_its_socket_or_thrift_port(start_switch, tmp_path: Path) -> None:
    def cli(*arguments: object, text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from softswitch.cli import main; main()", "cli"]
        return subprocess.run(
            [*command, *map(str, arguments)],
            input=text,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    port = 20_000 + os.getpid() % 40_000
    switch = start_switch(None, PROGRAMS / "router.json")
    done = cli(switch.control_path, text="show_tables\ntable_add routes route 10.0.0.0/8 => 1 1\n")
    assert (done.returncode, "handle 0" in done.stdout) == (0, True), done
    refused = cli(switch.control_path, text="table_dump nowhere\ntable_num_entries routes\n")
    assert refused.returncode == 1
    assert "Error: there is no table 'nowhere'" in refused.stdout
    assert "RuntimeCmd: 1\n" in refused.stdout
    absent = cli("--thrift-port", port, text="")
    assert absent.returncode == 1
    assert f"softswitch/{port}.sock" in absent.stderr
    nowhere = cli(tmp_path / "nothing", text="")
    assert nowhere.returncode == 1
    assert "nothing: cannot connect to the control socket: No such file or directory" in nowhere.stderr
