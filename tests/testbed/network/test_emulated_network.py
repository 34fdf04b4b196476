# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The builder's arithmetic and choices: what needs neither root nor a network."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from typer.testing import CliRunner

from netfold.protocol.environment import Variable
from netfold.testbed.network import cli, isolation, kernel, targets, tools
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import (
    AlreadyUpError,
    MissingToolError,
    NetworkError,
    NotRootError,
    SwitchFailedError,
)
from netfold.testbed.network.faults import Faults, request
from netfold.testbed.network.state import (
    HostState,
    LinkState,
    RunDirectory,
    State,
    SwitchState,
    processes_of,
)
from netfold.testbed.network.targets import Bmv2, Launch, Port, Softswitch, choose_target, target_reason
from netfold.topologies import cli as fabric_cli
from netfold.topologies.fabric import Fabric, Host, Link, Switch
from netfold.topologies.ports import Chip
from netfold.topologies.spec import load_fabric

LAUNCH = Launch(
    "leaf1",
    3,
    "127.0.0.1:9561",
    (Port(1, "nf1-1", "h1", 100_000_000, 64, 0.0), Port(2, "nf1-2", "spine1", 200_000_000, 32, 1.5)),
    510,
    Path("/run/x/leaf1.sock"),
)


def test_rates_are_the_fabrics_times_the_scale() -> None:
    net = EmulatedNetwork(load_fabric("grid-fig1"), scale=0.01)
    assert net.rate_bps("W1", "S1") == net.rate_bps("S1", "W1") == 30_000_000
    assert net.rate_bps("S3", "PS") == 90_000_000


def test_parameter_server_takes_in_its_capacity_but_sends_at_link_rate() -> None:
    net = EmulatedNetwork(load_fabric("inart-fig1"), scale=10)
    assert net.rate_bps("V1", "S1") == 40_000_000
    assert net.rate_bps("S1", "V1") == 60_000_000


def test_numbers_without_unit_need_a_scale() -> None:
    with pytest.raises(NetworkError, match="has no unit: expected a scale"):
        EmulatedNetwork(load_fabric("inart-fig1"))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_scale_must_be_a_positive_number(scale: float) -> None:
    with pytest.raises(NetworkError, match="expected a number above 0"):
        EmulatedNetwork(load_fabric("single"), scale=scale)


@pytest.mark.parametrize("name", ["", "Nf", "toolong", "a/b", "../x", "n1"])
def test_network_names_are_checked(name: str) -> None:
    with pytest.raises(NetworkError, match="1 to 6 lower-case letters"):
        RunDirectory(name)


def test_interface_names_fit_the_kernel() -> None:
    net = EmulatedNetwork(load_fabric("leaf-spine-4x2"), name="abcdef")
    for launch in (net.blueprint.launch(s.name, Path("x"), None) for s in net.fabric.switches):
        assert all(len(p.interface) <= 15 for p in launch.ports)
        assert {p.peer: p.number for p in launch.ports} == net.fabric.ports[launch.name]


def test_ports_have_the_numbers_that_a_switch_gives_them() -> None:
    hosts = (Host("h1"), Host("h2"))
    switch = Switch("s1", ports=(("h1", 455), ("h2", 4)), chip=Chip.TOFINO)
    net = EmulatedNetwork(
        Fabric("f", hosts, (switch,), (Link("h1", "s1", 1.0), Link("h2", "s1", 1.0))), name="abcdef"
    )
    launch = net.blueprint.launch("s1", Path("x"), None)
    assert [(p.peer, p.number, p.interface) for p in launch.ports] == [
        ("h1", 455, "abcdef1-455"),
        ("h2", 4, "abcdef1-4"),
    ]


def test_softswitch_is_told_rates_queues_and_sockets() -> None:
    words = " ".join(Softswitch().command(LAUNCH))
    for part in (
        "softswitch --no-p4 --device-id 3 --grpc-server-addr 127.0.0.1:9561",
        "--cpu-port 510",
        "--control-socket /run/x/leaf1.sock",
        "-i 1@nf1-1",
        "-i 2@nf1-2",
        "--port-queue 2=32",
    ):
        assert part in words


@pytest.mark.parametrize("has_thrift", [True, False])
def test_bmv2_puts_its_own_options_after_the_dashes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_thrift: bool
) -> None:
    program = tmp_path / "simple_switch_grpc"
    program.write_text("#!/bin/sh\n" + ("echo '--thrift-port ARG' >&2\n" if has_thrift else ""))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    targets._bmv2_has_thrift.cache_clear()
    command = Bmv2().command(LAUNCH)
    targets._bmv2_has_thrift.cache_clear()
    dashes = command.index("--")
    assert command[dashes:] == ["--", "--grpc-server-addr", "127.0.0.1:9561", "--cpu-port", "510"]
    assert ("--thrift-port 9093" in " ".join(command)) is has_thrift


def test_a_switch_answers_while_its_address_listens(tmp_path: Path) -> None:
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / "s1"))
    unix.listen()
    tcp = socket.create_server(("127.0.0.1", 0))
    for listening, address in ((unix, f"unix:{tmp_path}/s1"), (tcp, f"127.0.0.1:{tcp.getsockname()[1]}")):
        assert cli._listens(address)
        listening.close()
        assert not cli._listens(address)


def test_auto_takes_softswitch_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_path(*names: str) -> None:
        monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}" if tool in names else None)

    on_path("gcc", "simple_switch_grpc")
    assert choose_target("auto").name == "softswitch"
    assert target_reason("auto", choose_target("auto")) == (
        "softswitch, the default; --target bmv2 selects /usr/bin/simple_switch_grpc, which is much slower"
    )
    assert target_reason("softswitch", choose_target("softswitch")) == "softswitch, as requested"
    on_path("gcc")
    assert target_reason("auto", choose_target("auto")) == "softswitch, the default"
    on_path("simple_switch_grpc")
    assert choose_target("auto").name == "bmv2"
    assert "needs a C compiler" in target_reason("auto", choose_target("auto"))
    on_path()
    with pytest.raises(MissingToolError, match="a C compiler is missing: apt-get install gcc"):
        choose_target("auto")
    with pytest.raises(MissingToolError, match="simple_switch_grpc is missing"):
        choose_target("bmv2")
    with pytest.raises(NetworkError, match="expected auto, softswitch, bmv2, tofino-model"):
        choose_target("tofino")


def test_shape_bounds_the_queue_in_packets() -> None:
    line = kernel.shape("nf1-1", 100_000_000, 64, 0.0, 1500)
    assert "rate 100000000bit" in line
    assert f"limit {64 * 1514}" in line
    assert "netem" not in line
    assert "netem delay 2.5ms" in kernel.shape("nf1-1", 100_000_000, 64, 2.5, 1500)
    assert "burst 4542 " in kernel.shape("nf1-1", 1_000_000, 64, 0.0, 1500), "never less than three frames"


def test_missing_tool_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    tools.tool.cache_clear()
    with pytest.raises(MissingToolError, match="ethtool is missing: apt-get install ethtool"):
        tools.check_tools(["ethtool"])


def test_without_root_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotRootError):
        EmulatedNetwork(load_fabric("single")).start()


def test_what_uses_roots_network_runs_through_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def execv(path: str, arguments: list[str]) -> None:
        called.append(arguments)
        raise SystemExit(0)

    monkeypatch.delenv(Variable.NAMESPACE)
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path / "own"))
    (tmp_path / "roots" / "nf").mkdir(parents=True)
    monkeypatch.setattr(isolation, "ROOTS_FOLDER", tmp_path / "roots")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr("sys.argv", ["netfold", "network", "status"])
    assert "network 'nf' is not up" in CliRunner().invoke(cli.app, ["status"]).output
    (tmp_path / "roots" / "nf" / "state.json").touch()
    CliRunner().invoke(cli.app, ["status"])
    assert called[0][:2] == ["/usr/bin/sudo", "env"]
    assert called[0][-3:] == ["netfold", "network", "status"]


@pytest.fixture
def network_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that is up, with switch s1, of a netfold that is installed without p4runtime-shell."""
    state = State("t", "r", 1, "f", "fake", True, switches={"s1": SwitchState("s1", 1, "a", "c", "l")})
    monkeypatch.setattr(RunDirectory, "up", lambda _: state)
    monkeypatch.setattr(cli, "enter_network", lambda _: None)
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    monkeypatch.delenv("NETFOLD_P4RT_SHELL", raising=False)


@pytest.mark.parametrize("named", [None, "nowhere"])
def test_shell_says_how_to_get_it(named: str | None, network_of_one: None, tmp_path: Path) -> None:
    result = CliRunner(env={"NETFOLD_P4RT_SHELL": named}).invoke(cli.app, ["shell", "s1"])
    assert result.exit_code == 1
    assert f"p4runtime-shell is not installed in {named or tmp_path / '.venv-p4rt-shell'}" in result.output
    assert "python3 -m venv DIR && DIR/bin/pip install p4runtime-shell" in result.output
    assert "NETFOLD_P4RT_SHELL=DIR" in result.output
    assert "'s2' is no switch" in CliRunner().invoke(cli.app, ["shell", "s2"]).output


@pytest.mark.parametrize("way", ["checkout", "environment", "interpreter", "option"])
def test_shell_runs_in_the_environment_that_is_named_or_beside(
    way: str, network_of_one: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / (".venv-p4rt-shell" if way == "checkout" else "own")
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)  # of which the environment is not that of its target
    monkeypatch.chdir(tmp_path)
    variable = {"checkout": None, "environment": "own", "interpreter": str(python), "option": "nowhere"}[way]
    called: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: called.append([str(path), *words]))
    options = ["--environment", "own"] if way == "option" else []
    result = CliRunner(env={"NETFOLD_P4RT_SHELL": variable}).invoke(cli.app, ["shell", "s1", *options])
    assert (result.exit_code, result.output) == (0, "")
    assert called[0][:4] == [str(python), str(python), "-m", "p4runtime_sh"]


def test_a_run_directory_that_cannot_be_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", "/proc/none")
    with pytest.raises(NetworkError, match="cannot make the folder /proc/none"):
        RunDirectory("t").acquire()


def test_a_log_becomes_one_line() -> None:
    error = SwitchFailedError("s1", "ended with exit code 1", "a\n\n  b \n")
    assert str(error) == "switch 's1' ended with exit code 1: a | b"


def test_state_survives_the_file(place: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path))
    directory = RunDirectory("t")
    directory.logs.mkdir(parents=True)
    state = State(
        "t", "r", 1, "f", "fake", True, True, {"h": HostState(2, "10.1.0.1", "m")},
        {"s": SwitchState("s1", 1, "a", "c", "l")}, (LinkState("h", "s", None, "t1-1"),),
    )  # fmt: skip
    directory.write(state)
    assert directory.read() == state
    assert state.link("s-h") is state.links[0]
    assert state.links[0].root_interface == "t1-1"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"hosts": 1}', json.dumps({"hosts": {"a": {"x": 1}}})]
)
def test_garbage_in_the_state_file_is_no_state(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path))
    directory = RunDirectory("t")
    directory.logs.mkdir(parents=True)
    (directory.path / "state.json").write_text(text)
    assert directory.read() is None


def test_fabric_commands() -> None:
    run = CliRunner().invoke
    assert "grid-fig1" in run(fabric_cli.listed, []).output
    assert "9 hosts, 3 switches, 12 links" in run(fabric_cli.check, ["grid-fig1"]).output
    shown = json.loads(run(fabric_cli.show, ["inart-fig1", "--json"]).output)
    assert shown["hosts"][0] == {
        "name": "W1", "parameter_server": False, "capacity": None, "address": "10.1.0.1", "at": "V1",
        "mac": "02:00:0a:01:00:01",
    }  # fmt: skip
    assert "10.255.0.2" in run(fabric_cli.show, ["inart-fig1"]).output
    bad = run(fabric_cli.check, ["nothing"])
    assert bad.exit_code == 2
    assert bad.output.startswith("netfold: 'nothing' is neither a file nor a spec")


def test_a_process_is_found_even_in_the_middle_of_an_exec(tmp_path: Path) -> None:
    """The kernel shows an empty environment while exec replaces it; this one does little else."""
    script = tmp_path / "again"
    script.write_text('#!/bin/sh\nexec "$0"\n')
    script.chmod(0o755)
    run = uuid.uuid4().hex
    with subprocess.Popen([script], env={**os.environ, Variable.NETWORK: run}) as process:
        try:
            assert all(processes_of(run) == [process.pid] for _ in range(50))
        finally:
            process.kill()
    assert processes_of(run) == []


@pytest.mark.parametrize(
    "bad", [{"loss": 1.5}, {"reorder": -0.1}, {"delay_ms": -1}, {"corrupt": float("nan")}]
)
def test_faults_have_bounds(bad: dict[str, float]) -> None:
    with pytest.raises(NetworkError, match=next(iter(bad))):
        Faults(**bad)  # type: ignore[arg-type]


def test_faults_are_shown_in_words() -> None:
    assert str(Faults(loss=0.05, delay_ms=1.5)) == "loss 0.05, delay 1.5 ms"
    assert str(Faults()) == ""


def test_fault_request_adds_the_links_own_delay() -> None:
    request = Faults(loss=0.05, delay_ms=1, seed=7).request(3, "in", link_delay_ms=0.5)
    assert request["delay_ns"] == 1_500_000
    assert (request["port"], request["direction"], request["loss"], request["seed"]) == (3, "in", 0.05, 7)


def test_control_socket_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="does not answer"):
        request(tmp_path / "none.sock", [{"op": "info"}])


def test_a_look_whether_a_network_is_up_hinders_no_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path))
    owner, asker = RunDirectory("t"), RunDirectory("t")
    owner.prepare()
    owner.acquire()
    owner.release()
    steps = 0

    def become_owner_at_each_step(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if frame.f_code.co_name in ("owned", "is_locked") and event in ("line", "return"):
            steps += 1
            owner.acquire()
            owner.release()
        return become_owner_at_each_step

    old = sys.gettrace()
    sys.settrace(become_owner_at_each_step)
    try:
        assert not asker.owned
    finally:
        sys.settrace(old)
    assert steps > 3
    owner.acquire()
    assert asker.owned
    owner.release()


def test_only_one_process_owns_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path))
    directory = RunDirectory("t")
    directory.acquire()
    child = subprocess.run(
        [sys.executable, "-c", "from netfold.testbed.network.state import RunDirectory as R\n"
         "print(R('t').owned)\nR('t').acquire()"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert child.stdout == "True\n"
    assert "AlreadyUpError" in child.stderr
    with pytest.raises(AlreadyUpError):
        RunDirectory("t").acquire()
    directory.release()
    RunDirectory("t").acquire()


def test_a_full_disk_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_RUN_DIR", str(tmp_path))
    directory = RunDirectory("t")
    directory.prepare()
    (directory.path / "state.json.new").symlink_to("/dev/full")
    with pytest.raises(NetworkError, match=r"state\.json\.new cannot be written: No space left on device"):
        directory.write(State("t", "r", 1, "f", "fake"))
    (directory.path / "lock").mkdir()
    with pytest.raises(NetworkError, match=r"lock cannot be written: Is a directory"):
        directory.acquire()
