# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes what is wrong with a fabric, by its place in it. A file that the fabric comes from adds the line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

Place = tuple[str | int, ...]
"""The path of a value: keys and indices from the top."""


@dataclass(frozen=True)
class Fault:
    """An error at a place: ("hosts", name), ("switches", name, ...), or ("links", index). `earlier`: the place of the
    value that this one repeats."""

    place: Place
    message: str
    earlier: Place | None = None


def hint(given: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: a similar one, else all."""
    names = list(known)
    close = difflib.get_close_matches(given, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; known are {listed}" if names else ""
