# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Exercises of p4lang/tutorials: addresses, commands, programs and entries are the file's; so is Mininet's prompt."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from netfold.testbed.network import supervisor
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import HostCommandError
from netfold.testbed.network.program import SwitchProgramError, program_switch
from netfold.testbed.network.state import processes_of
from netfold.testbed.network.targets import installed_command
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import FabricError
from netfold.topologies.spec import load_exercise, load_fabric
from tests.testbed.network.conftest import FakeTarget, Place, needs_network
from tests.testbed.network.terminal import Terminal

PROGRAM = Path(__file__).parents[3] / "softswitch" / "tests" / "programs" / "router"

TOPOLOGY: dict[str, Any] = {
    "hosts": {
        f"h{i}": {
            "ip": f"10.0.{i}.{i}/24",
            "mac": f"08:00:00:00:0{i}:{i}{i}",
            "commands": [
                f"ip route add default via 10.0.{i}.10 dev eth0",
                f"ip neigh add 10.0.{i}.10 lladdr 08:00:00:00:0{i}:00 dev eth0",
                f"ip route add 10.0.{i}.0/24 dev eth0",  # is there already, and that is fine
            ],
        }
        for i in (1, 2)
    },
    "switches": {"s1": {"runtime_json": "topo/s1-runtime.json"}},
    "links": [["h1", "s1-p1"], ["h2", "s1-p2"]],
}


def runtime(program: Path) -> dict[str, Any]:
    """Entries as the tutorials write them, for a router of two hosts."""
    entries: list[dict[str, Any]] = [
        {
            "table": "MyIngress.routes",
            "default_action": True,
            "action_name": "MyIngress.drop",
            "action_params": {},
        }
    ]
    for i in (1, 2):
        entries += [
            {
                "table": "MyIngress.routes",
                "match": {"hdr.ip.dst": [f"10.0.{i}.{i}", 32]},
                "action_name": "MyIngress.route",
                "action_params": {"nexthop": i, "count": 1},
            },
            {
                "table": "MyIngress.nexthops",
                "match": {"meta.nexthop": i},
                "action_name": "MyIngress.forward",
                "action_params": {"port": i, "dst": f"08:00:00:00:0{i}:{i}{i}"},
            },
        ]
    groups = [{"multicast_group_id": 1, "replicas": [{"egress_port": p, "instance": 1} for p in (1, 2)]}]
    clones = [{"clone_session_id": 5, "replicas": [{"egress_port": 1, "instance": 1}]}]
    return {
        "target": "bmv2",
        "p4info": f"{program}.p4info.txtpb",
        "bmv2_json": f"{program}.json",
        "table_entries": entries,
        "multicast_group_entries": groups,
        "clone_session_entries": clones,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As an exercise's folder after `make build`; returns where the topology is."""
    for folder in ("topo", "build"):
        (tmp_path / folder).mkdir()
    for ending in (".json", ".p4info.txtpb"):
        shutil.copy(f"{PROGRAM}{ending}", tmp_path / "build")
    (tmp_path / "topo" / "s1-runtime.json").write_text(json.dumps(runtime(Path("build/router"))))
    return write(tmp_path, TOPOLOGY).parent


def write(folder: Path, topology: dict[str, Any]) -> Path:
    file = folder / "topo" / "topology.json"
    file.write_text(json.dumps(topology, indent=1))
    return file


def test_addresses_are_the_files_where_it_has_some(folder: Path) -> None:
    hosts = {"h1": TOPOLOGY["hosts"]["h1"], "h2": {}}
    file = write(folder.parent, {**TOPOLOGY, "hosts": hosts})
    exercise = load_exercise(file)
    assert exercise is not None
    own = addresses(load_fabric(file))
    found = exercise.addressed(own)
    assert found.switches == own.switches
    assert found.hosts["h2"] == own.hosts["h2"]
    h1 = found.hosts["h1"]
    assert (str(h1.ip), str(h1.prefix), h1.mac) == ("10.0.1.1", "10.0.1.0/24", "08:00:00:00:01:11")
    assert (h1.gateway_ip, h1.switch, h1.port) == (None, "s1", 1)
    assert load_exercise("single") is None


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        (("hosts", "h1", "ip"), "10.0.1", "expected an IPv4 address with prefix, for example"),
        (("hosts", "h1", "mac"), "08:00", "expected a MAC address, for example"),
        (("hosts", "h1", "commands"), "ls", "expected a list of shell commands"),
        (("switches", "s1"), {"cli_input": "s1.txt"}, "expected the entries as runtime_json"),
        (("switches", "s1", "runtime_json"), "none.json", "no file 'none.json'"),
    ],
)
def test_errors_name_the_place(folder: Path, where: tuple[str, ...], value: Any, says: str) -> None:
    topology = json.loads(json.dumps(TOPOLOGY))
    place = topology
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    file = write(folder.parent, topology)
    with pytest.raises(FabricError, match=re.escape(says)) as caught:
        load_exercise(file)
    assert re.match(r".*topology\.json:\d+:\d+: ", str(caught.value))


def test_a_program_that_is_not_compiled_is_told(folder: Path) -> None:
    (folder.parent / "build" / "router.json").unlink()
    with pytest.raises(FabricError, match=r"router\.json is missing: compile the P4 program first"):
        load_exercise(folder / "topology.json")


@needs_network
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_an_exercise_runs_under_mininets_prompt(folder: Path, place: Place) -> None:
    options = ["--foreground", "--name", place.name, "--first-grpc-port", str(place.first_grpc_port)]
    terminal = Terminal(
        [installed_command("netfold"), "network", "up", "topo/topology.json", *options], folder.parent
    )
    try:
        terminal.until("mininet>")
        run = place.directory.up().run
        for line, answer in (
            ("h1 ping -c1 -W5 h2", "1 received"),
            ("h1 ip route", "default via 10.0.1.10"),
            ("h2 cat /sys/class/net/eth0/address", "08:00:00:00:02:22"),
            ("links", "(OK OK)"),
            ("link h1 s1 down", ""),
            ("links", "(OK DOWN)"),
            ("h1 ping -c1 -W1 h2", "0 received"),
            ("link h1 s1 up", ""),
            ("pingall", "0% dropped"),
            ("s1 echo I am $((6 * 7))", "I am 42"),
        ):
            terminal.type(line)
            assert answer in terminal.until("mininet>")
        terminal.type("h1 ping h2")
        terminal.until("icmp_seq=2")
        terminal.interrupt()
        assert processes_of(run)
        terminal.type("exit")
        assert terminal.process.wait(30) == 0
        assert place.leftovers(run) == []
    finally:
        terminal.close()
        supervisor.stop(place.directory)


def test_an_entry_that_does_not_fit_is_told_with_its_file(folder: Path) -> None:
    wrong = runtime(folder.parent / "build" / "router")
    wrong["table_entries"][1]["table"] = "MyIngress.paths"
    (folder / "s1-runtime.json").write_text(json.dumps(wrong))
    exercise = load_exercise(folder / "topology.json")
    assert exercise is not None
    with pytest.raises(
        SwitchProgramError, match=r"'s1': .*s1-runtime.json: an entry .*no P4Table named 'MyIngress.paths'"
    ):
        program_switch("s1", "127.0.0.1:1", 1, exercise.runtimes["s1"])


@needs_network
def test_a_hosts_command_that_fails_is_told_and_leaves_nothing(folder: Path, place: Place) -> None:
    topology = {**TOPOLOGY, "hosts": {"h1": {}, "h2": {"commands": ["no-such-command --at all"]}}}
    file = write(folder.parent, topology)
    fabric = load_fabric(file)
    net = EmulatedNetwork(
        fabric,
        target=FakeTarget(fabric),
        name=place.name,
        first_grpc_port=place.first_grpc_port,
        exercise=load_exercise(file),
    )
    with pytest.raises(HostCommandError, match=r"host 'h2': `no-such-command --at all`: .*not found"):
        net.start()
    assert place.leftovers(net._run) == []
