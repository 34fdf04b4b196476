# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment and writes its results: tables or JSON on the standard output; JSON, CSV and plots in a folder."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from netfold.controller.drawing.options import ThemeOption
from netfold.controller.drawing.palette import Theme
from netfold.controller.drawing.plot import render
from netfold.evaluation.core.experiment import Experiment, finite, to_csv
from netfold.simulator.command.options import console
from netfold.testbed.errors import RunError
from netfold.testbed.network.sudo_user import as_sudo_user
from netfold.topologies.cli import AsJson

R = TypeVar("R")
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Output:
    """Options of every experiment: where its results go."""

    PANEL = "Output"

    as_json: AsJson = False
    out: Annotated[Path, typer.Option(help="Folder of the results: JSON, CSV, plots.")] = Path("out")
    theme: ThemeOption = Theme.LIGHT


def evaluate(experiment: Experiment[R], output: Output) -> list[R]:
    """Runs the experiment, writes OUT/NAME.json, .csv, .png and .svg, and prints the tables or, with --json, the
    document.

    Raises typer.BadParameter before the run if the folder cannot be written, and what the experiment raises.
    """
    check_folder(output.out)
    rows: list[R] = []
    try:
        for row in experiment.rows(notify):
            rows.append(row)
    except BaseException:
        if rows:  # a long experiment's rows outlive its end
            text = _document(experiment, rows, is_complete=False)
            write_results(output.out, {f"{experiment.name}.json": text.encode()})
        raise
    text = _document(experiment, rows, is_complete=True)
    files = write_results(output.out, _files(experiment, rows, text, output.theme))
    if output.as_json:
        typer.echo(text, nl=False)
        return rows
    screen = console()
    for table in experiment.tables(rows):
        screen.print(table)
    for note in experiment.notes:
        screen.print(f"- {note}", markup=False, highlight=False)
    screen.print(f"results: {', '.join(map(str, files))}", markup=False, highlight=False)
    return rows


def check_folder(out: Path) -> None:
    """Creates the folder, as sudo's caller. Raises typer.BadParameter if it cannot be written."""
    try:
        with as_sudo_user():
            out.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=out):
                pass
    except OSError as error:
        raise typer.BadParameter(f"--out {out}: {error.strerror}") from error


def write_results(out: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Writes the files to the folder, as sudo's caller. Raises RunError."""
    try:
        with as_sudo_user():
            for name, content in files.items():
                (out / name).write_bytes(content)
    except OSError as error:
        raise RunError(f"--out {out}: {error.strerror}") from error
    return [out / name for name in files]


def _document(experiment: Experiment[R], rows: Sequence[R], *, is_complete: bool) -> str:
    incomplete = {} if is_complete else {"incomplete": True}
    found = {**provenance(experiment), **incomplete, **experiment.document(rows)}
    return json.dumps(found, indent=2, default=str) + "\n"


def _files(experiment: Experiment[R], rows: Sequence[R], document: str, theme: Theme) -> dict[str, bytes]:
    files = {f"{experiment.name}.json": document.encode()}
    table = experiment.csv_rows(rows)
    if table:
        files[f"{experiment.name}.csv"] = to_csv(table).encode()
    for plot in experiment.plots(rows):
        for form in ("png", "svg"):
            files[f"{experiment.name}{plot.suffix and '-'}{plot.suffix}.{form}"] = render(plot, form, theme)
    return files


def provenance(experiment: Experiment[R]) -> dict[str, Any]:
    """Identity of a run: parameters, command, revision of the code, machine and its load."""
    parameters: dict[str, Any] = (
        asdict(experiment) if is_dataclass(experiment) and not isinstance(experiment, type) else {}
    )
    return {
        "experiment": experiment.name,
        "parameters": finite(parameters),
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "revision": revision(),
        "machine": {
            "processor": _processor(),
            "processors": os.cpu_count(),
            "kernel": platform.release(),
            "python": platform.python_version(),
            "load_1min": round(os.getloadavg()[0], 2),
        },
    }


def revision() -> str:
    """Revision of the repository, with "-dirty" if files have changed; else the package's version."""
    command = ["git", "-c", "safe.directory=*", "-C", str(REPOSITORY), "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return found.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        pass
    try:
        return version("netfold")
    except PackageNotFoundError:
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def notify(text: str) -> None:
    """The current step, on standard error."""
    Console(stderr=True).print(f"[dim]{text}[/dim]")
