# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads P4Info files. finsy parses the text anew for each switch and connection, which takes longer than the rest of a
connection; most switches of a fabric have the same one."""

from __future__ import annotations

import functools
from pathlib import Path

import finsy as fy
from finsy import pbutil
from finsy.proto import p4i

MAX_TEXTS = 16
"""Maximum number of programs whose P4Info is kept."""


def read_schema(p4info: Path, blob: Path | None = None) -> fy.P4Schema:
    """The schema of a program. Schemas of the same text share the message, which callers must not change. Raises the
    exceptions of the parser of the file."""
    return fy.P4Schema(_parse(p4info.read_text("utf-8")), blob)


@functools.lru_cache(maxsize=MAX_TEXTS)
def _parse(text: str) -> p4i.P4Info:
    return pbutil.from_text(text, p4i.P4Info)
