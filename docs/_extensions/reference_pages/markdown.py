# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table and an empty line; nothing if there are no rows."""
    found = list(rows)
    if not found:
        return
    for row in (head, ["---"] * len(head), *found):
        yield "| " + " | ".join(map(cell, row)) + " |"
    yield ""


def cell(text: str) -> str:
    """The text in one line, without what would end the cell."""
    return " ".join(text.split()).replace("|", "\\|")


def escaped(text: str) -> str:
    """Prose whose angle brackets and stars are themselves."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("[", "\\[")
