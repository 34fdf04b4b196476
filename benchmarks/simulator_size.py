# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of the flow level as it grows: ResNet-50, ten iterations of one job on all servers of a fat-tree of
100 Gbit/s. Prints a line for each size and scheme, from a process of its own; `python -m benchmarks.simulator_size
64` runs one of k = 64 (65,536 servers)."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time

from netfold.simulator.flow.run import simulate
from netfold.simulator.scenario import Job, Scenario
from netfold.simulator.schemes.catalog import Name, scheme_of
from netfold.simulator.workloads.models import model
from netfold.topologies.generators import GBIT, fat_tree

SIZES = (6, 16, 32, 64)
SCHEMES = (Name.PANAMA, Name.RING)
HEAD = "servers  scheme    fabric   trees   simulation   all, with start (processor seconds)   GiB"


def one(k: int, scheme: Name) -> None:
    began = time.process_time()
    fabric = fat_tree(k, rate=100, unit=GBIT)
    hosts = tuple(h.name for h in fabric.hosts)
    built = time.process_time()
    job = Job("j", hosts, model("resnet-50"), scheme_of(scheme, fabric, hosts), iterations=10)
    planned = time.process_time()
    done = simulate(Scenario(fabric, (job,)))
    ended = time.process_time()
    assert len(done.jobs[0].iterations) == 10
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(hosts):7d}  {scheme:8s}  {built - began:6.1f}  {planned - built:6.1f}  {ended - planned:11.1f}"
        f"  {time.process_time():16.1f}  {memory:24.2f}",
        flush=True,
    )


def main(sizes: tuple[int, ...]) -> None:
    print(HEAD, flush=True)
    for k in sizes:
        for scheme in SCHEMES:
            process = multiprocessing.get_context("spawn").Process(target=one, args=(k, scheme))
            process.start()
            process.join()
            if process.exitcode:
                sys.exit(process.exitcode)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
