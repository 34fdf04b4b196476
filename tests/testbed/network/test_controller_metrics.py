# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller of a network that is in namespaces of its own is reached from outside: Prometheus scrapes it, and a
TCP port that would be inside is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from softswitch.testing.simple_switch import free_port

from netfold.protocol.environment import Variable
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.targets import installed_command
from tests.testbed.network.conftest import new_place
from tests.testbed.network.test_namespaces import DEADLINE_S, SLEEPER, hold, namespaces


@pytest.fixture
def name() -> str:
    return new_place().name


@contextmanager
def network(name: str, mode: NetworkMode) -> Iterator[None]:
    """Makes the namespaces of a network without switches."""
    held = hold(name, mode, SLEEPER)
    try:
        yield
    finally:
        held.process.terminate()
        held.process.wait(DEADLINE_S)


@contextmanager
def controller(
    name: str, folder: Path, port: int, listen: str | None = None
) -> Iterator[subprocess.Popen[str]]:
    command = [installed_command("netfold"), "controller", "run", "single", "--name", name]
    options = [
        "--state",
        folder / "jobs.db",
        "--listen",
        listen or f"unix:{folder}/c.sock",
        "--metrics-port",
        str(port),
    ]
    outside = {k: v for k, v in os.environ.items() if k != Variable.NAMESPACE}
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=outside) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.slow
@namespaces
def test_metrics_are_served_outside_the_namespaces(mode: NetworkMode, name: str, tmp_path: Path) -> None:
    port = free_port()
    with network(name, mode), controller(name, tmp_path, port) as process:
        assert process.stderr is not None
        assert "serving at" in process.stderr.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as answer:
            assert b'netfold_switch_ready{switch="s1"} 0.0' in answer.read()


@pytest.mark.slow
@namespaces
def test_a_metrics_port_in_use_ends_the_controller(mode: NetworkMode, name: str, tmp_path: Path) -> None:
    with network(name, mode), socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with controller(name, tmp_path, port) as process:
            _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 4
    assert f"metrics cannot be served at 127.0.0.1:{port}: process {os.getpid()} (" in errors
    assert "choose another port by --metrics-port" in errors


@pytest.mark.slow
@namespaces
def test_a_tcp_port_that_only_the_network_would_reach_is_refused(
    mode: NetworkMode, name: str, tmp_path: Path
) -> None:
    with network(name, mode), controller(name, tmp_path, free_port(), "127.0.0.1:9600") as process:
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert f"--listen 127.0.0.1:9600 would be inside the namespaces of network '{name}'" in errors
    assert "unix:PATH" in errors
