# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The fenced blocks of a page as one shell script.

A block of bash or python is run, in the order of the page, in one folder. A comment before the fence says otherwise:

    <!-- file: NAME -->      the block is written to this file
    <!-- run: network -->    it needs root and an emulated network
    <!-- not run: REASON --> it is not run here
    <!-- output -->          it shows what the block before it prints (tests/docs/outputs.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(
    r"(?:^ *<!-- (?P<mark>file|run|not run|output)(?:: (?P<value>[^\n]*?))? -->\n+)?"
    r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[^\n]*)\n(?P<text>.*?)^ *(?P=fence) *$",
    re.MULTILINE | re.DOTALL,
)
RUN = ("bash", "python")
MARKER = "## the block at line {line}"
"""Line that a page's script prints before it runs a block."""
NUMBERS_VARY = "numbers vary"
SHOWN = ("text", "mermaid", "c", "p4", "protobuf", "json")
"""Blocks that are no code of the reader's: output, diagrams, excerpts."""


@dataclass(frozen=True)
class Block:
    """`mark` is file, run, not run or empty, `value` what stands behind it; `line`: of the fence, from 1."""

    line: int
    language: str
    text: str
    mark: str
    value: str

    @property
    def is_run(self) -> bool:
        return self.mark == "" and self.language in RUN

    @property
    def needs_network(self) -> bool:
        return self.mark == "run" and self.value == "network"

    def fault(self) -> str:
        """Returns the fault of the block's language or mark; "": none."""
        if self.mark == "run" and self.value != "network":
            return f"line {self.line}: run: is '{self.value}'; expected network"
        if self.mark == "output" and self.value not in ("", NUMBERS_VARY):
            return f"line {self.line}: output: is '{self.value}'; expected nothing or {NUMBERS_VARY}"
        if self.mark == "not run" and not self.value:
            return f"line {self.line}: not run: expected a reason"
        if self.mark or self.language in (*RUN, *SHOWN) or self.language.startswith("{"):
            return ""
        return f"line {self.line}: a block of '{self.language}' is neither a file nor run nor marked"


def blocks(page: Path) -> Iterator[Block]:
    """All fenced blocks of the page, in order."""
    text = page.read_text()
    for found in BLOCK.finditer(text):
        lines = found["text"].splitlines()
        indent = len(found["indent"])
        yield Block(
            line=text.count("\n", 0, found.start("fence")) + 1,
            language=found["language"].strip(),
            text="\n".join(line[indent:] for line in lines),
            mark=found["mark"] or "",
            value=(found["value"] or "").strip(),
        )


def script(page: Path, network: bool) -> str:
    """The page as a shell script, "" if nothing is to run. `network`: with the blocks that need one."""
    steps = [b for b in blocks(page) if b.is_run or b.mark == "file" or (network and b.needs_network)]
    if not any(b.needs_network if network else b.is_run for b in steps):
        return ""
    return "\n".join(["set -euo pipefail", *(line for b in steps for line in _step(b))]) + "\n"


def _step(block: Block) -> Iterator[str]:
    yield f"echo '{MARKER.format(line=block.line)}' >&2"
    if block.mark == "file":
        yield from (f"cat > '{block.value}' <<'END-OF-BLOCK'", block.text, "END-OF-BLOCK")
    elif block.language == "python":
        yield from ("python - <<'END-OF-BLOCK'", block.text, "END-OF-BLOCK")
    else:
        yield block.text
