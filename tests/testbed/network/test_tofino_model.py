# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The pair of model and drivers as one switch process, with stand-ins for both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from softswitch.testing.simple_switch import free_port

from netfold.testbed.network import tofino_model
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.targets import Launch, Port, choose_target
from netfold.topologies.ports import Chip

STAND_IN = """#!{python}
import json, os, sys, time
name = os.path.basename(__file__)
open(name + ".pid", "w").write(str(os.getpid()))
open(name + ".arguments", "w").write(json.dumps(sys.argv[1:]))
{then}
"""
STAYS = "time.sleep(60)"


def _install(folder: Path, model: str = STAYS, drivers: str = STAYS) -> Path:
    """A folder for PATH with both programs."""
    binaries = folder / "sde" / "bin"
    binaries.mkdir(parents=True)
    for name, then in ((tofino_model.MODEL, model), (tofino_model.DRIVERS, drivers)):
        program = binaries / name
        program.write_text(STAND_IN.format(python=sys.executable, then=then))
        program.chmod(0o755)
    return binaries


def _start(binaries: Path, folder: Path, port: int, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", tofino_model.__name__, "--grpc", f"127.0.0.1:{port}"]
    command += ["--folder", str(folder), "-i", "1@nf1-1", "-i", "132@nf1-132", *more]
    path = os.pathsep.join((str(binaries), os.environ["PATH"]))
    return subprocess.Popen(command, env={**os.environ, "PATH": path}, stderr=subprocess.PIPE, text=True)


def _arguments(folder: Path, name: str) -> list[str]:
    path = folder / f"{name}.arguments"
    _until(lambda: path.exists() and path.read_text().endswith("]"))
    found: list[str] = json.loads(path.read_text())
    return found


def _until(true: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _alive(folder: Path, name: str) -> bool:
    try:
        os.kill(int((folder / f"{name}.pid").read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def port() -> int:
    return free_port()


def test_both_are_told_of_each_other_and_of_the_ports(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "run"
    with _start(_install(tmp_path), folder, port) as pair:
        model, drivers = (_arguments(folder, n) for n in (tofino_model.MODEL, tofino_model.DRIVERS))
        base = str(tofino_model.tcp_port(port))
        assert model[model.index("-t") + 1] == drivers[drivers.index("--tcp-port-base") + 1] == base
        assert drivers[drivers.index("--p4rt-server") + 1] == f"127.0.0.1:{port}"
        for words in (model, drivers):
            assert words[words.index("--install-dir") + 1] == str(tmp_path / "sde")
        ports = json.loads(Path(model[model.index("-f") + 1]).read_text())["PortToIf"]
        assert ports == [{"device_port": 1, "if": "nf1-1"}, {"device_port": 132, "if": "nf1-132"}]
        config = json.loads(Path(drivers[drivers.index("--conf-file") + 1]).read_text())
        assert "virtual" not in config["chip_list"][0], "the drivers would leave the chip alone"
        assert model[model.index("--chip-type") + 1] == "2"
        assert config["chip_list"][0]["chip_family"] == "Tofino"
        pair.terminate()
        assert pair.wait(20) == 0
    assert not any(_alive(folder, n) for n in (tofino_model.MODEL, tofino_model.DRIVERS))


def test_both_are_told_of_another_chip(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "run"
    with _start(_install(tmp_path), folder, port, "--chip", "tofino2") as pair:
        model, drivers = (_arguments(folder, n) for n in (tofino_model.MODEL, tofino_model.DRIVERS))
        assert model[model.index("--chip-type") + 1] == "5"
        config = json.loads(Path(drivers[drivers.index("--conf-file") + 1]).read_text())
        assert config["chip_list"][0]["chip_family"] == "Tofino2"
        pair.terminate()
        assert pair.wait(20) == 0


@pytest.mark.parametrize("name", [tofino_model.MODEL, tofino_model.DRIVERS])
def test_one_that_ends_takes_the_other_with_it_and_is_named(tmp_path: Path, port: int, name: str) -> None:
    ends = {"model" if name == tofino_model.MODEL else "drivers": "sys.exit(3)"}
    folder = tmp_path / "run"
    with _start(_install(tmp_path, **ends), folder, port) as pair:
        _, errors = pair.communicate(timeout=20)
        assert pair.returncode == 1
    assert f"{name} ended with 3" in errors
    for one in (tofino_model.MODEL, tofino_model.DRIVERS):
        assert not (folder / f"{one}.pid").exists() or not _alive(folder, one)


def test_a_pair_that_is_killed_leaves_neither(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "run"
    with _start(_install(tmp_path), folder, port) as pair:
        for name in (tofino_model.MODEL, tofino_model.DRIVERS):
            _arguments(folder, name)
        pair.kill()
        pair.wait(20)
    _until(lambda: not any(_alive(folder, n) for n in (tofino_model.MODEL, tofino_model.DRIVERS)))


def test_a_machine_without_the_stack_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NetworkError, match=r"^not on PATH: tofino-model .*open-p4studio"):
        choose_target("tofino-model")


@pytest.mark.parametrize("free", ["127\n", None])
def test_too_few_huge_pages_are_said_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], free: str | None
) -> None:
    pages = tmp_path / "free_hugepages"
    if free is not None:
        pages.write_text(free)
    (memory := tmp_path / "meminfo").write_text("MemAvailable:    9000000 kB\n")
    monkeypatch.setattr(tofino_model, "_FREE_PAGES", pages)
    monkeypatch.setattr(tofino_model, "_MEMORY", memory)
    monkeypatch.setenv("PATH", str(_install(tmp_path)))
    assert tofino_model.main(["--check", "1"]) == 1
    assert (
        "each switch of tofino-model needs 128: sysctl vm.nr_hugepages=128 for 1" in capsys.readouterr().err
    )
    pages.write_text("128\n")
    assert tofino_model.main(["--check", "1"]) == 0
    assert tofino_model.main(["--check", "2"]) == 1
    assert "vm.nr_hugepages=256 for 2" in capsys.readouterr().err


def test_too_little_memory_and_missing_compilers_are_said_before_anything_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pages := tmp_path / "free_hugepages").write_text("256\n")
    (memory := tmp_path / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:    5000000 kB\n")
    monkeypatch.setattr(tofino_model, "_FREE_PAGES", pages)
    monkeypatch.setattr(tofino_model, "_MEMORY", memory)
    monkeypatch.setenv("PATH", str(_install(tmp_path)))
    assert tofino_model.main(["--check", "1"]) == 0
    assert tofino_model.main(["--check", "2"]) == 1
    assert "5.1 GB of memory are available; 2 switches of tofino-model need 7.2" in capsys.readouterr().err
    assert tofino_model.main(["--check", "1", "p4c-barefoot"]) == 1
    assert capsys.readouterr().err.startswith(
        "netfold: not on PATH: p4c-barefoot (build p4lang/p4c with its Tofino back end)"
    )
    memory.write_text("MemAvailable:    3700000 kB\n")
    assert tofino_model.main(["--check", "1"]) == 0
    assert tofino_model.main(["--check", "1", "--chip", "tofino2"]) == 1
    assert "need 3.9" in capsys.readouterr().err


def test_all_missing_programs_are_named_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tofino_model.main(["--check", "1", "p4c-barefoot", "bfas"]) == 1
    assert capsys.readouterr().err == (
        "netfold: not on PATH: tofino-model and bf_switchd (build p4lang/open-p4studio), "
        "p4c-barefoot and bfas (build p4lang/p4c with its Tofino back end); see docs/how-to/tofino.md, section 3\n"
    )


def test_switches_of_one_network_take_ports_of_their_own() -> None:
    assert len({tofino_model.tcp_port(9559 + i) // 2 for i in range(64)}) == 64


def test_a_network_starts_the_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join((str(_install(tmp_path)), os.environ["PATH"])))
    port = Port(132, "nf1-2", "h1", 10**5, 64, 0.0)
    launch = Launch("leaf1", 1, "127.0.0.1:9559", (port,), 510, tmp_path / "leaf1.sock")
    target = choose_target("tofino-model")
    assert target.device_id(launch) == 0, "the drivers have no other, and end when they are told of one"
    command = target.command(launch)
    assert command[1:3] == ["-m", "netfold.testbed.network.tofino_model"]
    assert command[-2:] == ["-i", "132@nf1-2"]
    assert "--chip" not in command
    assert "tofino2" in target.command(replace(launch, chip=Chip.TOFINO2))
    assert shutil.which(command[0])
