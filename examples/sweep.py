# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A sweep on the flow level of the simulator: time of a training step by workers, for a ring and for trees.

Run `python examples/sweep.py [--plot sweep.svg]`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from netfold.controller.drawing.chart import series
from netfold.controller.drawing.plot import Plot, save
from netfold.simulator.flow.run import simulate
from netfold.simulator.scenario import Job, Scenario
from netfold.simulator.schemes.catalog import SchemeName, scheme_of
from netfold.simulator.workloads.models import model
from netfold.topologies.generators import GBIT, leaf_spine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORKERS = (8, 16, 32, 64)
SCHEMES = (SchemeName.RING, SchemeName.PANAMA, SchemeName.IDEAL)


def step_ms(scheme: SchemeName, workers: int) -> float:
    fabric = leaf_spine(4, 2, workers // 4, rate=10, unit=GBIT)
    hosts = tuple(host.name for host in fabric.hosts)
    job = Job("train", hosts, model("resnet-50"), scheme_of(scheme, fabric, hosts), iterations=3)
    return 1e3 * mean(one.duration for one in simulate(Scenario(fabric, (job,))).jobs[0].iterations)


def all_times() -> dict[SchemeName, list[float]]:
    return {scheme: [step_ms(scheme, workers) for workers in WORKERS] for scheme in SCHEMES}


def draw(figure: Figure, times: dict[SchemeName, list[float]]) -> None:
    axes = figure.subplots()
    for number, (scheme, row) in enumerate(times.items()):
        axes.plot(WORKERS, row, **series(number), label=scheme)
    axes.set(xlabel="workers", ylabel="training step, ms", xscale="log", xticks=WORKERS, xticklabels=WORKERS)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plot", type=Path, help="file of a picture")
    file = parser.parse_args().plot
    times = all_times()
    print("workers  " + "".join(f"{workers:>8}" for workers in WORKERS))
    for scheme, row in times.items():
        print(f"{scheme:<9}" + "".join(f"{ms:8.1f}" for ms in row) + " ms a step")
    if file:
        save(Plot(lambda figure: draw(figure, times), (6, 3.5)), file)


if __name__ == "__main__":
    main()
