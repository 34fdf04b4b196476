# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The `softswitch` command: run, cli, install-shim."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from softswitch import bmv2_options
from softswitch.logs import set_up_logs
from softswitch.option_groups import expand_groups
from softswitch.options import (
    Bmv2Options,
    ControlOptions,
    LogOptions,
    PortOptions,
    ProgramOptions,
    settings_of,
)

log = logging.getLogger(__name__)


class RunUnlessNamed(TyperGroup):
    """`softswitch ...` is `softswitch run ...` unless the first argument names another command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and args[0] in self.commands
        return super().parse_args(ctx, args if named else ["run", *args])


class Bmv2Command(TyperCommand):
    """Accepts the command lines of simple_switch_grpc."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        kept, ctx.meta[WITHOUT_EFFECT] = bmv2_options.without_ignored_options(args)
        return super().parse_args(ctx, kept)


WITHOUT_EFFECT = "softswitch.without_effect"
JSON_VERSION = "2.23"


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"softswitch {importlib.metadata.version('softswitch')}, in place of simple_switch_grpc")
        raise typer.Exit


def _print_json_version(requested: bool) -> None:
    if requested:
        typer.echo(JSON_VERSION)
        raise typer.Exit


# A traceback ends with the error itself, which is what a caller that reads the last line of a log shows.
app = typer.Typer(add_completion=False, cls=RunUnlessNamed, pretty_exceptions_enable=False)


@app.command(
    cls=Bmv2Command,
    epilog="Other commands: softswitch cli (tables, registers, queues of a running switch), softswitch "
    "install-shim (links under BMv2's names). Options of simple_switch_grpc "
    "that are accepted without effect: " + ", ".join(bmv2_options.IGNORED) + ".",
)
@expand_groups
def run(
    context: typer.Context,
    program: ProgramOptions,
    ports: PortOptions,
    control: ControlOptions,
    logs: LogOptions,
    bmv2: Bmv2Options,
    version: Annotated[
        bool,
        typer.Option("--version", "-v", help="Print the version.", is_eager=True, callback=_print_version),
    ] = False,
    json_version: Annotated[
        bool,
        typer.Option(
            "--json-version",
            help="Print the supported version of BMv2 JSON.",
            is_eager=True,
            callback=_print_json_version,
        ),
    ] = False,
) -> None:
    """Run a P4 program natively, as a drop-in for simple_switch_grpc.

    The program is BMv2 JSON for v1model from p4c-bm2-ss: translated to C, compiled with gcc, cached and loaded.
    SIGTERM forwards the frames already received, ends the streams, and exits 0.
    """
    from softswitch.build.native import default_cache_dir
    from softswitch.process import StartError, serve

    file = logs.file()
    settings, changed = settings_of(program, ports, control, logs, bmv2, default_cache_dir())
    without_effect = [*context.meta[WITHOUT_EFFECT], *changed]
    try:
        set_up_logs(logs.level, settings.device_id, console=logs.log_console, file=file)
        if without_effect:
            log.warning("without effect here: %s", ", ".join(without_effect))
        asyncio.run(serve(settings))
    except (StartError, OSError) as error:
        typer.echo(f"softswitch: {error}", err=True)
        raise typer.Exit(1) from error


@app.command()
def cli(
    control_socket: Annotated[
        Path | None,
        typer.Argument(help="Control socket of the switch.", show_default=False),
    ] = None,
    thrift_port: Annotated[
        int, typer.Option(min=1, max=65535, help="The --thrift-port of the switch, without CONTROL_SOCKET.")
    ] = 9090,
) -> None:
    """Inspect and change a running switch with the commands of simple_switch_CLI.

    Reads commands from the terminal or a file (< commands.txt); `help` lists them. Exits 1 if a command failed.
    """
    from softswitch.admin.client import ControlClient, ControlSocketError
    from softswitch.admin.control_sockets import thrift_socket
    from softswitch.admin.prompt import Prompt

    try:
        with ControlClient(control_socket or thrift_socket(thrift_port)) as client:
            prompt = Prompt(client)
            prompt.cmdloop()
    except (ControlSocketError, KeyboardInterrupt) as error:
        typer.echo(f"softswitch: {error}", err=True)
        raise typer.Exit(1) from error
    raise typer.Exit(1 if prompt.failed else 0)


@app.command("install-shim")
def install_shim(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is first in PATH.")],
) -> None:
    """Link DIR/simple_switch_grpc and DIR/simple_switch_CLI to softswitch.

    Programs that start BMv2 by these names then start softswitch. Remove the links to undo.
    """
    from softswitch.build.native import default_cache_dir
    from softswitch.engine.abi import engine_library
    from softswitch.errors import PipelineError
    from softswitch.shim import ShimError, install

    try:
        for path in install(folder):
            typer.echo(path)
        # Compiles the switch's own C now: scripts wait only seconds for a switch to start.
        engine_library(default_cache_dir())
    except (ShimError, PipelineError) as error:
        typer.echo(f"softswitch: {error}", err=True)
        raise typer.Exit(1) from error


def main() -> None:
    """Entry point of the `softswitch` script, also under BMv2's names (shim.py)."""
    from softswitch import shim

    sys.argv[1:1] = shim.arguments(sys.argv[0])
    app()
