# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of commands that draw."""

from __future__ import annotations

from typing import Annotated

import typer

from netfold.controller.drawing.palette import Theme

ThemeOption = Annotated[
    Theme,
    typer.Option("--theme", help="Colors of pictures. A light SVG turns dark on its reader's dark screen."),
]
