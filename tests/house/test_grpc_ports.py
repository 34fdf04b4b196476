# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Networks of tests that run at the same time have switches at different P4Runtime ports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.house.imports import REPOSITORY

SWITCHES = 10
"""Maximum number of switches of a test's network, but for networks that have the ports to themselves."""


def _first_ports() -> Iterator[tuple[int, Path]]:
    for path in (REPOSITORY / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.keyword(arg="first_grpc_port", value=ast.Constant(value=int(port))):
                    yield port, path.relative_to(REPOSITORY)


def test_networks_of_two_files_share_no_port():
    ports = sorted(set(_first_ports()))
    assert len(ports) > SWITCHES, "the search for ports finds none"
    near = [(a, b) for a, b in pairwise(ports) if b[0] - a[0] < SWITCHES and a[1] != b[1]]
    assert near == []
