# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the results' pages from docs/results/data. `--check` names stale pages and exits 1.

A page has a block of two comments for each table, `table: NAME` and `table: end`. NAME.json has `title`, `command`,
`revision`, `machine`, `conditions`, `columns` and `rows`, and may have a `plot` (plots.py). A revision or machine that
is not recorded is empty.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, model_validator

FOLDER = Path(__file__).resolve().parent
BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- table: end -->)", re.DOTALL)


class PlotSpec(BaseModel):
    """Which columns a plot shows (plots.py): `series` over `x`, by number; `label`: of the vertical axis, which may be
    logarithmic."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: int
    series: tuple[int, ...]
    label: str
    is_logarithmic: bool = False


class ResultTable(BaseModel):
    """One table of figures, and how they were obtained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    command: str
    revision: str
    machine: str
    conditions: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    plot: PlotSpec | None = None

    @model_validator(mode="after")
    def _each_row_has_all_columns(self) -> ResultTable:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"row {wrong[0]} has {len(wrong[0])} cells; expected {len(self.columns)}")
        return self


def read(name: str) -> ResultTable:
    """The result of this name. Raises ValueError, which names the file, if it is none."""
    path = FOLDER / "data" / f"{name}.json"
    try:
        return ResultTable.model_validate(json.loads(path.read_text()))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def markdown(result: ResultTable) -> Iterator[str]:
    """The table, below it how it was obtained."""
    for row in (result.columns, ("---",) * len(result.columns), *result.rows):
        yield "| " + " | ".join(row) + " |"
    yield ""
    yield f"*{result.title}.* {result.conditions}"
    known = [
        f"{name}: {value}"
        for name, value in (
            ("command", f"`{result.command}`"),
            ("machine", result.machine),
        )
        if value.strip("`")
    ]
    yield "; ".join(known) + "." if known else ""


def block(name: str) -> Iterator[str]:
    """Lines between the comments of a block."""
    result = read(name)
    yield from markdown(result)
    if result.plot is not None:
        yield from ("", f"![{result.title}](plots/{name}.svg)")


def rendered(page: str) -> str:
    """The page with all blocks renewed."""
    return BLOCK.sub(lambda b: b[1] + "\n" + "\n".join(block(b[2])) + "\n\n" + b[3], page)


def stale() -> list[str]:
    """Names of pages whose tables differ from the data."""
    return [p.name for p in sorted(FOLDER.glob("*.md")) if rendered(p.read_text()) != p.read_text()]


def unused() -> list[str]:
    """Names of results that no page shows."""
    shown = {name for p in FOLDER.glob("*.md") for _, name, _ in BLOCK.findall(p.read_text())}
    return sorted({p.stem for p in (FOLDER / "data").glob("*.json")} - shown)


def main() -> None:
    if "--check" in sys.argv[1:]:
        sys.exit("\n".join(f"{name} is stale: make results" for name in stale()) or None)
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(rendered(path.read_text()))


if __name__ == "__main__":
    main()
