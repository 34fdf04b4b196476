# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""MPI programs in C and with mpi4py, whose collectives go through the switches. Needs Open MPI, and a C compiler.

Run `python examples/mpi.py [--mpi4py PYTHON]`, where PYTHON has mpi4py.
"""

import argparse
import subprocess
from pathlib import Path

from netfold.testbed import Testbed, run_isolated

FOLDER = Path(__file__).parent
HOSTS = ["h1", "h2", "h5", "h6"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi4py", metavar="PYTHON", help="a Python with mpi4py")
    python = parser.parse_args().mpi4py
    run_isolated()
    with Testbed("leaf-spine-2x2") as testbed:
        program = testbed.directory / "mpi_sum"
        subprocess.run(["mpicc.openmpi", "-o", program, FOLDER / "mpi_sum.c"], check=True)
        commands: list[list[object]] = [[program]]
        commands += [[python, FOLDER / "mpi_sum.py"]] if python else []
        for number, command in enumerate(commands):
            job = f"mpi-{number}"
            environment = {"NETFOLD_MPI_REQUIRED": "1", "NETFOLD_JOB": job, "MPI4PY_LIBMPI": "libmpi.so.40"}
            done = testbed.mpirun(
                command, 8, hosts=HOSTS, mpirun="mpirun.openmpi", environment=environment, timeout_s=120
            )
            print(done.stdout or done.stderr, end="")
            print(f"job {job} over {', '.join(HOSTS)}: {testbed.jobs()[job].state}")


if __name__ == "__main__":
    main()
