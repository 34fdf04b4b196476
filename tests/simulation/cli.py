# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.simulation --seed 7` replays a run and prints its history; `--seeds 0:200` searches,
`--jobs 240,320` looks after so many jobs at what they leave behind."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imports of the controller wait until a mutant is applied
    from tests.simulation.run import Outcome
    from tests.simulation.scenario import Scenario

HASH_SEED = "PYTHONHASHSEED"


def main() -> int:
    """0: no violation, 1: a violation, 2: wrong options."""
    options = _options()
    if os.environ.get(HASH_SEED) != "0":  # the order of sets has to be the same in each replay
        os.environ[HASH_SEED] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    if options.mutant:
        from tests.simulation.mutant import apply
        from tests.simulation.mutants import mutant_named

        apply(mutant_named(options.mutant))
    if options.jobs:
        return _show_left_behind([int(n) for n in options.jobs.split(",")])
    if options.seed is not None:
        return _show(options)
    if options.scenario:
        return _show_scenario(options)
    return _search(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed, and print its history")
    parser.add_argument(
        "--seeds", default="0:20", help="first:last of the seeds to search (default: %(default)s)"
    )
    parser.add_argument("--scenario", default="", help="run a scenario by hand (regressions.py)")
    parser.add_argument("--jobs", default="", help="numbers of jobs, after which all objects are counted")
    parser.add_argument("--shrink", action="store_true", help="look for fewer steps that fail alike")
    parser.add_argument("--lines", type=int, default=100, help="lines of history (default: %(default)s)")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failing seed")
    parser.add_argument("--theme", default="", help="only seeds of this theme (drawing.py)")
    parser.add_argument(
        "--engine",
        default="sqlite",
        choices=("sqlite", "etcd"),
        help="where scenarios of one controller have their store (default: %(default)s)",
    )
    parser.add_argument("--mutant", default="", help="a fault to put into the controller (mutants.py)")
    return parser.parse_args()


def _search(options: argparse.Namespace) -> int:
    from tests.simulation.drawing import scenario_of, theme_of
    from tests.simulation.run import run
    from tests.simulation.scenario import on_engine

    first, last = map(int, options.seeds.split(":"))
    began, failed = time.process_time(), 0
    seeds = [s for s in range(first, last) if options.theme in ("", theme_of(s))]
    for seed in seeds:
        outcome = run(on_engine(scenario_of(seed), options.engine))
        if outcome.violation:
            failed += 1
            print(f"seed {seed}: {outcome.violation}", flush=True)
            if not options.keep_going:
                options.seed = seed
                return _show(options) if options.lines else 1
    spent = time.process_time() - began
    print(f"{len(seeds)} seeds, {failed} failed, {spent:.1f} s of processor time")
    return int(failed > 0)


def _show(options: argparse.Namespace) -> int:
    from tests.simulation.drawing import scenario_of
    from tests.simulation.run import run
    from tests.simulation.scenario import on_engine
    from tests.simulation.shrink import shrink

    scenario = on_engine(scenario_of(options.seed), options.engine)
    outcome = run(scenario)
    if outcome.violation and options.shrink:
        scenario = shrink(scenario)
        outcome = run(scenario)
    print(f"seed {options.seed}")
    return _print(scenario, outcome, options.lines)


def _show_scenario(options: argparse.Namespace) -> int:
    from tests.simulation.regressions import regression
    from tests.simulation.run import run
    from tests.simulation.scenario import on_engine

    scenario = on_engine(regression(options.scenario), options.engine)
    return _print(scenario, run(scenario), options.lines)


def _show_left_behind(counts: list[int]) -> int:
    """A line of JSON for each look."""
    from tests.simulation.many_jobs import looks_after
    from tests.simulation.world import ViolationError

    try:
        for look in looks_after(*counts):
            print(json.dumps(look))
    except ViolationError as error:
        print(error)
        return 1
    return 0


def _print(scenario: Scenario, outcome: Outcome, lines: int) -> int:
    print(f"{scenario.fabric}, reorder {scenario.reorder}, probes {scenario.probe_s} s")
    print(f"  {scenario.intensity}")
    for step in scenario.steps:
        print(f"  {step}")
    print(outcome.history.tail(lines))
    print(f"{outcome.seconds:.0f} virtual seconds, {outcome.steps} steps of the loop")
    print(outcome.violation or "no violation")
    return int(bool(outcome.violation))
