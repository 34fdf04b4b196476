# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An all-reduce adds a copy of the gradient to a process's memory, and little else."""

from __future__ import annotations

import multiprocessing
import re
from pathlib import Path
from typing import Any

import numpy as np

from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.membership.base import StaticMembership
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.serving import serving

SERVER, CLIENT, PORT = "127.91.0.254", "127.91.0.1", 61601
GRADIENT_MIB = 32


def assignment(children: tuple[int, ...] = ()) -> Assignment:
    tree = TreeAssignment(1, 1.0, 512, 256, 0, SERVER, children)
    return Assignment("memory", 1, PORT, 256, 0, 1, (tree,))


def reduce_twice(answers: Any) -> None:
    gradient = np.ones(GRADIENT_MIB << 18, np.float32)
    with Worker(StaticMembership(assignment()), CLIENT) as worker:
        for _ in range(2):
            worker.all_reduce(gradient)
    answers.put(peak_mib())


def peak_mib() -> float:
    """Returns the peak of this program alone: the ru_maxrss of getrusage(2) starts at what the process had before
    exec."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


def test_the_peak_is_below_twice_the_gradient_and_64_mib():
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    process = context.Process(target=reduce_twice, args=(answers,), daemon=True)
    with serving(ParameterServer(assignment((0,)), SERVER)):
        process.start()
        try:
            peak = answers.get(timeout=120)
        finally:
            process.kill()
            process.join()
    assert 2 * GRADIENT_MIB < peak < 2 * GRADIENT_MIB + 64
