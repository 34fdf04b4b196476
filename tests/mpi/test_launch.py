# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold host mpirun`: the launcher's command line, and programs that need no network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from netfold.traffic.mpi.launch import Flavor, MpiProgram, command_line
from netfold.traffic.mpi.recipe import MpiBuildError, compiler_of
from tests.mpi.hosts import running_hosts
from tests.mpi.launcher import DEADLINE_S, Mpi

pytestmark = pytest.mark.mpi

NETFOLD = Path(sys.executable).with_name("netfold")


def test_ranks_and_environment_reach_each_launcher():
    program = MpiProgram(["a", "-n", 5], 4, ["h1", "h2"], "/bin/ssh2", environment={"K": "v w"})
    openmpi = command_line("mpirun", Flavor.OPEN_MPI, program)
    assert openmpi[openmpi.index("--host") + 1] == "h1:2,h2:2"
    assert openmpi[openmpi.index("-x") + 1] == "K=v w"
    assert "/bin/ssh2" in openmpi
    assert openmpi[-5:] == ["-n", "4", "a", "-n", "5"]
    hydra = command_line("mpiexec", Flavor.HYDRA, program)
    assert hydra[hydra.index("-hosts") + 1] == "h1,h2"
    assert hydra[hydra.index("-genv") + 1 :][:2] == ["K", "v w"]
    assert hydra[hydra.index("-launcher-exec") + 1] == "/bin/ssh2"
    assert hydra[-5:] == ["-n", "4", "a", "-n", "5"]


def test_a_missing_launcher_is_named():
    with pytest.raises(MpiBuildError, match=r"no mpirun\.none on PATH: apt-get install"):
        compiler_of("mpirun.none")


@pytest.mark.usefixtures("as_root")
def test_ranks_of_one_host_need_no_controller(mpi: Mpi, tmp_path: Path):
    program = mpi.compile("sum.c", tmp_path)
    command = [NETFOLD, "host", "mpirun", "--mpirun", f"mpirun.{mpi.name}", "-n", "2", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("TMPDIR", "/tmp")


@pytest.mark.parametrize("is_required", [True, False], ids=["required", "optional"])
@pytest.mark.parametrize("options", [["-static"], ["-static-pie"]], ids=["static", "position-independent"])
@pytest.mark.usefixtures("as_root")
def test_a_program_that_takes_no_preloaded_library_is_named(
    mpi: Mpi, is_required: bool, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text('#include <stdio.h>\nint main(void) { puts("runs"); }\n')
    subprocess.run(["gcc", *options, "-o", program, source], check=True, timeout=DEADLINE_S)
    monkeypatch.setenv("NETFOLD_MPI_REQUIRED", f"{int(is_required)}")
    command = [NETFOLD, "host", "mpirun", "--mpirun", f"mpirun.{mpi.name}", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stdout) == ((1, "") if is_required else (0, "runs\n"))
    assert f"{program} is linked statically: no library can be preloaded" in done.stderr


@pytest.mark.root
def test_hosts_of_a_network_need_no_launcher_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From outside of the network, and from one of its hosts."""
    mpi = Mpi("openmpi")
    if not mpi.is_installed:
        pytest.skip("needs mpirun.openmpi and mpicc.openmpi: make test-mpi installs them")
    with running_hosts(tmp_path) as hosts:
        monkeypatch.setenv("NETFOLD_CONTROLLER", hosts.system.controller.address)
        monkeypatch.setenv("NETFOLD_MPI_REQUIRED", "1")
        monkeypatch.setenv("NETFOLD_NAME", "mpi")
        names = hosts.system.workers
        named = ["--mpirun", "mpirun.openmpi", "-n", "8", "--hosts", ",".join(names)]
        command = [NETFOLD, "host", "mpirun", *named, mpi.compile("sum.c", tmp_path)]
        for place in ([], [NETFOLD, "network", "exec", names[2], "--"]):
            done = subprocess.run(
                [*place, *command], capture_output=True, text=True, timeout=DEADLINE_S, check=False
            )
            assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
