# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Functions and parameters that the tests of sweeps run, also in other processes."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typer

from netfold.simulator.command.options import exit_on_error
from netfold.simulator.sweep.cache import Cache
from netfold.simulator.sweep.code_version import code_version
from netfold.simulator.sweep.sweep import Executor, sweep
from netfold.simulator.sweep.task import Json


@dataclass(frozen=True)
class Walk:
    """A random walk of so many steps; `log` counts how often it was walked."""

    seed: int
    steps: int = 100
    log: str = ""


def walk(parameters: Walk) -> Json:
    """Floats that no rounding would keep."""
    if parameters.log:
        with Path(parameters.log).open("a") as log:
            log.write(f"{parameters.seed}\n")
    steps = np.random.default_rng(parameters.seed).normal(size=parameters.steps)
    return {"end": float(steps.sum()), "path": [float(x) for x in steps.cumsum()], "pair": (1, None)}


def fall(parameters: Walk) -> Json:
    if parameters.seed == 2:
        raise ValueError("too steep")
    return walk(parameters)


def die(parameters: Walk) -> Json:
    """End like a process that is killed when no memory is left."""
    if parameters.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return walk(parameters)


_asked = itertools.count()


def another_version() -> str:
    """Never the same twice."""
    return str(next(_asked))


def slow_walk(parameters: Walk) -> Json:
    """As `walk`, when the file that is `parameters.log` is there."""
    while parameters.seed and not Path(parameters.log).exists():
        time.sleep(0.05)
    return walk(Walk(parameters.seed))


def main(folder: str) -> None:
    """A command that sweeps."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    points = [Walk(seed, log=f"{folder}/go") for seed in range(4)]
    try:
        with exit_on_error("test"):
            found = list(sweep(slow_walk, points, Executor(jobs=2), Cache(Path(folder), code_version())))
    except typer.Exit as end:
        sys.exit(end.exit_code)
    Path(folder, "found").write_text(json.dumps(found))
