# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Goodput of `netfold run` in the modes of networks, beside the first of them, in runs that alternate.

python -m netfold.evaluation.speed.network_modes --modes mininet,rootless --rounds 4
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from netfold.evaluation.core.command import Words, expect, run_command, words
from netfold.evaluation.core.experiment import Column, Experiment, Notify, Row, table
from netfold.testbed.errors import RunError
from netfold.testbed.network.modes import KINDS, NetworkMode

DEADLINE_S = 600
NAME = "modes"


@dataclass(frozen=True)
class ModeRow(Row):
    """One run. `goodput`: of the link's payload rate, by the slowest worker; `over_first`: over that of the first mode
    in the same round."""

    round: int
    mode: str
    goodput: float
    over_first: float
    wrong_elements: int
    seconds: float


COLUMNS = (
    Column[ModeRow]("round", lambda r: r.round),
    Column[ModeRow]("network", lambda r: r.mode, is_text=True),
    Column[ModeRow]("goodput of the link", lambda r: r.goodput, ".1%"),
    Column[ModeRow]("over the first", lambda r: r.over_first, ".3f"),
    Column[ModeRow]("wrong elements", lambda r: r.wrong_elements),
    Column[ModeRow]("seconds", lambda r: r.seconds, ".0f"),
)


@dataclass(frozen=True)
class Median:
    mode: str
    goodput: float
    over_first: float


MEDIANS = (
    Column[Median]("network", lambda r: r.mode, is_text=True),
    Column[Median]("goodput of the link", lambda r: r.goodput, ".1%"),
    Column[Median]("over the first", lambda r: r.over_first, ".3f"),
)


def medians(rows: Sequence[ModeRow]) -> list[Median]:
    """Of each mode, in the order of their first runs."""
    runs = {row.mode: [r for r in rows if r.mode == row.mode] for row in rows}
    return [
        Median(
            mode,
            statistics.median(r.goodput for r in of_mode),
            statistics.median(r.over_first for r in of_mode),
        )
        for mode, of_mode in runs.items()
    ]


@dataclass(frozen=True)
class NetworkModes(Experiment[ModeRow]):
    """Goodput of `netfold run` in several modes, in the same minutes: each round has one run of each mode, every other
    round in the opposite order."""

    name = "bench-network-modes"
    modes: Annotated[Words, words("Modes; the others are compared with the first.")] = Words(
        (NetworkMode.MININET, NetworkMode.ROOTLESS)
    )
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each mode.")] = 4
    fabric: Annotated[str, typer.Option(help="Name or file of a fabric.")] = "leaf-spine-2x2"
    size: Annotated[int, typer.Option(min=4, help="Size of the arrays, bytes.")] = 1 << 20
    iterations: Annotated[int, typer.Option(min=1, help="All-reduces of a run.")] = 32

    def rows(self, notify: Notify) -> Iterator[ModeRow]:
        expect("--modes", self.modes, tuple(KINDS))
        for number in range(1, self.rounds + 1):
            reports = {}
            for mode in self.modes if number % 2 else reversed(self.modes):
                notify(f"round {number}, {mode}")
                reports[mode] = self._run(mode)
            first = reports[self.modes[0]]["goodput_of_link"]
            for mode in self.modes:
                report = reports[mode]
                goodput = report["goodput_of_link"]
                wrong, seconds = int(report["wrong_elements"]), report["seconds"]
                yield ModeRow(number, mode, goodput, goodput / first, wrong, seconds)

    def has_failed(self, rows: Sequence[ModeRow]) -> bool:
        return any(r.wrong_elements for r in rows)

    def tables(self, rows: Sequence[ModeRow]) -> Iterable[Table]:
        return [
            table("Runs, in rounds of one of each mode", COLUMNS, rows),
            table("Medians", MEDIANS, medians(rows)),
        ]

    def _run(self, mode: str) -> dict[str, float]:
        """The report. Raises RunError."""
        with tempfile.TemporaryDirectory(prefix="netfold-") as folder:
            command = [sys.executable, "-P", "-m", "netfold", "run", "--name", NAME, "--network", mode]
            command += ["--fabric", self.fabric, "--size", str(self.size)]
            command += ["--iterations", str(self.iterations), "--epochs", "1", "--no-ring", "--out", folder]
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
            if done.returncode != 0:
                raise RunError(f"a run in mode {mode} failed: {done.stderr.strip()[-500:]}")
            found: dict[str, float] = json.loads(Path(folder, "run.json").read_text())
            return found


if __name__ == "__main__":
    run_command(NetworkModes)
