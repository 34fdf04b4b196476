# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of a Slurm job in Python: joins the job that the prolog submitted, and adds up, until it has made its calls or
is killed. Prints the variables that netfold gave it, and the sum."""

from __future__ import annotations

import os
import sys

import numpy as np

import netfold


def main() -> None:
    calls = int(sys.argv[1])
    given = sorted(name for name in os.environ if name.startswith("NETFOLD_"))
    sums = set()
    with netfold.join(os.environ["NETFOLD_JOB"], timeout=60.0) as worker:
        for _ in range(calls):
            array = np.full(1000, 1.0 + int(os.environ["SLURM_PROCID"]), np.float32)
            worker.all_reduce(array, 60.0)
            sums.update(array.tolist())
    sys.stdout.write(f"user {os.getuid()} of {os.environ['NETFOLD_JOB']} has {given}: sums {sorted(sums)}\n")


if __name__ == "__main__":
    main()
