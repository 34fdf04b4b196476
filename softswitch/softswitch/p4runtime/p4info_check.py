# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that a P4Info matches its program: the server relies on it later, and rejects a mismatch at the push."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from finsy.proto import p4t

from softswitch.p4runtime.p4data import P4DataCodec
from softswitch.p4runtime.schema import Array, Schema, Table
from softswitch.p4runtime.status import StatusError, invalid
from softswitch.state.entities import MatchKind
from softswitch.state.pipeline import Pipeline

WRONG = "P4Info is not that of the device config"


def check(schema: Schema, pipeline: Pipeline) -> None:
    """StatusError (INVALID_ARGUMENT) where the two do not agree. A P4Info may leave objects out."""
    for kind, named, known in (
        ("table", schema.tables.names, pipeline.tables),
        ("action", schema.actions.names, pipeline.actions),
        ("action profile", schema.profiles.names, pipeline.profiles),
        ("counter", schema.counters.names, pipeline.counters),
        ("meter", schema.meters.names, pipeline.meters),
        ("register", schema.registers.names, pipeline.registers),
        ("digest", schema.digests.names, pipeline.digests),
        ("value set", schema.value_sets.names, pipeline.value_sets),
    ):
        if missing := sorted(named - set(known)):
            raise invalid(f"{WRONG}, which has no {kind} {', '.join(missing)}")
    for action in schema.actions.select(0):
        _same(
            f"the parameters of action {action.name}",
            action.params.names,
            _names(pipeline.actions[action.name].params),
        )
    for table in schema.tables.select(0):
        _check_table(schema, table, pipeline)
    for profile in schema.profiles.select(0):
        for table_id in profile.tables:
            schema.tables[table_id]
    for arrays, known_arrays in (
        (schema.counters.select(0), pipeline.counters),
        (schema.meters.select(0), pipeline.meters),
        (schema.registers.select(0), pipeline.registers),
    ):
        for array in arrays:
            _same(f"the size of {array.name}", {array.size}, {known_arrays[array.name].size})
    codec = P4DataCodec(schema.types)
    for array in [*schema.registers.select(0), *schema.digests.select(0)]:
        _check_type(codec, array)


def _check_table(schema: Schema, table: Table, pipeline: Pipeline) -> None:
    program = pipeline.tables[table.name]
    what = f"table {table.name}"
    _same(f"the key of {what}", table.fields.names, _names(program.keys))
    for key in program.keys:
        kind = table.fields.named(key.name).kind
        found = (
            MatchKind.OPTIONAL if kind is MatchKind.OPTIONAL and key.kind is MatchKind.TERNARY else key.kind
        )
        _same(f"the match kind of {key.name} in {what}", {kind.value}, {found.value})
    actions = {schema.actions[action_id].name for action_id in table.scopes}
    _same(f"the actions of {what}", actions, program.actions)
    _same(f"the action profile of {what}", {table.profile and table.profile.name}, {program.profile})
    _same(f"the direct counter of {what}", {table.has_counter}, {program.has_counter})
    _same(f"the direct meter of {what}", {table.meter_type is not None}, {program.has_meter})


def _check_type(codec: P4DataCodec, array: Array) -> None:
    spec = array.type_spec or p4t.P4DataTypeSpec()
    try:
        codec.check(spec)
    except RecursionError:
        raise invalid(f"P4Info: the type of {array.name} holds itself, or is nested too deeply") from None
    except StatusError as error:
        raise invalid(f"P4Info: the type of {array.name}: {error.message}") from error


def _names(fields: Iterable[Any]) -> set[str]:
    return {field.name for field in fields}


def _same(what: str, expected: Iterable[Any], found: Iterable[Any]) -> None:
    if set(expected) != set(found):
        raise invalid(f"{WRONG}: {what}: {_list(expected)} in P4Info, {_list(found)} in the program")


def _list(values: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, values))) or "none"
