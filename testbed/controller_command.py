# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller run`, which finds the switches of an emulated network by its name."""

from __future__ import annotations

import functools
import inspect
import os
from typing import Annotated, Any

import typer

from netfold.controller.operator.controller_client import NO_CONTROLLER
from netfold.controller.operator.controller_commands import run_controller
from netfold.controller.service.listening import ListenError
from netfold.controller.service.metrics import listen_for_scrapes
from netfold.p4src.manifest import Form
from netfold.protocol.environment import Variable
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.holder import holder_of
from netfold.testbed.network.isolation import enter_network, is_isolated
from netfold.testbed.network.state import RunDirectory
from netfold.testbed.network.targets import TARGETS
from netfold.topologies.cli import BAD_INPUT, FAILED, fail

_NAME = Annotated[
    str | None,
    typer.Option(
        "--name",
        envvar=Variable.NAME,
        help="Network of `netfold network up` whose switches it controls; default: nf, if that is up and --switches is "
        "not given.",
    ),
]


@functools.wraps(run_controller)
def _run(name: str | None, **options: Any) -> None:
    try:
        if name is None and options["switches"] is None and not is_isolated() and holder_of(DEFAULT_NAME):
            name = DEFAULT_NAME
        if name is not None:
            os.environ[Variable.NAME] = name
            if not is_isolated() and holder_of(name):
                _refuse_port_inside(options["listen"], name)
                if options["metrics_port"]:
                    _listen_here(options["metrics_port"])
            enter_network(name)
            options["form"] = options["form"] or _form_of(name)
    except NetworkError as error:
        fail(str(error), FAILED)
    except ListenError as error:
        fail(str(error), NO_CONTROLLER)
    run_controller(**options)


def _refuse_port_inside(listen: str | None, name: str) -> None:
    """A TCP port would be the network's own: callers outside are refused there, or reach another server."""
    if listen is not None and not listen.startswith("unix:"):
        fail(
            f"--listen {listen} would be inside the namespaces of network '{name}', where only its hosts reach it: "
            "use unix:PATH",
            BAD_INPUT,
        )


def _form_of(name: str) -> Form | None:
    """Form of the program of the network's switches; None if the network is not up."""
    state = RunDirectory(name).read()
    return TARGETS[state.target]().program_form if state is not None and state.target in TARGETS else None


def _listen_here(port: int) -> None:
    """Prometheus is outside the namespaces of the network: a socket that listens goes there with the controller.
    Raises ListenError."""
    descriptor = listen_for_scrapes(port).detach()
    os.set_inheritable(descriptor, True)
    os.environ[Variable.METRICS_DESCRIPTOR] = str(descriptor)


def _with_name() -> inspect.Signature:
    original = inspect.signature(run_controller, eval_str=True)
    option = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_NAME)
    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in original.parameters.values()]
    return original.replace(parameters=[*options, option])


_run.__signature__ = _with_name()  # type: ignore[attr-defined]
_run.__annotations__ = {p.name: p.annotation for p in _with_name().parameters.values()}

app = typer.Typer()
app.command("run")(_run)
