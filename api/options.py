# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The options of the command line that say how the controller is reached: the same for operators and members."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

if TYPE_CHECKING:
    from netfold.api.connection import Connection

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Where:
    """The options as they were given."""

    controller: str | None = None
    tls_ca: Path | None = None
    token_file: Path | None = None
    tls_server_name: str | None = None

    def connection(self) -> Connection:
        """Raises netfold.api.connection.ConnectError."""
        from netfold.api.connection import connection  # noqa: PLC0415 (grpc takes long to import)

        return connection(self.controller, self.tls_ca, self.token_file, self.tls_server_name)


_OPTIONS: dict[str, Any] = {
    "controller": Annotated[
        str | None,
        typer.Option(help="unix:PATH or HOST:PORT; default: $NETFOLD_CONTROLLER, or the default socket."),
    ],
    "tls_ca": Annotated[
        Path | None,
        typer.Option(help="Certificate that the controller's is checked against; default: $NETFOLD_TLS_CA."),
    ],
    "token_file": Annotated[
        Path | None, typer.Option(help="File with the token to show over TCP; default: $NETFOLD_TOKEN_FILE.")
    ],
    "tls_server_name": Annotated[
        str | None,
        typer.Option(
            help="Name in the controller's certificate, if not HOST; default: $NETFOLD_TLS_SERVER_NAME."
        ),
    ],
}


def reaches_controller(command: Callable[Concatenate[Where, P], R]) -> Callable[..., R]:
    """Gives a command these options; it takes them, as one `Where`, in its first parameter."""

    @functools.wraps(command)
    def called(*args: Any, **options: Any) -> R:
        where = Where(**{name: options.pop(name, None) for name in _OPTIONS})
        return command(where, *args, **options)

    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())[1:]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _OPTIONS.items()
    ]
    called.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return called
