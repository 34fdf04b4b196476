# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of C under construction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from softswitch.errors import PipelineError

MAX_STACK = 1 << 20


class Code:
    """Lines with indentation and fresh names for temporaries. `temps` says whether any statement had to be
    put in front of an expression (a loop body that must stay one expression checks it)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.stack = 0

    def add(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def temp(self, ctype: str, value: str) -> str:
        self.count += 1
        name = f"t{self.count}"
        self.add(f"{ctype} {name} = {value};")
        return name

    def array(self, limbs: int) -> str:
        self.take_stack(8 * limbs)
        self.count += 1
        name = f"w{self.count}"
        self.add(f"ss_limb {name}[{limbs}];")
        return name

    def take_stack(self, size: int) -> None:
        """Counts the bytes of a function's arrays: it runs on a thread's stack."""
        self.stack += size
        if self.stack > MAX_STACK:
            raise PipelineError(
                f"the program needs more than {MAX_STACK} bytes of wide numbers in one function"
            )

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        self.add(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.add("}")

    def text(self) -> str:
        return "\n".join(self.lines)
