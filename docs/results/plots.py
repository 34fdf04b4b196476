# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Draws results whose data has a `plot`, as SVG in docs/results/plots. `make results` runs it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tables import FOLDER, PlotSpec, ResultTable, read

from netfold.controller.drawing.chart import series
from netfold.controller.drawing.plot import Plot, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBER = re.compile(r"-?[\d,]+(?:\.\d+)?")
SIZE = (7.2, 3.6)  # inches


def value(cell: str) -> float:
    """The first number of a cell. Raises ValueError if there is none."""
    found = NUMBER.search(cell)
    if not found:
        raise ValueError(f"'{cell}' has no number to plot")
    return float(found[0].replace(",", ""))


def result_plot(result: ResultTable, spec: PlotSpec) -> Plot:
    """Lines of `spec.series` over the rows, in their order."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        places = range(len(result.rows))
        for number, column in enumerate(spec.series):
            values = [value(row[column]) for row in result.rows]
            axes.plot(places, values, label=plain(result.columns[column]), **series(number))
        axes.set_xticks(places, [plain(row[spec.x]) for row in result.rows])
        axes.set(xlabel=plain(result.columns[spec.x]), ylabel=spec.label)
        if spec.is_logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.legend()

    return Plot(draw, SIZE)


def plain(text: str) -> str:
    return text.replace("`", "")


def main() -> None:
    for data in sorted((FOLDER / "data").glob("*.json")):
        result = read(data.stem)
        if result.plot is not None:
            save(result_plot(result, result.plot), FOLDER / "plots" / f"{data.stem}.svg")


if __name__ == "__main__":
    main()
