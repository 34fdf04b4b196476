# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` where people are: as root, as a user, as root of a container, and where namespaces are forbidden. The
whole way, with every sum checked; what forbids it is one line."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.protocol.runtime import is_root
from netfold.testbed.network.holder import NAMESPACE_VARIABLE
from netfold.testbed.network.modes import NetworkMode, try_mode
from netfold.testbed.network.state import interfaces_of
from netfold.testbed.network.targets import installed_command
from tests.testbed.environments import USER, Environment

DEADLINE_S = 240
SMALL = ["--fabric", "single", "--target", "softswitch", "--lanes", "64", "--epochs", "1", "--size", "4096"]
SMALL += ["--iterations", "1", "--no-ring"]

pytestmark = [
    pytest.mark.root,
    pytest.mark.mininet,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not is_root(), reason="SKIPPED: needs root, to become others"),
    pytest.mark.skipif(
        any(shutil.which(t) is None for t in ("gcc", "mnexec", "setpriv")),
        reason="SKIPPED: needs gcc and Mininet",
    ),
]


def may_run(environment: Environment) -> None:
    """Skips where this machine or the place of this checkout cannot make the environment."""
    if environment is not Environment.ROOT and try_mode(NetworkMode.ROOTLESS) is not None:
        pytest.skip("SKIPPED: user namespaces are forbidden here")
    if environment is Environment.USER and not _reaches(sys.executable):
        pytest.skip("SKIPPED: other users cannot reach this Python")


def _reaches(program: str) -> bool:
    tried = subprocess.run(
        [*Environment.USER.prefix(), program, "-c", "import netfold"], capture_output=True, check=False
    )
    return tried.returncode == 0


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the user of `Environment.USER` owns and reaches."""
    with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
        yield Path(folder)


def netfold(environment: Environment, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    if environment is Environment.USER:
        os.chown(home, USER, USER)
    hidden = (NAMESPACE_VARIABLE, "NETFOLD_RUN_DIR", "NETFOLD_NAME", "XDG_CACHE_HOME", "SOFTSWITCH_CACHE")
    variables = {k: v for k, v in os.environ.items() if k not in hidden}
    variables |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "NETFOLD_RUN_DIR": str(home / "run")}
    command = [*environment.prefix(), installed_command("netfold"), *arguments]
    return subprocess.run(
        command, cwd=home, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


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
    done = netfold(environment, home, "run", "--network", wanted, *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"network: {mode}" in done.stdout
    report = json.loads((home / "out" / "run.json").read_text())
    assert (report["network"], report["wrong_elements"]) == (mode, 0)
    assert report["packets_aggregated"] > 0
    assert (home / "out" / "run.json").stat().st_uid == (USER if environment is Environment.USER else 0)
    left = {str(p.relative_to(home / "run")) for p in (home / "run").rglob("*")}
    assert {p for p in left if "logs" not in p} <= {"nf", "nf/lock"}


@pytest.mark.parametrize("environment", [Environment.ROOT, Environment.USER])
def test_a_network_stays_up_between_commands_and_is_seen_nowhere_else(
    environment: Environment, home: Path
) -> None:
    may_run(environment)
    up = netfold(environment, home, "up", "single", "--name", "mine", "--target", "softswitch")
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        address = re.search(r"127\.0\.0\.1:\d+", up.stdout)
        assert address is not None
        with pytest.raises(ConnectionRefusedError):  # other users of this machine cannot become primary
            socket.create_connection(("127.0.0.1", int(address[0].rpartition(":")[2])), timeout=10)
        assert not interfaces_of("mine"), "a stranger's frames could reach the machine's own sockets"
        inside = netfold(environment, home, "exec", "h1", "--name", "mine", "--", "ip", "-o", "address")
        assert "10.1.0.1/32" in inside.stdout
        assert netfold(environment, home, "link", "down", "h1-s1", "--name", "mine").returncode == 0
        assert "h1-s1 down" in netfold(environment, home, "link", "show", "--name", "mine").stdout
    finally:
        down = netfold(environment, home, "down", "--name", "mine")
    assert "'mine' is down" in down.stdout


@pytest.mark.parametrize(
    "command", [["run", "--network", "rootless", *SMALL], ["up", "single"]], ids=lambda c: c[0]
)
def test_where_namespaces_are_forbidden_one_line_says_by_what(command: list[str], home: Path) -> None:
    may_run(Environment.SEALED)
    done = netfold(Environment.SEALED, home, *command)
    assert done.returncode == 1
    [line] = [x for x in done.stderr.splitlines() if x.startswith("netfold: ")]
    assert "seccomp" in line
    assert not list(home.rglob("state.json*"))
