# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold simulate`: one's own jobs on one's own fabric, at any size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from netfold.experiments import options
from netfold.experiments.options import refused
from netfold.experiments.simulate.jobs import read_jobs
from netfold.experiments.simulate.question import PLANNED, Level, Question, answer
from netfold.experiments.simulate.show import Run, document, plot, table_of, tables
from netfold.experiments.sweep.sweep import Place, sweep
from netfold.simulator.scenario import Transport
from netfold.simulator.schemes.catalog import Name
from netfold.simulator.workloads.models import MODELS, Accelerator
from netfold.simulator.workloads.sizes import SIZES
from netfold.topologies.fabric import FabricError
from netfold.topologies.spec import load_fabric

app = typer.Typer(add_completion=False)

NO_PLAN = 3
SCHEMES = (PLANNED, *Name)


@app.command()
def simulate(
    fabric: Annotated[str, typer.Argument(help="A fabric's YAML file, or the name of a spec of netfold.")],
    jobs: Annotated[
        list[Path],
        typer.Argument(
            help="Job files as the controller takes them; one may hold several jobs between lines of ---."
        ),
    ],
    scheme: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            "-s",
            help=f"{PLANNED}: each job as the controller admits it, on what those before it leave (default). Or, for "
            f"all jobs, each as if it were planned alone: {', '.join(Name)}. Several can be compared.",
        ),
    ] = None,
    level: Annotated[
        Level,
        typer.Option(help="flow: thousands of hosts. packet: every packet, for about a hundred hosts."),
    ] = Level.FLOW,
    iterations: Annotated[int, typer.Option(min=1, max=100_000, help="Of each job.")] = 10,
    model: Annotated[
        str | None,
        typer.Option(
            help="What workers train, with its compute times, in place of all-reduces of the jobs' elements, back to "
            f"back: {', '.join(MODELS)}."
        ),
    ] = None,
    accelerator: Annotated[Accelerator, typer.Option(help="Whose compute times.")] = Accelerator.A100,
    load: Annotated[
        float,
        typer.Option(
            min=0.0, max=2.0, help="Of background flows: the part of all hosts' links that they want."
        ),
    ] = 0.0,
    sizes: Annotated[str, typer.Option(help=f"Of background flows: {', '.join(SIZES)}.")] = "web-search",
    transport: Annotated[Transport, typer.Option(help="Of background flows and of rings.")] = Transport.DCTCP,
    seconds: Annotated[
        float | None,
        typer.Option(min=1e-6, help="Simulated time after which all ends. Default: when the jobs are done."),
    ] = None,
    gap: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Seconds from one job's start to the next one's, on average (Poisson). Default: all start at once.",
        ),
    ] = 0.0,
    seed: options.Seed = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=1000, help="So many draws, from --seed on; means and 95 % intervals are shown."
        ),
    ] = 1,
    place_jobs: options.Jobs = options.DEFAULT_JOBS,
    scheduler: options.Scheduler = None,
    no_cache: options.NoCache = False,
    as_json: options.AsJson = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print a line per job, scheme and draw, with a head.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw iteration and completion times to this file (.png, .svg, .pdf)."),
    ] = None,
) -> None:
    """Simulate jobs on a fabric, beside the traffic of others: how long iterations, all-reduces and flows take, and how
    full links and slots are.

    Exit codes: 0 done, 2 bad fabric, job or option, 3 no plan for a job (the message names what binds), 4 a broken
    sweep, 130 interrupted.
    """
    for what, given, known in (
        ("--scheme", scheme or [], SCHEMES),
        ("--sizes", [sizes], tuple(SIZES)),
        ("--model", [model] if model else [], tuple(MODELS)),
    ):
        wrong = next((g for g in given if g not in known), None)
        if wrong is not None:
            raise refused("simulate", f"{what}: '{wrong}' is unknown; there are {', '.join(known)}")
    if as_json and as_csv:
        raise refused("simulate", "--json and --csv both print to the standard output; choose one")
    try:
        known_fabric = load_fabric(fabric)
        orders = read_jobs(jobs, known_fabric)
    except FabricError as error:
        raise refused("simulate", str(error)) from None
    schemes = list(dict.fromkeys(scheme or [PLANNED]))
    questions = [
        Question(
            known_fabric, tuple(o.text for o in orders), name, level, draw, iterations, model, accelerator, load, sizes,
            transport, seconds, gap,
        )
        for name in schemes
        for draw in range(seed, seed + seeds)
    ]  # fmt: skip
    with options.guarded("simulate"), options.progress_of("simulating") as told:
        cache = options.cache_unless(no_cache)
        answers = list(sweep(answer, questions, Place(place_jobs, scheduler), cache, told))
    runs = [Run(q.scheme, q.seed, a) for q, a in zip(questions, answers, strict=True) if isinstance(a, dict)]
    for run in runs:
        if "refused" in run.found:
            raise refused("simulate", f"{run.scheme}: {run.found['refused']}", NO_PLAN)
    if picture is not None:
        try:
            plot(runs, picture)
        except (OSError, ValueError) as error:
            raise refused("simulate", f"--plot {picture}: {error}") from None
    if as_json:
        typer.echo(json.dumps(document(questions[0], runs), indent=2))
    elif as_csv:
        typer.echo(table_of(runs), nl=False)
    else:
        console = options.screen()
        for table in tables(questions[0], runs):
            console.print(table)
