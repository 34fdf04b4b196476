# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The body of an action as a tree. p4c flattens if/else into _jump_if_zero and _jump; this puts it back together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Prim:
    """One primitive call."""

    op: str
    params: tuple[Node, ...]
    node: Node


@dataclass(frozen=True)
class If:
    """Runs `then` when `condition` is not zero."""

    condition: Node
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]


@dataclass(frozen=True)
class Jumps:
    """A body with jumps that are not those of nested if/else (a for loop): kept as p4c gave it."""

    prims: tuple[Prim, ...]


Statement = Prim | If | Jumps


class _UnstructuredError(Exception):
    pass


def structure(primitives: Sequence[Node]) -> tuple[Statement, ...]:
    """The tree of a body."""
    try:
        return _region(primitives, 0, len(primitives), len(primitives))
    except _UnstructuredError:
        return (Jumps(tuple(Prim(p["op"], tuple(p["parameters"]), p) for p in primitives)),)


def _target(p: Node) -> int:
    return int(p["parameters"][-1]["value"], 16)


def _region(prims: Sequence[Node], at: int, end: int, follow: int) -> tuple[Statement, ...]:
    """Statements [at, end), after which control goes on at `follow`."""
    out: list[Statement] = []
    while at < end:
        p = prims[at]
        if p["op"] == "_jump" and _target(p) == follow and at == end - 1:
            break
        if p["op"] == "_jump":
            raise _UnstructuredError
        if p["op"] != "_jump_if_zero":
            out.append(Prim(p["op"], tuple(p["parameters"]), p))
            at += 1
            continue
        statement, at = _if(prims, at, end, follow)
        out.append(statement)
    return tuple(out)


def _if(prims: Sequence[Node], at: int, end: int, follow: int) -> tuple[If, int]:
    p = prims[at]
    other = _target(p)
    if other == follow and other > end:
        other = end
    if not at < other <= end:
        raise _UnstructuredError
    last = prims[other - 1]
    if other - 1 > at and last["op"] == "_jump" and _target(last) >= other:
        stop = _target(last)
        inside = stop <= end
        if not inside and stop != follow:
            raise _UnstructuredError
        close = stop if inside else end
        then = _region(prims, at + 1, other - 1, stop)
        return If(p["parameters"][0], then, _region(prims, other, close, stop)), close
    after = follow if other == end else other
    return If(p["parameters"][0], _region(prims, at + 1, other, after), ()), other


# ---- what statements read and write ----

WRITES_FIRST = {
    "assign": 0,
    "assign_VL": 0,
    "modify_field": 0,
    "register_read": 0,
    "modify_field_rng_uniform": 0,
    "modify_field_with_hash_based_offset": 0,
    "add": 0,
    "subtract": 0,
    "bit_xor": 0,
    "bit_or": 0,
    "bit_and": 0,
    "shift_left": 0,
    "shift_right": 0,
    "execute_meter": 2,
}
READS_TOO = {"add_to_field": 0, "subtract_from_field": 0}


def fields_in(node: Any) -> Iterator[tuple[str, str]]:
    """All (header, field) pairs named anywhere below a JSON node."""
    if isinstance(node, Mapping):
        if node.get("type") == "field" and isinstance(node.get("value"), list):
            yield node["value"][0], node["value"][1]
        for v in node.values():
            yield from fields_in(v)
    elif isinstance(node, list | tuple):
        for v in node:
            yield from fields_in(v)


def written(p: Prim) -> tuple[str, str] | None:
    """The plain field that a primitive overwrites."""
    at = WRITES_FIRST.get(p.op, READS_TOO.get(p.op))
    if at is None or p.params[at]["type"] != "field":
        return None
    header, name = p.params[at]["value"]
    return header, name


def reads(p: Prim) -> set[tuple[str, str]]:
    """The fields whose values a primitive uses."""
    at = WRITES_FIRST.get(p.op)
    skip = at if at is not None and p.params[at]["type"] == "field" else None
    return {f for i, q in enumerate(p.params) if i != skip for f in fields_in(q)}


def all_prims(body: Sequence[Statement]) -> Iterator[Prim]:
    for s in body:
        if isinstance(s, Prim):
            yield s
        elif isinstance(s, Jumps):
            yield from s.prims
        else:
            yield from all_prims(s.then)
            yield from all_prims(s.other)


def read_before_write(
    body: Sequence[Statement], known: set[tuple[str, str]]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Fields that may be read before the body has written them, and those surely written at its end (`known`
    at its start)."""
    early: set[tuple[str, str]] = set()
    done = set(known)
    for s in body:
        if isinstance(s, Prim):
            early |= reads(s) - done
            target = written(s)
            if target is not None:
                if s.op in READS_TOO and target not in done:
                    early.add(target)
                done.add(target)
        elif isinstance(s, Jumps):
            early |= set(fields_in([p.params for p in s.prims]))
        else:
            early |= set(fields_in(s.condition)) - done
            e1, d1 = read_before_write(s.then, done)
            e2, d2 = read_before_write(s.other, done)
            early |= e1 | e2
            done = d1 & d2
    return early, done


def names_in(body: Sequence[Statement]) -> set[tuple[str, str]]:
    out: set[tuple[str, str]] = set()
    for s in body:
        if isinstance(s, If):
            out |= set(fields_in(s.condition)) | names_in(s.then) | names_in(s.other)
        elif isinstance(s, Jumps):
            out |= set(fields_in([p.params for p in s.prims]))
        else:
            out |= set(fields_in(s.params))
    return out


def conditions(body: Sequence[Statement]) -> list[Node]:
    out: list[Node] = []
    for s in body:
        if isinstance(s, If):
            out += [s.condition, *conditions(s.then), *conditions(s.other)]
    return out
