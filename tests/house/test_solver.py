# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands print JSON on the standard output; the solver's constructor prints a banner there in some versions."""

from __future__ import annotations

import ast

from tests.house.imports import modules

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
