# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller token`: make a token, and the line that gives it an identity."""

from __future__ import annotations

import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.operator.controller_client import BAD_INPUT, fail
from netfold.controller.service.identities import ROLES_IN_FILES, Identity, Role, identity_line, name_fault

app = typer.Typer()

TOKEN_BYTES = 32

ChosenRole = StrEnum("ChosenRole", {role.name: role.value for role in ROLES_IN_FILES})  # type: ignore[misc]  # its members are no literals


@app.command()
def token(
    name: Annotated[str, typer.Argument(help="Name of the caller, such as a user or a service.")],
    tenant: Annotated[str, typer.Option(help="Tenant whose jobs the caller submits.")],
    role: Annotated[
        ChosenRole, typer.Option(help="viewer reads all, user acts for a tenant, operator for all.")
    ],
    out: Annotated[Path | None, typer.Option(help="New file for the token; default: NAME.token.")] = None,
) -> None:
    """Make a token in a file that only its user can read, and print its line for --identities.

    Exit codes: 0 made, 2 bad name, or the file exists or cannot be written.
    """
    if fault := name_fault(name, tenant):
        fail(BAD_INPUT, fault)
    made = secrets.token_urlsafe(TOKEN_BYTES)
    path = out or Path(f"{name}.token")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{made}\n")
    except OSError as error:
        fail(BAD_INPUT, f"{path} cannot be made: {error.strerror}")
    typer.echo(identity_line(Identity(name, tenant, Role(role.value)), made))
