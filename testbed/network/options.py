# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Command-line options of all commands that make or use a network."""

from __future__ import annotations

from typing import Annotated

import typer

from netfold.protocol.environment import Variable
from netfold.testbed.network.modes import NetworkMode

NameOption = Annotated[
    str,
    typer.Option("--name", envvar=Variable.NAME, help="Name of the network: 1 to 6 lower-case letters."),
]
ModeOption = Annotated[
    NetworkMode,
    typer.Option(
        "--network",
        envvar=Variable.NETWORK_MODE,
        help="mininet: namespaces, as root; rootless: in a user namespace; userland: processes alone, for "
        "`netfold run`; auto: the first that works here.",
    ),
]
