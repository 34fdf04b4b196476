# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.ha --seed 7 --runs 100` makes runs on one system, in the namespaces of this process:

.venv/bin/python -P -m netfold.testbed.network.isolated .venv/bin/python -m tests.ha --seed 7

A run draws its faults and requests from its own seed. Processes are real, so the same seed may go another way."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import aclosing
from pathlib import Path

from netfold.testbed.network.isolation import is_isolated
from tests.ha.drawing import faults_of
from tests.ha.run import Runs
from tests.ha.system import system
from tests.simulation.world import ViolationError


def main() -> int:
    """0: no violation, 1: a violation, 2: wrong options."""
    parser = argparse.ArgumentParser(prog="python -m tests.ha", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=10, help="number of runs (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where logs stay; default: they go with the runs")
    options = parser.parse_args()
    if not is_isolated():
        parser.error("it makes a bridge and namespaces; run it by netfold.testbed.network.isolated, as above")
    if options.folder is not None:
        options.folder.mkdir(parents=True)
        return asyncio.run(_run(options, options.folder))
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_run(options, Path(folder)))


async def _run(options: argparse.Namespace, folder: Path) -> int:
    async with system(folder) as made, aclosing(Runs(made, _show)) as runs:
        began, done, kinds = time.monotonic(), 0, Counter[str]()
        try:
            await runs.begin()
            for seed in range(options.seed, options.seed + options.runs):
                _show(f"run {seed}, after {time.monotonic() - began:.0f} s")
                await runs.run(seed)
                done += 1
                kinds.update(fault.kind for fault in faults_of(seed))
        except ViolationError as error:
            _show(f"violation in run {options.seed + done}: {error}")
            return 1
        finally:
            checker, outcomes = runs.checker, runs.client.outcomes
            _show(
                f"{done} runs, {len(checker.terms)} terms, {checker.commits} commits, {checker.undone} undone"
            )
            _show(f"requests: {_counts(outcomes)}")
            _show(f"faults: {_counts(kinds)}")
    return 0


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common())


def _show(text: str) -> None:
    print(text, flush=True)
