# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which module imports which, read from the sources: imports inside functions and for type checkers count like all
others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "netfold"
_INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.MULTILINE)

Graph = nx.DiGraph  # of module names


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by its name."""
    found = {"netfold": PACKAGE / "__init__.py"}
    for folder in sorted(p for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"):
        for path in sorted(folder.resolve().rglob("*.py")):
            parts = ["netfold", folder.name, *path.relative_to(folder.resolve()).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph() -> Graph:
    """An edge from each module to each one that it imports; to a package where no module of it is named."""
    known = modules()
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(known)
    for name, path in known.items():
        for target in _imported(ast.parse(path.read_text()), known):
            if target != name:
                graph.add_edge(name, target)
    return graph


def _imported(tree: ast.Module, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else str(node.module)


def rooms(graph: Graph, depth: int) -> Graph:
    """The same between folders: of a module's name the first `depth` parts below netfold. A module that lies in the
    folder above counts as a room of its own."""

    def room(name: str) -> str:
        return ".".join(name.split(".")[1 : depth + 1])

    found: Graph = nx.DiGraph()
    for a, b in graph.edges:
        if room(a) and room(b) and room(a) != room(b):
            found.add_edge(room(a), room(b))
    return found


def includes(folder: Path) -> Graph:
    """Which C file of `folder` (and below) includes which header; headers by their name."""
    graph: Graph = nx.DiGraph()
    for path in sorted(folder.rglob("*.[ch]")):
        for name in _INCLUDE.findall(path.read_text()):
            graph.add_edge(path.name, Path(name).name)
    return graph
