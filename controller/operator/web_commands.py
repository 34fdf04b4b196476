# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller web` and `netfold replay`: the page of a running controller, or of a recording."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from netfold.controller.operator.controller_client import BAD_INPUT, fail
from netfold.controller.recording.recording_file import RecordingError, read_recording
from netfold.controller.service.security import SecurityFileError, read_tokens
from netfold.protocol.connection import ConnectError
from netfold.protocol.option_groups import expand_groups
from netfold.protocol.options import ControllerOptions, reaches_controller

if TYPE_CHECKING:
    from netfold.controller.web.source import LineSource
    from netfold.controller.web.web_server import WebOptions

web = typer.Typer(add_completion=False)
replay = typer.Typer(add_completion=False)

CANNOT_LISTEN = 4
MAX_PORT = 65535


@dataclass(frozen=True)
class PageOptions:
    """Where the page is served."""

    PANEL = "Page"

    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the page; port 0: a free one; or fd:N, a socket that listens.",
        ),
    ] = "127.0.0.1:8090"
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate of the page (PEM).")] = None
    tls_key: Annotated[Path | None, typer.Option(help="Private key of that certificate (PEM).")] = None
    tokens: Annotated[
        Path | None, typer.Option(help="File with one token per line; a token is the browser's password.")
    ] = None


@web.command()
@reaches_controller
def web_command(where: ControllerOptions, page: PageOptions) -> None:
    """Serve a live page of the fabric, its trees and jobs, until interrupted. The page only reads.

    Exit codes: 0 stopped, 2 bad option, 4 the address cannot be used.
    """
    from netfold.controller.web.source import ControllerSource

    try:
        source = ControllerSource(where.connection())
    except ConnectError as error:
        fail(BAD_INPUT, str(error))
    serve_page("web", source, page)


@replay.command()
@expand_groups
def replay_command(
    page: PageOptions,
    recording: Annotated[Path, typer.Argument(help="A recording of a controller or of the simulator.")],
) -> None:
    """Open a recording in the page, without a controller.

    Exit codes: 0 stopped, 2 bad recording or option, 4 the address cannot be used.
    """
    from netfold.controller.web.source import RecordingReplay

    try:
        source = RecordingReplay(read_recording(recording))
    except RecordingError as error:
        fail(BAD_INPUT, str(error))
    serve_page("replay", source, page)


def serve_page(command: str, source: LineSource, page: PageOptions) -> None:
    """Until interrupted; errors become exit codes and messages."""
    from netfold.controller.web.web_server import WebError, serve

    options = _web_options(page)
    console = Console(stderr=True)

    def on_ready(address: str) -> None:
        console.print(f"netfold {command}: {address}", markup=False, highlight=False, soft_wrap=True)

    async def serve_until_interrupted() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(source, options, on_ready, stop)

    try:
        asyncio.run(serve_until_interrupted())
    except WebError as error:
        fail(CANNOT_LISTEN, str(error))


def _web_options(page: PageOptions) -> WebOptions:
    from netfold.controller.web.web_server import WebOptions, WebSecurity

    host, _, port = page.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > MAX_PORT:
        fail(BAD_INPUT, f"--listen {page.listen}: expected HOST:PORT or fd:NUMBER")
    where = (
        WebOptions(descriptor=int(port))
        if host == "fd"
        else WebOptions(host.removeprefix("[").removesuffix("]"), int(port))
    )
    if page.tls_cert is None and page.tls_key is None and page.tokens is None:
        return where
    if page.tls_cert is None or page.tls_key is None or page.tokens is None:
        fail(BAD_INPUT, "TLS requires --tls-cert, --tls-key and --tokens")
    try:
        tokens = read_tokens(page.tokens)
    except SecurityFileError as error:
        fail(BAD_INPUT, str(error))
    return replace(where, security=WebSecurity(page.tls_cert, page.tls_key, tokens))
