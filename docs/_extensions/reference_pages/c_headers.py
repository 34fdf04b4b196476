# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the engine's C interface, from its headers: each exported function with the comment before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

HEADERS = (
    "io/engine.h",
    "session/core.h",
    "server/root.h",
    "server/slot_pool.h",
    "numerics/codec.h",
    "numerics/quantize.h",
    "numerics/dtypes.h",
)
EXPORTED = re.compile(r"(?:/\*(?P<comment>(?:(?!\*/).)*)\*/\n)?(?P<code>NF_API [^;{]*)[;{]", re.DOTALL)
FILE_COMMENT = re.compile(r"\*/\n\n/\* (.*?)\*/\n\n#ifndef", re.DOTALL)


def page(repository: Path) -> str:
    """One section for each header."""
    return "\n".join(line for name in HEADERS for line in _header(repository, name)) + "\n"


def _header(repository: Path, name: str) -> Iterator[str]:
    text = (repository / "traffic/engine" / name).read_text()
    yield from (f"## {name}", "")
    about = FILE_COMMENT.search(text)
    if about:
        yield from (_prose(about.group(1)), "")
    for found in EXPORTED.finditer(text):
        if found["comment"]:
            yield from (_prose(found["comment"]), "")
        code = re.sub(r"^ {10,}", "    ", found["code"].removeprefix("NF_API ").strip(), flags=re.MULTILINE)
        yield from ("```c", f"{code};", "```", "")


def _prose(comment: str) -> str:
    return re.sub(r"\s*\n\s*\*\s*", " ", comment).strip().replace("<", "\\<").replace("*", "\\*")
