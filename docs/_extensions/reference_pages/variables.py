# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the environment variables, from their declarations in protocol/environment.py."""

from __future__ import annotations

from pathlib import Path

from netfold.protocol.environment import Variable

from .markdown import table


def page(_: Path) -> str:
    """Two tables: the variables that a user sets, and those that netfold sets for its child processes."""
    own = [(f"`{v}`", v.form, v.meaning) for v in Variable if not v.reader]
    read = [(f"`{v}`", v.reader, v.form, v.meaning) for v in Variable if v.reader]
    lines = [
        *table(("variable", "read by", "value", "sets"), read),
        "",
        "Netfold sets these for its own child processes:",
        "",
        *table(("variable", "value", "holds"), own),
    ]
    return "\n".join(lines) + "\n"
