# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws results whose data has a `plot`, as SVG in docs/results/plots. `make results` runs it."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt
from tables import FOLDER, PlotSpec, ResultTable, read

NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")
SIZE = (6.4, 3.2)  # inches


def value(cell: str) -> float:
    """The first number of a cell. Raises ValueError if there is none."""
    found = NUMBER.search(cell)
    if not found:
        raise ValueError(f"'{cell}' has no number to plot")
    return float(found[0].replace(",", ""))


def draw(result: ResultTable, plot: PlotSpec, file: Path) -> None:
    """Lines of `plot.series` over the rows, in their order."""
    figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
    places = range(len(result.rows))
    for column in plot.series:
        axes.plot(
            places,
            [value(row[column]) for row in result.rows],
            marker="o",
            label=plain(result.columns[column]),
        )
    axes.set_xticks(places, [row[plot.x] for row in result.rows])
    axes.set_xlabel(plain(result.columns[plot.x]))
    axes.set_ylabel(plot.label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    with mpl.rc_context({"svg.hashsalt": file.name}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def plain(text: str) -> str:
    return text.replace("`", "")


def main() -> None:
    folder = FOLDER / "plots"
    folder.mkdir(exist_ok=True)
    for data in sorted((FOLDER / "data").glob("*.json")):
        result = read(data.stem)
        if result.plot is not None:
            draw(result, result.plot, folder / f"{data.stem}.svg")


if __name__ == "__main__":
    main()
