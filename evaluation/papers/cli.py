# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold reproduce`: a command for each paper."""

from __future__ import annotations

from typing import Any

import typer

from netfold.evaluation.core.command import experiment_command
from netfold.evaluation.core.experiment import Experiment
from netfold.evaluation.papers.netreduce import NetReduce
from netfold.evaluation.papers.panama.experiment import Panama
from netfold.evaluation.papers.panama.variants import PanamaVariants
from netfold.evaluation.papers.rates import Grid, InArt

EXPERIMENTS: dict[str, type[Experiment[Any]]] = {
    "grid": Grid,
    "inart": InArt,
    "netreduce": NetReduce,
    "panama": Panama,
    "panama-vary": PanamaVariants,
}

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Repeat the papers' simulations; our values beside the published ones.",
)
for name, experiment in EXPERIMENTS.items():
    app.command(name)(experiment_command(experiment))
