# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The walks of the READMEs ("The way of one packet") name files and functions that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY
from tests.house.test_links import pages, tracked

WALK = re.compile(r"[Tt]he way of one[^\n]*\n(?:(?!```)[^\n]*\n){0,4}```\n(.*?)```", re.DOTALL)
FILE = r"[\w/]*\w\.(?:py|c|h|p4)\b"
NAME = r"_?[a-z]\w*_\w+|[A-Z][a-z]+(?:[A-Z]\w*)+"
"""A name of code and no word of prose."""

BESIDE = re.compile(
    rf"^ *({FILE}) +(?:([A-Z]\w*)\.)?(\w+)(?=$|\(|,| ->| {{2}})|({FILE}) +(?:([A-Z]\w*)\.)?({NAME})\b",
    re.MULTILINE,
)
"""`file.c  function -> ...`, `file.py  Class.method`: defined in this file."""

OF_MODULE = re.compile(r"(?<![\w./])([a-z]\w*)\.([A-Za-z]\w*)\b(?![./])")
"""`module.function`."""

FOREIGN = {"init_process_group", "HiGHS"}
"""Names of torch.distributed, and a solver."""

SOURCES = (".py", ".c", ".h", ".p4", ".proto")
DEFINITION = re.compile(
    r"""
      ^\s*(?:async\ )?(?:def|class)\ (\w+)                              # Python
    | ^\s*(?:@\w+\ )*(?:action|table|control|parser|state)\ (\w+)       # P4
    | ^(?:[A-Za-z_][\w ]*[ *])(\w+)\((?![^()]*\);)                       # a function in C
    | [ *](\w+)\#\#\w+\([^()]*\)\ \{                                    # the same, whose name a macro ends
    | ^\s*(?:self\.)?(\w+)(?::\ |\ =\ )                                 # an attribute in Python
    | ^\s*rpc\ (\w+) | ^\s*message\ (\w+)                               # the service
    | [ *](\w+)(?:\[\w*\])?;                                            # a field of C or P4
    """,
    re.MULTILINE | re.VERBOSE,
)


@cache
def definitions() -> dict[Path, set[str]]:
    sources = (p for p in tracked() if p.suffix in SOURCES and p.relative_to(REPOSITORY).parts[0] != "tests")
    return {
        path: {name for groups in DEFINITION.findall(path.read_text()) for name in groups if name}
        for path in sources
    }


def walks(page: Path) -> str:
    return "\n".join(WALK.findall(page.read_text()))


def files_named(page: Path, name: str) -> list[Path]:
    """Those that `name` may stand for in `page`: the nearest ones."""
    found = [path for path in definitions() if path.as_posix().endswith(f"/{name}")]
    return [path for path in found if path.is_relative_to(page.parent)] or found


PAGES = [page for page in pages() if walks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_a_walk_names_files_and_functions_that_exist(page: Path):
    text = walks(page)
    files = set(re.findall(FILE, text))
    assert {name for name in files if not files_named(page, name)} == set(), "files"
    known = FOREIGN.union({path.stem for path in definitions()}, *definitions().values())
    assert set(re.findall(rf"\b(?:{NAME})\b(?!/)", re.sub(FILE, " ", text))) - known == set(), "names"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_a_function_beside_a_file_is_defined_there(page: Path):
    text = walks(page)
    beside = [tuple(filter(None, groups)) for groups in BESIDE.findall(text)]
    text = re.sub(FILE, " ", text)
    beside += [
        (f"{module}.py", name)
        for module, name in OF_MODULE.findall(text)
        if files_named(page, f"{module}.py")
    ]
    elsewhere = []
    for file, *names in beside:
        defined = set().union(*(definitions()[path] for path in files_named(page, file)))
        elsewhere += [f"{file}: {name}" for name in names if name not in defined]
    assert elsewhere == []
