# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A sum over all ranks with mpi4py. Nothing in it knows of netfold; examples/mpi.py runs it."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
total = np.empty(1000, np.int64)
world.Allreduce(np.full(1000, world.rank, np.int64), total)
if world.rank == 0:
    print(f"mpi4py: the numbers of {world.size} ranks add up to {total[0]}")
