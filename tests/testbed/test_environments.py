# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` where people are: as root, as a user, as root of a container, and where namespaces are forbidden. The
whole way, with every sum checked; what forbids it is one line."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from netfold.testbed.network.state import interfaces_of
from netfold.testbed.network.targets import installed_command
from tests.testbed.environment_runs import MARKS, SMALL, finish, home_of, may_run, run, start
from tests.testbed.environments import Environment

pytestmark = [*MARKS, pytest.mark.long, pytest.mark.timeout(300)]  # run by make test-environments


@pytest.fixture
def home(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The home of the environment that is a parameter of the test, else root's."""
    with home_of(request.node.callspec.params.get("environment", Environment.ROOT)) as folder:
        yield folder


@pytest.mark.parametrize(
    ("environment", "wanted", "mode"),
    [
        (Environment.ROOT, "auto", "mininet"),
        (Environment.USER, "auto", "rootless"),
        (Environment.CONTAINER, "auto", "rootless"),
        (Environment.SEALED, "auto", "userland"),
        (Environment.USER, "userland", "userland"),
    ],
)
def test_a_whole_run_leaves_its_results_only(
    environment: Environment, wanted: str, mode: str, home: Path
) -> None:
    may_run(environment)
    done = run(environment, home, "run", "--network", wanted, *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"network: {mode}" in done.stdout
    report = json.loads((home / "out" / "run.json").read_text())
    assert (report["network"], report["wrong_elements"]) == (mode, 0)
    assert report["packets_aggregated"] > 0
    assert (home / "out" / "run.json").stat().st_uid == environment.uid
    left = {str(p.relative_to(home / "run")) for p in (home / "run").rglob("*")}
    assert {p for p in left if "logs" not in p} <= {"nf", "nf/lock"}


@contextmanager
def capture_of(environment: Environment, home: Path, *arguments: str) -> Iterator[IO[str]]:
    """Yields the output of `netfold network pcap`, from the moment in which it captures."""
    with start(environment, home, "network", "pcap", *arguments) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        try:
            while "link-type EN10MB" not in (line := watching.stderr.readline()):
                assert line, "tcpdump has ended"
            yield watching.stdout
        finally:
            watching.terminate()


@pytest.mark.parametrize("environment", [Environment.ROOT, Environment.USER])
def test_a_network_stays_up_between_commands_and_is_seen_nowhere_else(
    environment: Environment, home: Path
) -> None:
    may_run(environment)
    up = run(environment, home, "network", "up", "single", "--name", "mine", "--target", "softswitch")
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        address = re.search(r"127\.0\.0\.1:\d+", up.stdout)
        assert address is not None
        with pytest.raises(ConnectionRefusedError):  # other users of this machine cannot become primary
            socket.create_connection(("127.0.0.1", int(address[0].rpartition(":")[2])), timeout=10)
        assert not interfaces_of("mine"), "a stranger's frames could reach the machine's own sockets"
        inside = run(
            environment, home, "network", "exec", "h1", "--name", "mine", "--", "ip", "-o", "address"
        )
        assert "10.1.0.1/32" in inside.stdout
        from_host = ["network", "exec", "h1", "--name", "mine", "--", installed_command("netfold")]
        nested = run(
            environment,
            home,
            *from_host,
            "network",
            "exec",
            "h2",
            "--name",
            "mine",
            "--",
            "ip",
            "-o",
            "address",
        )
        assert "10.1.0.2/32" in nested.stdout, nested.stderr
        assert "h2" in run(environment, home, *from_host, "network", "status", "--name", "mine").stdout
        with capture_of(environment, home, "h1-s1", "--name", "mine") as packets:
            assert (
                run(environment, home, "network", "link", "down", "h1-s1", "--name", "mine").returncode == 0
            )
            assert "h1-s1 down" in run(environment, home, "network", "link", "show", "--name", "mine").stdout
            assert run(environment, home, "network", "link", "up", "h1-s1", "--name", "mine").returncode == 0
            ping = ["ping", "-c1", "-W1", "10.1.0.2"]  # no switch without a program answers
            run(environment, home, "network", "exec", "h1", "--name", "mine", "--", *ping)
            assert "10.1.0.1 > 10.1.0.2: ICMP echo request" in packets.readline()
        refused = run(environment, home, "network", "pcap", "h1-s1", "--name", "mine", "-w", "none/file.pcap")
        assert refused.returncode == 1
        [line] = [x for x in refused.stderr.splitlines() if "none/file.pcap" in x]
        assert "No such file or directory" in line
    finally:
        down = run(environment, home, "network", "down", "--name", "mine")
    assert "'mine' is down" in down.stdout


@pytest.mark.parametrize(
    "command", [["run", "--network", "rootless", *SMALL], ["network", "up", "single"]], ids=lambda c: c[0]
)
def test_where_namespaces_are_forbidden_one_line_says_by_what(command: list[str], home: Path) -> None:
    may_run(Environment.SEALED)
    done = run(Environment.SEALED, home, *command)
    assert done.returncode == 1
    [line] = [x for x in done.stderr.splitlines() if x.startswith("netfold: ")]
    assert "seccomp" in line
    assert not list(home.rglob("state.json*"))


@contextmanager
def default_folders_of(users: list[Environment], name: str) -> Iterator[dict[Environment, Path]]:
    """Where these users have the files of a network so named, below /tmp for all of them; removed at the end."""
    folders = {user: Path(f"/tmp/netfold-{user.uid}/netfold/{name}") for user in users}
    assert not [f for f in folders.values() if f.exists()]
    try:
        yield folders
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other networks of theirs stay
                folder.parent.rmdir()
                folder.parent.parent.rmdir()


@pytest.mark.long
@pytest.mark.parametrize("mode", ["rootless", "userland"])
def test_two_users_run_the_same_command_at_the_same_time(mode: str) -> None:
    """One installation, one network name, nothing set that would keep the users apart."""
    users = [Environment.USER, Environment.NEIGHBOR]
    for user in users:
        may_run(user)
    default = {"XDG_RUNTIME_DIR": "", "NETFOLD_RUN_DIR": "", "NETFOLD_NAME": "both"}
    with ExitStack() as stack:
        first, second = (stack.enter_context(home_of(user)) for user in users)
        folders = stack.enter_context(default_folders_of(users, "both"))
        homes = dict(zip(users, (first, second), strict=True))
        command = ["run", "--network", mode, *SMALL]
        running = [start(user, home, *command, variables=default) for user, home in homes.items()]
        assert running[0].poll() is None
        for (user, home), process in zip(homes.items(), running, strict=True):
            done = finish(process)
            assert done.returncode == 0, done.stdout + done.stderr
            file = home / "out" / "run.json"
            report = json.loads(file.read_text())
            assert (report["network"], report["wrong_elements"]) == (mode, 0)
            assert report["packets_aggregated"] > 0
            assert file.stat().st_uid == user.uid
        for user, folder in folders.items():
            inside = list(folder.rglob("*"))
            assert {p.lstat().st_uid for p in [folder, *inside]} == {user.uid}
            left = {str(p.relative_to(folder)) for p in inside if "logs" not in p.parts}
            assert left <= {"lock"}
