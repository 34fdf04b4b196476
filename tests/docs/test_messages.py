# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/reference/messages.md is a message that the code has."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.house.imports import REPOSITORY

PAGE = REPOSITORY / "docs/reference/messages.md"
PACKAGES = (
    "controller",
    "netfold",
    "p4src",
    "protocol",
    "simulator",
    "softswitch",
    "testbed",
    "topologies",
    "traffic",
)


def rows() -> list[str]:
    return re.findall(r"^\| `([^|]+)` \| .+ \|$", PAGE.read_text(), re.MULTILINE)


@cache
def texts() -> str:
    """The texts of the product, one per line; `...` stands for a value, and neighboring texts are one."""
    sources = [path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py")]
    trees = [ast.parse(p.read_text()) for p in sources if not {"tests", "compiled"} & set(p.parts)]
    return "\n".join(_text(node) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr))


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(value)):
            return value.replace("\n", " ")
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.FormattedValue():
            return "..."
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
    return ""


def is_text(message: str, texts: str) -> bool:
    """Whether a text has the words of a message in their order; a value may itself be such a text."""
    pieces = [re.escape(piece) for piece in message.strip(".").split("...") if re.search(r"\w", piece)]
    return re.search(".*".join(pieces), texts) is not None


@pytest.mark.parametrize("message", rows())
def test_the_code_has_the_message(message: str):
    assert is_text(message, texts())


def test_a_message_that_no_code_has_is_found():
    assert not is_text("no such ...: expected this", "no such host: ...")
    assert is_text("no such ...: ...", "no such host: ...")


def test_no_message_is_twice():
    assert len(rows()) == len(set(rows())) > 30
