# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A fabric under Mininet's own command, `mn --topo netfold,FABRIC`, and API, `Mininet(topo=FabricTopo(...))`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netfold.testbed.network.targets import installed_command
from tests.testbed.network.conftest import needs_network
from tests.testbed.network.terminal import Terminal

ROOT = Path(__file__).parents[3]
REACHED_S = 240.0
"""Limit until the controller has installed routes, on a busy machine."""

# A failed `mn` removes links, processes and files of /tmp by their names: it gets namespaces of its own, where /tmp is
# read-only, but for the test's folder and that of the compiled programs. `--rbind`, as a user namespace may not bind a
# folder without the mounts below it, which it inherits locked (mount_namespaces(7)).
ALONE = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "sh", "-c"]
ALONE += [
    "mount --rbind /tmp /tmp && mount --rbind $TMPDIR $TMPDIR && mount --rbind $HOME $HOME &&"
    ' mount -o remount,bind,ro /tmp && cd / && ip link set lo up && exec "$@"',
    "sh",
]


def _settings(folder: Path) -> dict[str, str]:
    """Environment variables that put temporary files and sockets into `folder`."""
    return {"TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)}


needs_softswitch = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def in_the_system_python() -> bool:
    """Whether Debian's `mn` can import the packages of this environment: both are of one version of Python."""
    if shutil.which("mn") is None:
        return False
    version = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", version], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stdout.split() == [str(n) for n in sys.version_info[:2]]


@pytest.mark.slow
@needs_network
@needs_softswitch
@pytest.mark.skipif(
    not in_the_system_python(), reason="needs Debian's mn, with the version of Python that runs the tests"
)
def test_mn_brings_up_a_fabric_that_a_controller_connects(tmp_path: Path) -> None:
    custom = str(ROOT / "testbed/network/mininet_topo.py")
    words = ["--topo", "netfold,single", "--switch", "netfold", "--controller", "none"]
    settings = [f"{k}={v}" for k, v in _settings(tmp_path).items()]
    terminal = Terminal(["env", *settings, *ALONE, "mn", "--custom", custom, *words], tmp_path)
    run = f"{installed_command('netfold')} controller run single --state s.db --listen unix:c.sock"
    try:
        terminal.until("mininet>", 120.0)
        terminal.type("links")
        assert "h1-eth0<->s1-eth1 (OK OK)" in terminal.until("mininet>")
        terminal.type(f"sh cd {tmp_path} && {run} >controller.log 2>&1 &")
        terminal.until("mininet>")
        deadline = time.monotonic() + REACHED_S
        answer = ""
        while not answer.startswith("0% dropped"):
            assert time.monotonic() < deadline, answer
            terminal.type("pingall")
            terminal.until("Results: ", REACHED_S)
            answer = terminal.until("mininet>")
        terminal.type("exit")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()


@pytest.mark.slow
@needs_network
@needs_softswitch
def test_a_program_builds_a_network_of_the_topology(tmp_path: Path) -> None:
    program = """
from netfold.testbed.network.mininet_topo import FabricTopo  # it also makes Debian's Mininet importable
from mininet.net import Mininet
from netfold.topologies.spec import load_fabric
net = Mininet(topo=FabricTopo(load_fabric("single")), controller=None)
net.start()
try:
    assert net["s1"].launch.grpc_address.startswith("127.0.0.1:")
    print(net["h1"].cmd("ip -br address show h1-eth0"), net["h1"].cmd("tc qdisc show dev h1-eth0"))
finally:
    net.stop()
"""
    done = subprocess.run(
        [*ALONE, sys.executable, "-P", "-c", program],
        env={**os.environ, **_settings(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "10.1.0.1/32" in done.stdout
    assert "tbf" in done.stdout
