# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the Prometheus metrics, from the calls that declare them in controller/service/metrics.py."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .markdown import table


class Declared(NamedTuple):
    name: str
    kind: str
    labels: str
    meaning: str


def page(repository: Path) -> str:
    """All metrics of the controller in one table."""
    rows = sorted(declared((repository / "controller/service/metrics.py").read_text()))
    return "\n".join(table(("metric", "type", "labels", "meaning"), rows)) + "\n"


def declared(source: str) -> Iterator[Declared]:
    """The metrics that calls of GaugeMetricFamily, CounterMetricFamily and _gauge declare."""
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, ast.FunctionDef):
            continue
        labels = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value, ast.List)
        }
        for call in ast.walk(scope):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                yield from _metric(call, call.func.id, labels)


def _metric(call: ast.Call, function: str, known: dict[str, ast.List]) -> Iterator[Declared]:
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if function not in ("GaugeMetricFamily", "CounterMetricFamily", "_gauge") or len(texts) < 2:
        return
    name, meaning, *rest = texts
    value = next((k.value for k in call.keywords if k.arg == "labels"), None)
    if isinstance(value, ast.Name):
        value = known.get(value.id)
    labels = list(ast.literal_eval(value)) if value is not None else []
    if function == "_gauge":
        labels = rest or ["switch"]
    counter = function == "CounterMetricFamily"
    shown = f"`{name}_total`" if counter else f"`{name}`"
    yield Declared(shown, "counter" if counter else "gauge", ", ".join(labels), meaning)
