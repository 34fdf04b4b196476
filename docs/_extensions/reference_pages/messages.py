# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of error messages, from the places that raise netfold's own errors."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .markdown import cell

PACKAGES = ("controller", "protocol", "simulator", "testbed", "topologies", "traffic", "p4src", "evaluation")


def page(repository: Path) -> str:
    """One section for each error, with its messages."""
    lines = []
    entries = (repository / "docs/how-to/troubleshooting.md").read_text()
    for name, messages in sorted(raised(repository).items()):
        if not messages or f"### {name}\n" not in entries:
            continue
        lines += [f"## {name}", "", f"[What to do](../how-to/troubleshooting.md#{name.lower()})", ""]
        lines += [f"- `{cell(message).replace('`', chr(39))}`" for message in sorted(messages)]
        lines.append("")
    return "\n".join(lines)


@cache
def raised(repository: Path) -> dict[str, set[str]]:
    """Messages of each of netfold's own errors that its code raises; `...` stands for a value."""
    trees = [ast.parse(path.read_text()) for path in _sources(repository)]
    own = {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and not node.name.startswith("_")
    }
    found: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            name = ast.unparse(node.exc.func).rsplit(".", 1)[-1]
            if name in own:
                found[name].update(_messages(node.exc))
    return dict(found)


def _sources(repository: Path) -> Iterator[Path]:
    for package in PACKAGES:
        yield from (p for p in sorted((repository / package).rglob("*.py")) if "_pb2" not in p.name)


def _messages(call: ast.Call) -> Iterator[str]:
    """The first text among the arguments, or nothing where it is made elsewhere."""
    for argument in call.args:
        text = _text(argument)
        if text.replace("...", "").strip(" :;,'()"):
            yield text
            return


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(v) if isinstance(v, ast.Constant) else "..." for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return ""
