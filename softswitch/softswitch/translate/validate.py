# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Validates BMv2 JSON before translation. A pushed program may be hostile: this checks the shapes, numbers and names on
which the generated C relies.

`shape` checks the JSON alone; `program` the declarations that model.py read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from softswitch.errors import PipelineError
from softswitch.translate.model import MAX_PHV, MAX_WIDTH, STD_FIELDS, Json, Model, array_size
from softswitch.translate.value import field_range, limbs_for

MAX_DEPTH = 400  # of lists and objects within one another; p4c's deepest in the tests is 34
MAX_BYTES = 32 << 20  # of the file; a program of 256 lanes has 2 MB,
MAX_NODES = 1 << 20  # and 131,000 values
MAX_TEXT = 1 << 16  # characters of a string
MAX_STATE = 1 << 30  # bytes of all registers, counters and meters together
MAX_EMITTED = 4096  # headers that the deparser names
METER_BYTES, COUNTER_BYTES = 72, 16

NAME = re.compile(r"[A-Za-z0-9_.$\[\]<>:,@() +-]{1,512}")
HEX = re.compile(r"-?0x[0-9a-fA-F]{1,5000}")
# By name: the objects that other parts of the file refer to; their names become numbers.
NAMED = (
    "header_types", "headers", "header_stacks", "header_union_types", "header_unions", "header_union_stacks",
    "parse_vsets", "counter_arrays", "meter_arrays", "register_arrays", "calculations", "learn_lists",
)  # fmt: skip
WITH_ID = ("headers", "header_unions", "actions", "field_lists", "learn_lists")


def shape(root: dict[str, Any]) -> None:
    """Raises PipelineError where the file is not of the form that the translator reads. Adds `action_ids` to tables
    that name their actions instead, as older compilers do."""
    _walk(root)
    _add_action_ids(root)
    for kind in NAMED:
        _unique(kind, "name", _objects(root, kind))
    for kind in WITH_ID:
        _unique(kind, "id", _objects(root, kind))
    for kind in ("field_lists", "learn_lists"):
        for node in _objects(root, kind):
            _require(0 < node["id"] < 1 << 16, f"the id {node['id']} in {kind}; 1 to 65535")
    for node in _objects(root, "learn_lists"):
        fields = all(isinstance(e, Mapping) and e.get("type") == "field" for e in node["elements"])
        _require(fields, f"digest {node['name']} with something else than fields")
    for node in _objects(root, "header_types"):
        _header_type(node)
    for node in _objects(root, "actions"):
        _action(node)
    for node in _objects(root, "deparsers"):
        _require(len(node["order"]) <= MAX_EMITTED, f"a deparser of more than {MAX_EMITTED} headers")
    _pipelines(root)


def program(model: Model) -> None:
    """Raises PipelineError where declarations do not fit together."""
    _standard_metadata(model)
    for union in model.unions.values():
        _require(
            not any(h.metadata for h in union.headers)
            and len({h.name for h in union.headers}) == len(union.headers),
            f"union {_shown(union.name)} holds metadata, or a header twice",
        )
    metadata = sum(
        f.width // 8 + 1 + 8 * limbs_for(*field_range(f.width, f.signed))
        if not f.varbit
        else h.type.var_max + 16
        for h in model.headers.values()
        if h.metadata
        for f in h.type.fields
    )
    _require(metadata <= MAX_PHV, f"metadata of {metadata} bytes together; at most {MAX_PHV}")
    state = sum(r.size * ((r.width + 63) // 64 * 8) for r in model.registers.values())
    for kind, size in (("counter_arrays", COUNTER_BYTES), ("meter_arrays", METER_BYTES)):
        state += sum(array_size(a) * size for a in model.list(kind) if not a.get("is_direct"))
    _require(
        state <= MAX_STATE, f"registers, counters and meters of {state} bytes together; at most {MAX_STATE}"
    )


# ---- any value ----


def _walk(root: Json) -> None:
    """Depth, number and size of values, without recursion; and what every node of an expression must be."""
    todo: list[tuple[Any, int]] = [(root, 1)]
    count = 0
    while todo:
        value, depth = todo.pop()
        if isinstance(value, list | Mapping):
            count += len(value)
            _require(count <= MAX_NODES, f"more than {MAX_NODES} values")
        _require(depth <= MAX_DEPTH, f"values nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            if value.get("type") == "hexstr" and value.get("value") is not None:
                _hex(value["value"])
            todo += [(v, depth + 1) for k, v in value.items() if k != "source_info"]
            _require(all(len(k) <= MAX_TEXT for k in value), "a name that is too long")
            _source(value.get("source_info"))
        elif isinstance(value, list):
            todo += [(v, depth + 1) for v in value]
        elif isinstance(value, str):
            _require(len(value) <= MAX_TEXT, f"a text of {len(value)} characters")
        elif isinstance(value, float):
            raise PipelineError(f"malformed BMv2 JSON: {value} where a whole number belongs")
        elif isinstance(value, int):
            _require(-(1 << 31) <= value < 1 << 32, "a number that is out of range")


def _source(info: Any) -> None:
    """Check the place in the P4 file, which messages name."""
    if info is None:
        return
    _require(isinstance(info, Mapping), "a source_info that is no object")
    for key, value in info.items():
        numeric = key in ("line", "column")
        _require(
            isinstance(value, int if numeric else str),
            f"a source_info whose {_shown(key)} is wrong",
        )
        _require(numeric or len(value) <= MAX_TEXT, "a source_info that is too long")


def _hex(text: Any) -> int:
    _require(
        isinstance(text, str) and HEX.fullmatch(text) is not None,
        f"{_shown(text)} where a number in hexadecimal belongs",
    )
    return int(text, 16)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise PipelineError(f"malformed BMv2 JSON: {what}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


# ---- objects ----


def _objects(root: Json, kind: str) -> list[dict[str, Any]]:
    items = root.get(kind) or []
    _require(
        isinstance(items, list) and all(isinstance(i, dict) for i in items),
        f"{kind} is no list of objects",
    )
    return items


def _unique(kind: str, key: str, items: Iterable[Json]) -> None:
    seen: set[Any] = set()
    for item in items:
        value = item.get(key)
        if key == "name":
            _name(value)
        else:
            _require(
                isinstance(value, int) and not isinstance(value, bool) and value >= 0,
                f"id {_shown(value)} in {kind}",
            )
        _require(value not in seen, f"{_shown(value)} is there twice in {kind}")
        seen.add(value)


def _name(value: Any) -> None:
    _require(isinstance(value, str) and NAME.fullmatch(value) is not None, f"{_shown(value)} is no name")


def _header_type(node: Json) -> None:
    seen = set()
    for field in node["fields"]:
        _require(isinstance(field, list) and 2 <= len(field) <= 4, f"a field of {_shown(node['name'])}")
        _name(field[0])
        _require(field[0] not in seen, f"field {field[0]!r} is there twice in {node['name']!r}")
        _require(field[1] == "*" or type(field[1]) is int, f"the width of {node['name']}.{field[0]}")
        seen.add(field[0])


def _action(node: Json) -> None:
    _name(node["name"])
    for p in node["runtime_data"]:
        _name(p["name"])
        _require(
            type(p["bitwidth"]) is int and 0 < p["bitwidth"] <= MAX_WIDTH,
            f"the width of {node['name']}.{p['name']}",
        )
    _require(
        len({p["name"] for p in node["runtime_data"]}) == len(node["runtime_data"]),
        f"parameters of {node['name']}",
    )
    end = len(node["primitives"])
    for p in node["primitives"]:
        if p["op"] in ("_jump", "_jump_if_zero"):
            target = _hex(p["parameters"][-1]["value"])
            _require(
                0 <= target <= end, f"a jump to {target} in action {node['name']}, which has {end} primitives"
            )


# ---- pipelines ----


def _pipelines(root: Json) -> None:
    actions = {a["id"]: a for a in _objects(root, "actions")}
    pipelines = _objects(root, "pipelines")
    _unique("pipelines", "name", pipelines)
    _unique("tables", "name", [t for p in pipelines for t in _objects(p, "tables")])
    _unique("action_profiles", "name", [a for p in pipelines for a in _objects(p, "action_profiles")])
    for pipeline in pipelines:
        nodes = [n for kind in ("tables", "conditionals", "action_calls") for n in _objects(pipeline, kind)]
        _unique(f"pipeline {pipeline['name']}", "name", nodes)
        for table in _objects(pipeline, "tables"):
            _table(table, actions)
        for call in _objects(pipeline, "action_calls"):
            action = _action_of(call, actions)
            _require(not action["runtime_data"], f"a call of {action['name']} without its parameters")
        _acyclic(pipeline, {n["name"]: _follows(n) for n in nodes})


def _add_action_ids(root: dict[str, Any]) -> None:
    ids: dict[str, list[int]] = {}
    for action in _objects(root, "actions"):
        ids.setdefault(action["name"], []).append(action["id"])
    for table in (t for p in _objects(root, "pipelines") for t in _objects(p, "tables")):
        if "action_ids" in table:
            continue
        names = table.get("actions")
        if not isinstance(names, list):
            what = f"table {_shown(table.get('name'))} has neither action_ids nor actions"
            raise PipelineError(f"malformed BMv2 JSON: {what}")
        for name in names:
            _require(
                len(ids.get(name, [])) == 1, f"table {_shown(table['name'])}: no single action {_shown(name)}"
            )
        table["action_ids"] = [ids[name][0] for name in names]


def _action_of(node: Json, actions: Mapping[int, Json]) -> Json:
    action = actions.get(node.get("action_id"))  # type: ignore[arg-type]
    if action is None:
        raise PipelineError(
            f"malformed BMv2 JSON: there is no action with id {_shown(node.get('action_id'))}"
        )
    return action


def _table(table: Json, actions: Mapping[int, Json]) -> None:
    what = f"table {table['name']}"
    ids = table["action_ids"]
    _require(all(i in actions for i in ids) and len(set(ids)) == len(ids), f"the actions of {what}")
    _require(
        type(table.get("max_size") or 0) is int and (table.get("max_size") or 0) >= 0, f"the size of {what}"
    )
    for key in table["key"]:
        if isinstance(key["target"], list):
            _require(len(key["target"]) == 2, f"a key of {what}")
        if key.get("mask") is not None:
            _hex(key["mask"])
    if table.get("default_entry"):
        _action_data(table["default_entry"], actions, what)
        default = _action_of(table["default_entry"], actions)
        _require(
            default["id"] in ids or not default["primitives"],
            f"the default action of {what}",
        )
    for entry in table.get("entries") or []:
        _action_data(entry["action_entry"], actions, what)
        _require(entry["action_entry"]["action_id"] in ids, f"an entry's action in {what}")
        _require(len(entry["match_key"]) == len(table["key"]), f"the key of an entry of {what}")
        for given, key in zip(entry["match_key"], table["key"], strict=True):
            _entry_key(given, key, what)


def _action_data(entry: Json, actions: Mapping[int, Json], what: str) -> None:
    action = _action_of(entry, actions)
    data = entry["action_data"]
    _require(len(data) == len(action["runtime_data"]), f"the action data of {action['name']} in {what}")
    for text in data:
        _hex(text)


def _entry_key(given: Json, key: Json, what: str) -> None:
    kind = given["match_type"]
    _require(kind == key["match_type"], f"a match of type {_shown(kind)} in an entry of {what}")
    for part in {"range": ("start", "end"), "ternary": ("key", "mask")}.get(kind, ("key",)):
        if not isinstance(given[part], bool):
            _require(_hex(given[part]) >= 0, f"a negative key in an entry of {what}")
    if kind == "lpm":
        _require(
            type(given["prefix_length"]) is int and given["prefix_length"] >= 0,
            f"a prefix in an entry of {what}",
        )


def _follows(node: Json) -> list[str]:
    after = [node.get(k) for k in ("base_default_next", "true_next", "false_next", "next_node")]
    after += list((node.get("next_tables") or {}).values())
    return [a for a in after if a is not None]


def _acyclic(pipeline: Json, graph: Mapping[str, list[str]]) -> None:
    """A frame passes each node once at most: a circle would hold the data plane for ever."""
    open_, done = set(), set()
    start = pipeline.get("init_table")
    todo: list[tuple[str, bool]] = [] if start is None else [(start, False)]
    while todo:
        name, leaving = todo.pop()
        if leaving:
            open_.discard(name)
            done.add(name)
            continue
        _require(name in graph, f"control node {_shown(name)} is not declared")
        _require(name not in open_, f"the control nodes of {pipeline['name']} run in a circle at {name}")
        if name in done:
            continue
        open_.add(name)
        todo.append((name, True))
        todo += [(n, False) for n in graph[name] if n not in done]


def _standard_metadata(model: Model) -> None:
    """Its fields are members of a C struct, of fixed types."""
    header = model.headers.get("standard_metadata")
    if header is None or not header.metadata:
        raise PipelineError(
            "malformed BMv2 JSON: it has no standard_metadata; is this a program for v1model?"
        )
    for f in header.type.fields:
        _require(
            f.name not in STD_FIELDS or (not f.varbit and f.width <= STD_FIELDS[f.name]),
            f"standard_metadata.{f.name} of {f.width} bits",
        )
