# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The wheels of netfold and softswitch, installed without a checkout, hold all files that their commands need.

Their dependencies are those of the tests' environment; test_bounds.py installs them from the package index, as a user
would. `make test-wheel` runs both.
"""

from __future__ import annotations

import json
import re
import site
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from softswitch.testing import simple_switch
from softswitch.testing.simple_switch import free_port

from netfold.testbed.network.modes import choose
from tests.house.distributions import DEADLINE_S, Installed, Wheels, build
from tests.house.imports import REPOSITORY
from tests.testbed.environment_runs import PAIR, SMALL

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return build(tmp_path_factory.mktemp("wheels"), is_isolated=False)


@pytest.fixture(scope="module")
def installed(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=DEADLINE_S
    )
    python = folder / "venv" / "bin" / "python"
    purelib = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        check=True, capture_output=True, text=True, timeout=DEADLINE_S,
    ).stdout.strip()  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheels.netfold,
        wheels.softswitch,
    ]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    # Python ignores .pth files in a folder that a .pth file names, hence the checkout's editable installs.
    (Path(purelib) / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    (folder / "empty").mkdir()
    return Installed(python, folder / "empty")


def test_it_serves_every_python_and_brings_the_workers_code_built(wheels: Wheels):
    assert "-py3-none-linux_" in wheels.netfold.name
    names = zipfile.ZipFile(wheels.netfold).namelist()
    built = sorted(re.sub("-[0-9a-f]{16}", "", n) for n in names if n.endswith(".so"))
    assert built == [
        "netfold/simulator/flow/flow.so",
        "netfold/simulator/packet/packet.so",
        "netfold/traffic/engine/_native.so",
    ]
    assert {n.split("/")[0].split("-")[0] for n in names} == {"netfold"}, "one import name, and no tests"


def test_softswitchs_wheel_serves_every_python_and_has_its_c_sources(wheels: Wheels):
    assert wheels.softswitch.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheels.softswitch).namelist())
    package = REPOSITORY / "softswitch" / "softswitch"
    sources = {str(p.relative_to(package.parent)) for p in package.rglob("*.[ch]")}
    assert sources
    assert sources <= names
    assert {n.split("/")[0].split("-")[0] for n in names} == {"softswitch"}, "one import name, and no tests"


def test_what_is_imported_is_the_wheels(installed: Installed):
    code = "import netfold, netfold.traffic.engine.native as n; print(netfold.__file__, n._built_in() is not None)"
    found = installed.run(installed.python, "-c", code)
    assert found.stdout.split()[1] == "True", found.stderr
    assert Path(found.stdout.split()[0]).is_relative_to(installed.python.parents[1])


def test_workers_need_no_compiler(installed: Installed):
    code = "from netfold.traffic.engine.native import library; print(library() is not None)"
    assert installed.run(installed.python, "-c", code, PATH="/nonexistent").stdout.strip() == "True"


def test_nor_does_the_simulator(installed: Installed, tmp_path: Path):
    code = "from netfold.simulator.flow.native import rates; from netfold.simulator.packet.native import library; "
    code += "library(); print(rates([1.0], [])[0].size)"
    nothing = {"PATH": "/nonexistent", "XDG_CACHE_HOME": str(tmp_path)}
    found = installed.run(installed.python, "-c", code, **nothing)
    assert found.stdout.strip() == "0", found.stderr
    assert not list(tmp_path.glob("netfold/*.so"))


@pytest.mark.parametrize("arguments", [["plan", "grid-fig1"], ["doctor"], ["fabric", "list"], ["--help"]])
def test_its_commands_work_in_an_empty_folder(installed: Installed, arguments: list[str]):
    done = installed.run(installed.netfold, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["cli", "--help"]])
def test_softswitchs_commands_work_in_an_empty_folder(installed: Installed, arguments: list[str]):
    done = installed.run(installed.softswitch, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_softswitch_runs_the_compiled_program(installed: Installed):
    with _softswitch(installed):
        pass


@pytest.mark.root
@pytest.mark.mininet
@pytest.mark.timeout(300)
def test_a_whole_run_works_in_an_empty_folder(installed: Installed):
    if choose().mode is None:
        pytest.skip("SKIPPED: namespaces are forbidden here")
    (installed.folder / "pair.yaml").write_text(PAIR)
    done = installed.run(installed.netfold, "run", *SMALL, "--out", "found")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((installed.folder / "found" / "run.json").read_text())


@contextmanager
def _softswitch(installed: Installed) -> Iterator[None]:
    """Started, and answering. Raises SwitchDiedError, with what it said, if it ends instead."""
    code = "from importlib import resources as r; print(r.files('netfold') / 'p4src' / 'compiled')"
    programs = Path(installed.run(installed.python, "-c", code).stdout.strip())
    address, log = f"127.0.0.1:{free_port()}", installed.folder / "switch.log"
    stem = programs / "netfold-v1model-64"
    command = [installed.softswitch, "--grpc-server-addr", address]
    command += ["--p4info", f"{stem}.p4info.txtpb", f"{stem}.json"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=installed.folder, stdout=output, stderr=output)
    try:
        with grpc.insecure_channel(address) as channel:
            simple_switch.wait_until_ready(process, channel, log)
        yield
    finally:
        process.terminate()
        process.wait(20)
