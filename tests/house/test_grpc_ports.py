# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Networks of tests that run at the same time have names of their own, and switches at different P4Runtime ports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.house.imports import REPOSITORY

SWITCHES = 10
"""Maximum number of switches of a test's network, but for networks that have the ports to themselves."""


def _networks() -> Iterator[tuple[int, str, Path]]:
    """First port, name (or none, where it is no literal) and file."""
    for path in (REPOSITORY / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            given = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
            if isinstance(port := given.get("first_grpc_port"), int):
                name = given.get("name") or given.get("network") or "".join(texts[-1:])
                yield port, str(name), path.relative_to(REPOSITORY)


def test_networks_of_two_files_share_no_port_and_no_name():
    networks = sorted(_networks())
    assert len(networks) > SWITCHES, "the search for networks finds none"
    ports = sorted({(port, path) for port, _, path in networks})
    assert [(a, b) for a, b in pairwise(ports) if b[0] - a[0] < SWITCHES and a[1] != b[1]] == []
    names = sorted({(name, path) for _, name, path in networks if name})
    assert [(a, b) for a, b in pairwise(names) if a[0] == b[0]] == []
