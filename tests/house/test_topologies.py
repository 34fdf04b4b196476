# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""topologies/ is a model: it starts no process, opens no socket and does not import Mininet. What it may import of
netfold is in test_imports.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.imports import REPOSITORY

EFFECTS = {"asyncio", "ctypes", "mininet", "multiprocessing", "signal", "socket", "subprocess", "threading"}


def _imported() -> Iterator[tuple[str, str]]:
    for path in sorted((REPOSITORY / "topologies").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            yield from ((path.name, name.partition(".")[0]) for name in names)


def test_topologies_have_no_effects() -> None:
    found = list(_imported())
    assert ("fabric.py", "netfold") in found
    assert [pair for pair in found if pair[1] in EFFECTS] == []
