# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of a Slurm job in Python, `rank.py CALLS PAUSE_S`: joins the job that the prolog submitted, and adds up. It
prints the variables that netfold gave it, and the sums."""

from __future__ import annotations

import getpass
import os
import sys
import time

import numpy as np

import netfold

OF_NETWORK = ("NETFOLD_NAMESPACE", "NETFOLD_NETWORK")
"""Variables by which the emulated network knows its processes."""


def main() -> None:
    calls, pause_s = int(sys.argv[1]), float(sys.argv[2])
    given = sorted(name for name in os.environ if name.startswith("NETFOLD_") and name not in OF_NETWORK)
    sums = set()
    with netfold.join(os.environ["NETFOLD_JOB"], timeout=60.0) as worker:
        for _ in range(calls):
            array = np.full(1000, 1.0 + int(os.environ["SLURM_PROCID"]), np.float32)
            worker.all_reduce(array, 60.0)
            sums.update(array.tolist())
            time.sleep(pause_s)
    sys.stdout.write(f"{getpass.getuser()} in {os.environ['NETFOLD_JOB']} has {given}: sums {sorted(sums)}\n")


if __name__ == "__main__":
    main()
