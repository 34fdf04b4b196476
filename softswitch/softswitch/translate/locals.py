# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which scalars never carry a value from one action to another: those become C variables of the action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from softswitch.translate.model import Model
from softswitch.translate.statements import (
    Statement,
    all_prims,
    fields_in,
    read_before_write,
    reads,
    written,
)

Key = tuple[str, str]


def action_locals(model: Model, bodies: Mapping[int, Sequence[Statement]]) -> set[Key]:
    """Fields of p4c's `scalars` that every action which uses them writes first, and that nothing else uses."""
    used: set[Key] = set()
    for body in bodies.values():
        for p in all_prims(body):
            target = written(p)
            used |= reads(p) | ({target} if target else set())
    shared = set(
        fields_in(
            [
                model.root.get(k)
                for k in ("parsers", "deparsers", "calculations", "checksums", "learn_lists", "field_lists")
            ]
        )
    )
    for pipeline in model.list("pipelines"):
        shared |= set(fields_in([pipeline.get("conditionals"), pipeline.get("action_profiles")]))
        for table in pipeline["tables"]:
            shared |= {_target(k) for k in table["key"] if isinstance(k["target"], list)}
    for meter in model.list("meter_arrays"):
        if meter.get("result_target"):
            shared.add((meter["result_target"][0], meter["result_target"][1]))
    for checksum in model.list("checksums"):
        shared.add((checksum["target"][0], checksum["target"][1]))
    for body in bodies.values():
        early, _ = read_before_write(body, set())
        shared |= early
    return {k for k in used - shared if k[0] == "scalars" and model.field(*k)[1].width <= 64}


def _target(key: Mapping[str, Any]) -> Key:
    return key["target"][0], key["target"][1]
