# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Command-line options for the connection to the controller, common to operators and members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netfold.protocol.option_groups import expand_groups

if TYPE_CHECKING:
    from netfold.protocol.connection import Connection

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class ControllerOptions:
    """None: the environment's value, or the default."""

    PANEL = "Connection"

    controller: Annotated[
        str | None,
        typer.Option(
            help="unix:PATH or HOST:PORT, or several with commas between; default: $NETFOLD_CONTROLLER, or the "
            "default socket.",
        ),
    ] = None
    tls_ca: Annotated[
        Path | None,
        typer.Option(
            help="CA certificate for the controller's (PEM); default: $NETFOLD_TLS_CA.",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token for TCP; default: $NETFOLD_TOKEN_FILE."),
    ] = None
    tls_server_name: Annotated[
        str | None,
        typer.Option(
            help="Name in the controller's certificate, if not HOST; default: $NETFOLD_TLS_SERVER_NAME.",
        ),
    ] = None

    def connection(self) -> Connection:
        """Raises netfold.protocol.connection.ConnectError."""
        from netfold.protocol.connection import connection  # noqa: PLC0415 (grpc takes long to import)

        return connection(self.controller, self.tls_ca, self.token_file, self.tls_server_name)


def reaches_controller(command: Callable[..., Any]) -> Callable[..., None]:
    """Adds the options of `command`'s groups, `ControllerOptions` among them."""
    return expand_groups(command)
