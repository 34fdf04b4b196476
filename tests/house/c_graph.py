# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which C file includes and calls which, read from the sources."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

from tests.house.imports import REPOSITORY

Graph = nx.DiGraph  # of file names, relative to the library's folder

_COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][\w \t*]*?[ \t*])(?P<name>\w+)\((?:[^;{}])*\)\s*\{", re.MULTILINE)
_OBJECT = re.compile(
    r"^(?P<head>(?!static|extern|typedef|return)[A-Za-z_][\w \t*]*?[ \t*])(?P<name>\w+)(?:\[[^\]\n]*\])*\s*=",
    re.MULTILINE,
)
_PROTOTYPE = re.compile(r"^(?!\s)[A-Za-z_][^;{}=]*\)\s*;", re.MULTILINE)
_TYPE = re.compile(r"^(?:struct|union|enum)\b[^;{}()=]*\{.*?^\}[^;]*;", re.MULTILINE | re.DOTALL)
_EXTERN = re.compile(r"^extern\b[^;]*;", re.MULTILINE)
_USE = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)")
_KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "do", "else"}


NO_C_OF_OURS = {"p4src", "build", "dist", "out", "node_modules"}


def c_files() -> Iterator[Path]:
    """All C files and headers of the repository; p4src's headers are P4."""
    for folder, names, files in os.walk(REPOSITORY):
        names[:] = sorted(name for name in names if name[0] != "." and name not in NO_C_OF_OURS)
        for name in files:
            if name.endswith((".c", ".h")):
                yield Path(folder, name)


class Source:
    """One file: what it includes, defines for other files, and uses."""

    def __init__(self, path: Path) -> None:
        text = path.read_text()
        self.includes = [(path.parent / name).resolve() for name in _INCLUDE.findall(text)]
        code = _DIRECTIVE.sub("", _COMMENT_OR_STRING.sub(" ", text))
        functions = list(_FUNCTION.finditer(code))
        is_header = path.suffix == ".h"
        self.own = {f["name"] for f in functions}
        self.defined = {
            f["name"] for f in functions if is_header or "static" not in f["head"].split()
        } - _KEYWORDS
        self.defined |= {o["name"] for o in _OBJECT.finditer(code)}
        for declaration in (_TYPE, _EXTERN, _PROTOTYPE):
            code = declaration.sub("", code)
        self.used = set(_USE.findall(code)) - self.own


def read(folder: Path) -> dict[str, Source]:
    """By name, the C files of `folder` and below."""
    return {str(path.relative_to(folder)): Source(path) for path in sorted(folder.rglob("*.[ch]"))}


def include_graph(folder: Path) -> Graph:
    sources = read(folder)
    graph: Graph = nx.DiGraph()
    for name, source in sources.items():
        for header in source.includes:
            if header.is_relative_to(folder.resolve()):
                graph.add_edge(name, str(header.relative_to(folder.resolve())))
    return graph


def call_graph(folder: Path) -> Graph:
    """An edge from each file to each one whose functions or objects it uses. Functions in a header may call those that
    it declares: no edge from a header to its own source file."""
    sources = read(folder)
    owners: dict[str, str] = {}
    for name, source in sources.items():
        owners.update(dict.fromkeys(source.defined, name))
    graph: Graph = nx.DiGraph()
    for name, source in sources.items():
        for used in source.used:
            owner = owners.get(used, name)
            if owner != name and owner != name.removesuffix(".h") + ".c":
                graph.add_edge(name, owner, symbol=used)
    return graph


def both(folder: Path) -> Graph:
    return nx.compose(include_graph(folder), call_graph(folder))
