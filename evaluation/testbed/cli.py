# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure`: a command for each experiment."""

from __future__ import annotations

import typer

from netfold.evaluation.core.command import experiment_command
from netfold.evaluation.testbed.arrivals import Arrivals
from netfold.evaluation.testbed.balance import Balance
from netfold.evaluation.testbed.fairness.experiment import Fairness
from netfold.evaluation.testbed.plans import Plans
from netfold.evaluation.testbed.quorum import Quorum
from netfold.evaluation.testbed.reroute import Rerouting

EXPERIMENTS = (Plans, Rerouting, Fairness, Balance, Arrivals, Quorum)

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure on this machine, in Mininet or simulated: tables, JSON and plots. Exit codes: 0 complete, 1 an error "
    "(one line) or a wrong element, 2 invalid options.",
)
for experiment in EXPERIMENTS:
    app.command(experiment.name.removeprefix("measure-"))(experiment_command(experiment))
