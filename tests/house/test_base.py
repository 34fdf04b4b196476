# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker's machine has the base only: what it needs imports without the extras, and all else says which it
wants."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from netfold.cli import COMMANDS, Command
from tests.house.imports import REPOSITORY, modules

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
IMPORT_NAMES = {"pyyaml": "yaml", "scikit-learn": "sklearn", "prometheus-client": "prometheus_client"}

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.partition(".")[0])
sys.meta_path.insert(0, Hidden())
"""


def _names(requirements: list[str]) -> set[str]:
    names = {re.split(r"[\[<>=;\s]", r, maxsplit=1)[0].lower() for r in requirements} - {
        "netfold",
        "setuptools",
    }
    return {IMPORT_NAMES.get(name, name) for name in names}


EXTRAS = set().union(
    *(_names(PROJECT["optional-dependencies"][e]) for e in ("controller", "testbed", "sim", "web", "torch"))
)
HIDDEN = EXTRAS - {"rich"}  # typer brings it


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Where nothing of the extras can be imported."""
    command = [sys.executable, "-c", HIDE.format(hidden=sorted(HIDDEN)) + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "module",
    ["netfold.traffic.join", "netfold.traffic.server.process", "netfold.traffic.cli", "netfold.protocol.connection",
    "netfold.cli"],
)  # fmt: skip
def test_what_members_run_needs_no_extra(module: str):
    done = _python(f"import {module}")
    assert done.returncode == 0, done.stderr


def test_the_public_face_is_all_there():
    done = _python("import netfold\nfor name in netfold.__all__: getattr(netfold, name)")
    assert done.returncode == 0, done.stderr


def test_the_public_face_costs_a_program_nothing_until_it_is_used():
    code = "import sys, netfold; print(sorted({'numpy', 'grpc', 'google', 'typer'} & set(sys.modules)))"
    assert _python(code).stdout.strip() == "[]"


def test_what_is_no_part_of_the_face_is_no_attribute():
    assert "no attribute 'nothing'" in _python("import netfold; netfold.nothing").stderr


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["plan", "grid-fig1"], "controller"),
        (["network", "up", "single"], "testbed"),
    ],
)
def test_a_command_whose_extra_is_missing_says_which(command: list[str], extra: str):
    done = _python("from netfold.cli import main; main()", *command)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert f"pip install 'netfold[{extra}]'" in done.stderr


def test_a_benchmark_in_the_environment_of_pytorch_says_what_is_missing():
    module = "netfold.evaluation.speed.torch_ddp"
    done = _python(f"import runpy; runpy.run_module({module!r}, run_name='__main__')")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"netfold: `python -m {module}` needs the Python package '"), done.stderr
    assert "pip install 'netfold[testbed]'" in done.stderr


def test_every_extra_that_a_command_names_exists():
    named = {command.extra for command in COMMANDS.values() if isinstance(command, Command)} - {""}
    assert named <= PROJECT["optional-dependencies"].keys()


def test_every_dependency_has_a_lower_and_an_upper_bound_or_only_checks_types():
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    unbound = [
        r for group in groups for r in group if ">=" not in r and "==" not in r and "netfold[" not in r
    ]
    assert all(r.startswith(("types-", "grpc-stubs", "mypy-")) for r in unbound), unbound


def test_the_lock_names_packages_only():
    lines = Path(REPOSITORY / "requirements.lock").read_text().split()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+]+", line) for line in lines)


SILENT = "netfold.controller.planning.sparse"


def test_the_solver_is_made_in_the_module_that_silences_it():
    made = [
        f"{name}:{node.lineno}"
        for name, path in modules().items()
        if name != SILENT
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Highs"
    ]
    assert made == [], f"{SILENT}.new_solver() makes a solver that prints nothing"
