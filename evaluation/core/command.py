# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An experiment as a command: its annotated fields are the options, its docstring is the help text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Self

import typer

from netfold.evaluation.core.experiment import Experiment
from netfold.evaluation.core.output import Output, evaluate
from netfold.protocol.option_groups import expand_groups
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.simulator.command.options import exit_on_error
from netfold.testbed.errors import RunError
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import run_isolated
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.options import ModeOption, NameOption
from netfold.topologies.cli import BAD_INPUT, FAILED, fail
from netfold.topologies.fabric import FabricError


class _Values(tuple[Any, ...]):
    """The value of an option A,B,C."""

    kind: Callable[[str], Any] = str

    @classmethod
    def parse(cls, value: str | Self) -> Self:
        try:
            return value if isinstance(value, cls) else cls(map(cls.kind, str(value).split(",")))
        except ValueError:
            raise typer.BadParameter(f"expected numbers A,B,C, not '{value}'") from None

    def __str__(self) -> str:
        return ",".join(format(value, "g") if isinstance(value, float) else str(value) for value in self)


class Words(_Values):
    """Words A,B,C."""


class Integers(_Values):
    """Integers A,B,C."""

    kind = int


class Floats(_Values):
    """Numbers A,B,C."""

    kind = float


def words(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=Words.parse, metavar="A,B,C", help=help_text)


def integers(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=Integers.parse, metavar="A,B,C", help=help_text)


def floats(help_text: str, *names: str) -> Any:
    return typer.Option(*names, parser=Floats.parse, metavar="A,B,C", help=help_text)


def expect(option: str, values: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    """Raises typer.BadParameter for a value that is not allowed."""
    wrong = next((value for value in values if value not in allowed), None)
    if wrong is not None:
        raise typer.BadParameter(f"{option}: '{wrong}', expected some of {', '.join(allowed)}")


Target = Annotated[str, typer.Option(help="The switches: softswitch, bmv2, or auto.")]
Lanes = Annotated[int, typer.Option(help="Lanes of a packet: 32, 64, 256 or 512.")]
ArrayBytes = Annotated[int, typer.Option(min=1024, help="Bytes of the array.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer cases, for a shorter time.")]


@dataclass(frozen=True)
class NamespaceOptions:
    """The options that say in which namespaces an experiment runs its networks."""

    network_name: NameOption = DEFAULT_NAME
    network_mode: ModeOption = NetworkMode.AUTO


def experiment_command(kind: type[Experiment[Any]]) -> Callable[..., None]:
    """A function for Typer. Exit codes: 0 complete, 1 an error (one line) or a wrong result, 2 a bad fabric or option,
    4 a point of a sweep failed, 130 interrupted."""

    def in_network(experiment: Any, output: Output, network: NamespaceOptions) -> None:
        with exit_on_error(experiment.name), _exit_on_failure(experiment, network):
            rows = evaluate(experiment, output)
        sys.exit(experiment.has_failed(rows))

    def alone(experiment: Any, output: Output) -> None:
        in_network(experiment, output, NamespaceOptions())

    has_network = kind.needs_namespaces is not Experiment.needs_namespaces
    command: Callable[..., None] = in_network if has_network else alone
    command.__doc__ = kind.__doc__
    command.__annotations__ |= {"experiment": kind}
    return expand_groups(command)


def run_command(kind: type[Experiment[Any]]) -> None:
    """The experiment as the program of a module."""
    typer.run(experiment_command(kind))


@contextmanager
def _exit_on_failure(experiment: Experiment[Any], network: NamespaceOptions) -> Iterator[None]:
    """Within, the experiment runs, in namespaces of its own if it needs them."""
    try:
        if experiment.needs_namespaces:
            run_isolated(network.network_name, network.network_mode)
        yield
    except FabricError as error:
        fail(str(error), BAD_INPUT)
    except (RunError, NetworkError, OSError) as error:
        fail(str(error), FAILED)
