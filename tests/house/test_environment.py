# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Environment variables are declared in protocol/environment.py, and nowhere else."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.traffic.pytorch.options import TorchOptions
from tests.house.imports import REPOSITORY, modules

OTHERS = {"NETFOLD_SWITCH", "NETFOLD_COMPLETE"}
"""Variables of the data plane's tests, of the pages' build, and of typer."""


def tracked(*patterns: str) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", *patterns], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return [REPOSITORY / name for name in done.stdout.split() if (REPOSITORY / name).is_file()]


def c_sources() -> str:
    return "".join(path.read_text() for path in tracked("traffic/*.c", "traffic/*.h"))


def test_python_takes_their_names_from_the_declarations() -> None:
    own = {variable.value for variable in Variable}
    found = {
        f"{path.relative_to(REPOSITORY)}: {node.value}"
        for path in (p.resolve() for p in modules().values())
        if path.name != "environment.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in own
    }
    assert found == set()


def test_c_reads_declared_ones_only() -> None:
    read = set(re.findall(r'(?:getenv|is_set)\("(NETFOLD_\w+)"\)', c_sources()))
    assert read
    assert read <= {variable.value for variable in Variable}


def test_pages_name_declared_ones_only() -> None:
    pages = tracked("docs/*.md", "README.md", "*/README.md", "examples/*")
    named = {name for path in pages for name in re.findall(r"\bNETFOLD_[A-Z0-9_]+\b", path.read_text())}
    assert named
    assert {n for n in named if not n.endswith("_")} <= {variable.value for variable in Variable} | OTHERS


def test_each_is_read() -> None:
    options = {f"NETFOLD_{name.upper()}" for name in TorchOptions.__dataclass_fields__}
    python = "".join(path.read_text() for path in modules().values())
    unread = [
        v
        for v in Variable
        if f"Variable.{v.name}" not in python and v.value not in options and f'"{v.value}"' not in c_sources()
    ]
    assert unread == []
