# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The output that a page shows under a command, compared with what the command prints, and renewed from it.

    <!-- output -->               the block shows all that the block before it prints
    <!-- output: numbers vary --> the same, where each number stands for any number, and blanks are not compared

A line `...` stands for any lines, in either. Output that no longer matches is written to the page in full by
`make docs-outputs`; shorten it there by lines of `...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import MARKER, NUMBERS_VARY, Block, blocks

ANY_LINES = "..."
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
_RULE = re.compile(r"[-─━═]{2,}")


def shown_outputs(page: Path) -> Iterator[tuple[Block, Block]]:
    """Each block with a shown output, and that output."""
    before: Block | None = None
    for block in blocks(page):
        if block.mark == "output" and before is not None:
            yield before, block
        before = block


def printed_by_line(output: str) -> dict[int, str]:
    """The outputs of the blocks of a page's script, by the line of the block."""
    parts = re.split(MARKER.format(line=r"(\d+)") + "\n", output)
    return {int(line): text.strip("\n") for line, text in zip(parts[1::2], parts[2::2], strict=True)}


def matches(shown: Block, printed: str) -> bool:
    expected = (
        "(?:.*\n)*?" if line.strip() == ANY_LINES else re.escape(line) + "\n"
        for line in _comparable(shown, shown.text)
    )
    text = "".join(f"{line}\n" for line in _comparable(shown, printed))
    return re.fullmatch("".join(expected), text) is not None


def _comparable(shown: Block, text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    if shown.value != NUMBERS_VARY:
        return lines
    return [" ".join(_RULE.sub("-", _NUMBER.sub("0", line)).split()) for line in lines]


def renew(page: Path, printed: dict[int, str]) -> None:
    """Write the outputs that no longer match into the page."""
    lines = page.read_text().splitlines()
    for command, shown in reversed(list(shown_outputs(page))):
        if command.line in printed and not matches(shown, printed[command.line]):
            first = shown.line
            last = first + len(shown.text.splitlines())
            indent = " " * (len(lines[first - 1]) - len(lines[first - 1].lstrip()))
            fresh = [(indent + line).rstrip() for line in printed[command.line].splitlines()]
            lines[first:last] = fresh
    page.write_text("\n".join(lines) + "\n")
