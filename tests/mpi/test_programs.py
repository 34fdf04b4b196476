# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian's packages, which use Debian's Open MPI: their own checks pass and their results are the same,
where their collectives go through the switches and where they do not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.mpi.hosts import Hosts, running_hosts
from tests.mpi.launcher import Mpi

pytestmark = [pytest.mark.mpi, pytest.mark.root]

OPEN_MPI = Mpi("openmpi")
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
TIMEOUT_S = 900.0


def expect_program(command: str, package: str, *files: Path) -> None:
    has_all = shutil.which(command) is not None and all(file.exists() for file in files)
    if not OPEN_MPI.is_installed or not has_all:
        pytest.skip(f"needs Debian's Open MPI and {command}: apt-get install {package}")


# ---- HPC Challenge: Linpack, transposition, random access, FFT, products, streams, latency and bandwidth ----

HPCC_INPUT = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
240          Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
120          values of N
0            number of additional blocking sizes for PTRANS
20           values of NB
"""
HPCC_RESULTS = re.compile(
    r"^(Success|CommWorldProcs|HPL_\w*norm\w*|PTRANS_residual|MPIRandomAccess\w*_(?:N|Errors)|MPIFFT_maxErr)=(.*)",
    re.M,
)
"""Parts of the summary that do not depend on times."""
HPCC_CHECKS = {
    "Success": "1",
    "PTRANS_residual": "0",
    "MPIRandomAccess_Errors": "0",
    "MPIRandomAccess_LCG_Errors": "0",
}


def run_hpcc(hosts: Hosts, folder: Path, **options: Any) -> dict[str, str]:
    folder.mkdir()
    (folder / "hpccinf.txt").write_text(HPCC_INPUT)
    done = hosts.run(OPEN_MPI, "hpcc", folder=folder, timeout_s=TIMEOUT_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = (folder / "hpccoutf.txt").read_text()
    assert "FAILED" not in printed, printed
    return dict(HPCC_RESULTS.findall(printed))


@pytest.mark.long  # its messages of 2 MB, to measure bandwidth, take minutes
@pytest.mark.timeout(1800)
def test_hpc_challenge_passes_its_checks(tmp_path: Path):
    expect_program("hpcc", "hpcc")
    with running_hosts(tmp_path) as hosts:
        plain = run_hpcc(hosts, tmp_path / "plain", environment=ONE_THREAD, uses_netfold=False)
        through = run_hpcc(hosts, tmp_path / "netfold", environment={**ONE_THREAD, "NETFOLD_JOB": "hpcc"})
        assert plain.items() >= HPCC_CHECKS.items()
        assert through == plain
        assert hosts.chunks_of("hpcc") > 100


# ---- LAMMPS ----

EXAMPLES = Path("/usr/share/lammps/examples")
ENERGIES = re.compile(r"\b((?!CPU)[A-Z]\w+) += +(-?\d+\.\d+)")


def run_lammps(hosts: Hosts, folder: Path, script: Path, **options: Any) -> list[tuple[str, float]]:
    folder.mkdir()
    done = hosts.run(OPEN_MPI, "lmp", "-in", script, folder=folder, timeout_s=TIMEOUT_S, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return [(name, float(value)) for name, value in ENERGIES.findall(done.stdout)]


def test_lammps_finds_the_same_energies(tmp_path: Path):
    """A peptide in water: the sums of all ranks control the temperature, hold bonds, and are a part of the forces."""
    example = EXAMPLES / "peptide" / "in.peptide"
    expect_program("lmp", "lammps lammps-examples", example)
    script = tmp_path / "in.peptide"
    text = example.read_text().replace("data.peptide", f"{example.with_name('data.peptide')}")
    script.write_text(re.sub(r"run\s+300", "run 20", re.sub(r"thermo\s+50", "thermo 5", text)))
    with running_hosts(tmp_path) as hosts:
        plain = run_lammps(hosts, tmp_path / "plain", script, environment=ONE_THREAD, uses_netfold=False)
        environment = {**ONE_THREAD, "NETFOLD_JOB": "lammps"}
        through = run_lammps(hosts, tmp_path / "netfold", script, environment=environment)
        assert len(plain) > 50
        assert [name for name, _ in through] == [name for name, _ in plain]
        assert through == [(name, pytest.approx(value, rel=1e-6, abs=1e-4)) for name, value in plain]
        assert hosts.chunks_of("lammps") > 100
