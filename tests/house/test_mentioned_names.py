# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Names that docstrings and pages mention exist: files, modules, and the exceptions of `Raises ...`."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house.imports import REPOSITORY, modules

FILE = re.compile(r"(?<![\w/.$*{}-])((?:[\w-]+/)*[\w-]+\.(?:py|c|h|p4|proto|js))\b(?![\w*(])")
MODULE = re.compile(r"(?<![\w/.-])netfold(?:\.[a-z_]\w*)+(?![\w/-]|\.\w)")
RAISES = re.compile(r"\bRaises?\s+(\w+Error\b(?:(?:,| and| or|, and|, or)\s+\w+Error\b)*)")

FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
FOREIGN_FILES = {
    *(
        "train.py",
        "train_hsdp.py",
        "program.c",
        "ranks.c",
        "first.py",
        "add.py",
        "hdr.h",
        "prog.p4",
    ),  # examples
    *("linux/bpf.h", "linux/if_link.h", "linux/virtio_net.h", "net/ipv4/icmp.c", "udp.c"),  # Linux
    *("tools/runtime_CLI.py", "tools/stf/stf_parser.py", "backends/bmv2/bmv2stf.py"),  # BMv2 and p4c
    *("proto/p4/tmp/p4config.proto", "Cytoscape.js", "netfold_pb2.py", "netfold_pb2_grpc.py"),
}
OLD = {
    ("traffic/numerics.py", "traffic/engine/codec.c"),
    ("traffic/roce/recipe.py", "BuildError"),
}
"""Stale names that were there when this test was written. Remove a line with its name; add none."""


@cache
def tracked() -> tuple[str, ...]:
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return tuple(done.stdout.split("\0"))


@cache
def trees(*, of_tests: bool = False) -> dict[str, ast.Module]:
    """The Python of the product, or of its tests, by path."""
    return {
        name: ast.parse((REPOSITORY / name).read_text())
        for name in tracked()
        if name.endswith(".py")
        and ("tests/" in name) is of_tests
        and "_pb2" not in name
        and Path(REPOSITORY, name).is_file()
    }


def docstrings(*, of_tests: bool = False) -> Iterator[tuple[str, str]]:
    """Place and text of each; a text that stands alone behind a constant is one, too."""
    for name, tree in trees(of_tests=of_tests).items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield f"{name}:{node.lineno}", node.value.value


@cache
def errors() -> frozenset[str]:
    """Exceptions that the product defines, imports or takes of a module, and Python's own."""
    found = set(dir(builtins))
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.ClassDef(name=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                    found.add(name)
    return frozenset(found)


@cache
def files() -> frozenset[str]:
    """Tracked files by every end of their paths."""
    return frozenset(
        "/".join(parts[n:]) for name in tracked() for parts in [name.split("/")] for n in range(len(parts))
    )


@cache
def contents(module: str) -> frozenset[str]:
    """Names that the module binds at its top, and its submodules."""
    names = {m.removeprefix(f"{module}.").split(".")[0] for m in modules() if m.startswith(f"{module}.")}
    for node in ast.walk(ast.parse(modules()[module].read_text())):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.alias(name=name, asname=None)
                | ast.alias(asname=str(name))
            ):
                names.add(name)
    return frozenset(names)


def is_module_or_member(name: str) -> bool:
    """Also true of a name that only begins as the package's: netfold.proto, netfold.db."""
    parts = name.split(".")
    if ".".join(parts[:2]) not in modules():
        return True
    longest = max(n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in modules())
    return longest == len(parts) or parts[longest] in contents(".".join(parts[:longest]))


def stale(text: str) -> Iterator[str]:
    yield from (path for path in FILE.findall(text) if path not in files() and path not in FOREIGN_FILES)
    yield from (n for n in MODULE.findall(text) if not is_module_or_member(n))
    for names in RAISES.findall(text):
        yield from (n for n in re.findall(r"\w+Error", names) if n not in errors())


def test_names_in_docstrings_exist():
    found = {(place.partition(":")[0], name) for place, text in docstrings() for name in stale(text)}
    assert found - OLD == set()


def test_names_in_pages_exist():
    pages = [name for name in tracked() if name.endswith(".md") and name != "CHANGELOG.md"]
    texts = {p: FENCE.sub("", (REPOSITORY / p).read_text()) for p in pages}  # code names files of its user
    found = {p: names for p, text in texts.items() if (names := sorted(set(stale(text))))}
    assert found == {}


def test_no_docstring_begins_with_what_or_of():
    """A docstring begins with a subject or an imperative verb."""
    texts = [*docstrings(), *docstrings(of_tests=True)]
    assert [place for place, text in texts if re.match(r"\s*(What|Of)\b", text)] == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("As tests/house/imports.py does, and netfold.traffic.worker.", []),
        ("See numbering.py", ["numbering.py"]),
        ("netfold.controller.numbering.place", ["netfold.controller.numbering.place"]),
        ("Raises ValueError, BuildError.", ["BuildError"]),
    ],
)
def test_a_name_that_does_not_exist_is_found(text: str, names: list[str]):
    assert list(stale(text)) == names
