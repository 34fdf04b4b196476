# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold simulate`: one's own jobs on one's own fabric, at any size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.drawing.options import ThemeOption
from netfold.controller.drawing.palette import Theme
from netfold.controller.drawing.plot import save
from netfold.protocol.option_groups import expand_groups
from netfold.simulator.command import options
from netfold.simulator.command.options import refusal, remark
from netfold.simulator.command.show import SimulationRun, document, notes, simulation_plot, tables, to_csv
from netfold.simulator.command.simulation_spec import (
    PLANNED,
    PLANNERS,
    Background,
    Level,
    SimulationSpec,
    Training,
    read_jobs,
    run_simulation,
    simulated,
)
from netfold.simulator.schemes.catalog import SchemeName
from netfold.simulator.workloads.models import MODELS
from netfold.simulator.workloads.sizes import SIZES
from netfold.topologies.children import beyond_programs
from netfold.topologies.cli import AsJson, FabricArgument
from netfold.topologies.fabric import FabricError
from netfold.topologies.spec import load_fabric

app = typer.Typer(add_completion=False)

EXIT_NO_PLAN = 3
SCHEMES = (PLANNED, *SchemeName, *PLANNERS)


@app.command()
@expand_groups
def simulate(
    training: Training,
    background: Background,
    sweep: options.SweepOptions,
    fabric: FabricArgument,
    job_files: Annotated[
        list[Path],
        typer.Argument(
            metavar="JOBS...",
            help="Job files as the controller takes them; one may hold several jobs between lines of ---.",
        ),
    ],
    scheme: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            "-s",
            help=f"{PLANNED} (default): each job as the controller admits it, on the residual capacity of the "
            f"earlier ones. Or, for all jobs, each planned as if it were alone: {', '.join(SchemeName)}. Repeatable.",
        ),
    ] = None,
    level: Annotated[
        Level,
        typer.Option(help="flow: thousands of hosts. packet: every packet, for about a hundred hosts."),
    ] = Level.FLOW,
    seconds: Annotated[
        float | None,
        typer.Option(min=1e-6, help="Simulated time. Default: until the jobs are complete."),
    ] = None,
    seed: options.Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="Number of draws, from --seed on; means and 95 % intervals are shown."
        ),
    ] = 1,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a line per job, scheme and draw, with a header.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record to this file, for `netfold replay`: loads over time of the first scheme, plans of all.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw iteration and completion times to this file (.png, .svg, .pdf)."),
    ] = None,
    theme: ThemeOption = Theme.LIGHT,
) -> None:
    """Simulate jobs on a fabric with background flows: times of iterations, all-reduces and flows; use of links and
    slots.

    Exit codes: 0 complete, 2 invalid fabric, job or option, 3 no plan for a job (the message names the bottleneck), 4 a
    point failed, 130 interrupted.
    """
    for what, given, known in (
        ("--scheme", scheme or [], SCHEMES),
        ("--flow-sizes", [background.flow_sizes], tuple(SIZES)),
        ("--model", [training.model] if training.model else [], tuple(MODELS)),
    ):
        wrong = next((g for g in given if g not in known), None)
        if wrong is not None:
            raise refusal("simulate", f"{what}: '{wrong}' is unknown: expected one of {', '.join(known)}")
    if as_json and as_csv:
        raise refusal("simulate", "--json and --csv both print to the standard output; choose one")
    try:
        known_fabric = load_fabric(fabric)
        orders = read_jobs(job_files, known_fabric)
    except FabricError as error:
        raise refusal("simulate", str(error)) from None
    schemes = list(dict.fromkeys(scheme or [PLANNED]))
    texts = tuple(o.text for o in orders)
    specs = [
        SimulationSpec(known_fabric, texts, name, level, draw, training, background, seconds)
        for name in schemes
        for draw in range(seed, seed + seeds)
    ]
    with options.exit_on_error("simulate"):
        results = list(sweep.sweep(run_simulation, specs, "simulating"))
    runs = [
        SimulationRun(spec.scheme, spec.seed, result) for spec, result in zip(specs, results, strict=True)
    ]
    for run in runs:
        if "refused" in run.found:
            raise refusal("simulate", f"{run.scheme}: {run.found['refused']}", EXIT_NO_PLAN)
    if beyond := beyond_programs(known_fabric):
        remark(f"netfold: {beyond}")
    if plot is not None:
        try:
            save(simulation_plot(specs[0], runs), plot, theme)
        except (OSError, ValueError) as error:
            raise refusal("simulate", f"--plot {plot}: {error}") from None
    if record is not None:
        _record(record, {spec.scheme: spec for spec in reversed(specs)})
    if as_json:
        typer.echo(json.dumps(document(specs[0], runs), indent=2))
    elif as_csv:
        typer.echo(to_csv(runs), nl=False)
    else:
        screen = options.console()
        for table in tables(specs[0], runs):
            screen.print(table)
        for note in notes(specs[0], runs):
            screen.print(f"- {note}", markup=False, highlight=False)


def _record(file: Path, specs: dict[str, SimulationSpec]) -> None:
    """Simulates each scheme again, once: points of a sweep keep their results only."""
    from netfold.controller.recording.recording_file import RecordingError, write_recording
    from netfold.simulator.command.simulation_recording import recording_of

    done = [(name, simulated(spec)) for name, spec in reversed(specs.items())]
    try:
        write_recording(file, recording_of(done))
    except RecordingError as error:
        raise refusal("simulate", f"--record: {error}") from None
