# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Puts a translation together: the C file, and what the control plane must know of its numbering."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from softswitch.errors import PipelineError
from softswitch.translate import validate
from softswitch.translate.action import ActionEmitter, assign_banks
from softswitch.translate.calculation import Calculations
from softswitch.translate.code import Code
from softswitch.translate.control import ControlEmitter, Table
from softswitch.translate.deparser import (
    emit_copy_fields,
    emit_deparse,
    emit_digest,
    emit_update_checksums,
)
from softswitch.translate.expr import Expr, Node
from softswitch.translate.layout import pack, params_of, words_of
from softswitch.translate.locals import action_locals
from softswitch.translate.model import Model, array_size, load, times_frames, unsupported, version
from softswitch.translate.parser import ParserEmitter, sum_words
from softswitch.translate.phv import emit_begin, emit_phv
from softswitch.translate.prefetch import indexed_rows
from softswitch.translate.primitive import Shared, element_bytes
from softswitch.translate.refs import identifier
from softswitch.translate.reroll import Finder, Key, Run
from softswitch.translate.sharding import Sharding, sharding, touches_registers
from softswitch.translate.statements import If as IfStatement
from softswitch.translate.statements import Statement, all_prims, structure
from softswitch.translate.steering import steering
from softswitch.translate.trace import Trace, where

# Exceptions of the translator for JSON that validate.py does not reject.
MALFORMED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    StopIteration,
    RecursionError,
)
FORMAT = 1  # of the layout below; part of the cache key through this file's text


@dataclass(frozen=True)
class Translation:
    """`source` is C; `layout` is plain data (JSON) for the control plane; `loops` describes each re-rolled loop."""

    source: str
    layout: dict[str, Any]
    loops: tuple[str, ...]


def translate(p4_json: bytes, *, traced: bool = False) -> Translation:
    """`traced`: the program writes the packet trace of BMv2's log; otherwise it has no trace code.
    Raises PipelineError when this is not BMv2 JSON, UnsupportedConstructError for what is refused."""
    if len(p4_json) > validate.MAX_BYTES:
        raise PipelineError(f"a program of {len(p4_json)} bytes; at most {validate.MAX_BYTES}")
    try:
        root = json.loads(p4_json)
    except ValueError as e:
        raise PipelineError(f"not JSON: {e}") from e
    except RecursionError as e:
        raise PipelineError("malformed BMv2 JSON: values nested too deeply") from e
    if not isinstance(root, dict) or "pipelines" not in root or "header_types" not in root:
        raise PipelineError("not the output of p4c-bm2-ss: it has no header_types or pipelines")
    try:
        version(root)
        validate.shape(root)
        model = load(root)
        validate.program(model)
        return _Translator(model, Trace(traced)).run()
    except MALFORMED as e:
        raise PipelineError(f"malformed BMv2 JSON: {type(e).__name__}: {str(e)[:500]}") from e


class _Translator:
    def __init__(self, model: Model, trace: Trace) -> None:
        self.model = model
        self.trace = trace
        for extern in model.list("extern_instances"):
            raise unsupported(f"extern {extern.get('type')}", extern)
        self.actions: list[Node] = model.list("actions")
        self.bodies: dict[int, tuple[Statement, ...]] = {
            i: structure(a["primitives"]) for i, a in enumerate(self.actions)
        }
        self.local: set[Key] = action_locals(model, self.bodies)
        self.counters = [c for c in model.list("counter_arrays") if not c.get("is_direct")]
        self.meters = [m for m in model.list("meter_arrays") if not m.get("is_direct")]
        self.vsets = {v["name"]: i for i, v in enumerate(model.list("parse_vsets"))}
        _, egress_spec = model.field("standard_metadata", "egress_spec")
        self.shared = Shared(
            model,
            Calculations(model),
            assign_banks(model, self._runs()),
            {c["name"]: i for i, c in enumerate(self.counters)},
            {m["name"]: i for i, m in enumerate(self.meters)},
            {m["name"]: m["type"] == "bytes" for m in self.meters},
            egress_spec.width,
            trace,
        )
        bodies = () if trace.on else self.bodies.values()
        self.shared.rows = indexed_rows(self.shared.banks, bodies)
        self.sharding = Sharding()

    def _runs(self) -> list[Run]:
        if self.trace.on:
            return []  # every statement is traced
        finder, out = Finder(self.model, self.local), []

        def walk(body: tuple[Statement, ...]) -> None:
            out.extend(finder.runs(body))
            for s in body:
                if isinstance(s, IfStatement):
                    walk(s.then)
                    walk(s.other)

        for body in self.bodies.values():
            walk(body)
        return out

    def run(self) -> Translation:
        exits = {
            i for i, body in self.bodies.items() if any(p.op in ("exit", "_exit") for p in all_prims(body))
        }
        control = ControlEmitter(self.shared, self.actions, exits)
        self.sharding = sharding(self.model, control, self.bodies)
        if self.sharding.index is not None:
            control.exits |= {i for i, body in self.bodies.items() if touches_registers(all_prims(body))}
        loops: list[str] = []
        parts = ['#include <stdio.h>\n\n#include "program.h"\n', emit_phv(self.model, self.local)]
        used = self._used_actions(control)
        for i, action in enumerate(self.actions):
            if i in used:
                parts.append(self._action(i, action, loops))
        parts += [control.emit_table(t) for t in control.tables.values() if not t.constant]
        parts.append(ParserEmitter(self.shared, self.vsets).emit())
        parts.append(control.emit_pipeline("ingress", "ingress"))
        parts.append(control.emit_pipeline("egress", "egress"))
        parts += [emit_update_checksums(self.shared), emit_deparse(self.shared)]
        parts += [emit_copy_fields(self.shared), emit_digest(self.shared)]
        parts.append(emit_begin(self.model))
        parts.append(self._descriptor(control))
        return Translation("\n\n".join(parts) + "\n", self._layout(control), tuple(loops))

    def _used_actions(self, control: ControlEmitter) -> set[int]:
        used = {a for t in control.tables.values() for a in t.actions}
        used |= {
            control.by_id[t.node["default_entry"]["action_id"]] for t in control.tables.values() if t.constant
        }
        for pipeline in self.model.list("pipelines"):
            used |= {control.by_id[c["action_id"]] for c in pipeline.get("action_calls") or []}
        return used

    def _action(self, index: int, action: Node, loops: list[str]) -> str:
        trace_code = Code()
        self.trace.step(trace_code, f"{where(action)}Action {action['name']}", level="T")
        if self.sharding.index is not None and touches_registers(all_prims(self.bodies[index])):
            field = {"type": "field", "value": list(self.sharding.index)}
            at = Expr(self.model, trace_code).modulo(field, 32).as_type("uint64_t")
            trace_code.add(f"if (SS_UNLIKELY(ss_is_elsewhere(K, {at}))) return;")
        body = ActionEmitter(self.shared, action, self.bodies[index], self.local, loops).emit()
        return (
            f"static void a_{index}(struct ss_packet *K, const uint64_t *AD) {{ /* {identifier(action['name'])} */\n"
            f"  struct phv *P = (struct phv *)K->phv;\n  (void)P; (void)AD;\n{trace_code.text()}\n{body}\n}}"
        )

    # ---- the descriptor ----

    def _descriptor(self, control: ControlEmitter) -> str:
        tables = [self._table_desc(control, t) for t in control.tables.values()]
        banks = [f"{{{cells}, {lanes}, {size}}}" for cells, lanes, size in self.shared.banks.cells]
        places = [self.shared.banks.place[r.name] for r in self.model.registers.values()]
        regs = [f"{{{bank}, {lane}}}" for bank, lane in places]
        meters = [f"{{{array_size(m)}, {int(m['type'] == 'bytes')}}}" for m in self.meters]
        vsets = [f"{{{words}}}" for words in self._vset_words()]
        action_words = [str(sum(words_of(p.width) for p in params_of(a))) for a in self.actions]
        arrays = {
            "tables": ("struct ss_table_desc", tables),
            "counters": ("uint32_t", [str(array_size(c)) for c in self.counters]),
            "meters": ("struct ss_meter_desc", meters),
            "banks": ("struct ss_bank_desc", banks),
            "regs": ("struct ss_reg_desc", regs),
            "vsets": ("struct ss_vset_desc", vsets),
            "action_words": ("uint32_t", action_words),
            "big": ("uint32_t", [str(h.type.bytes) for h in self.model.big]),
        }
        out = [
            f"static const {ctype} d_{name}[] = {{{', '.join(items) or '0'}}};"
            for name, (ctype, items) in arrays.items()
        ]
        mask = (1 << self.shared.egress_spec_width) - 1
        digests = max((int(d["id"]) for d in self.model.list("learn_lists")), default=0)
        has_mcast = int("mcast_grp" in self.model.headers["standard_metadata"].type.by_name)
        fields = [
            f".abi = SS_ABI, .phv_bytes = sizeof(struct phv), .egress_spec_mask = {mask}, .has_mcast = {has_mcast}",
            f".traced = {int(self.trace.on)}, .times_frames = {int(times_frames(self.model))}",
            f".n_tables = {len(tables)}, .n_profiles = {len(control.profiles)}, .n_counters = {len(self.counters)}",
            f".n_meters = {len(meters)}, .n_banks = {len(banks)}, .n_regs = {len(regs)}, .n_vsets = {len(vsets)}",
            f".n_digests = {digests}, .n_actions = {len(self.actions)}, .n_big = {len(self.model.big)}",
            ".big_at = offsetof(struct phv, big), .zeros = zeros",
            *[f".{name} = d_{name}" for name in arrays],
            ".parse = parse, .ingress = ingress, .egress = egress, .headers_bytes = headers_bytes",
            ".update_checksums = update_checksums, .deparse = deparse, .copy_fields = copy_fields",
            ".reset_metadata = reset_metadata, .digest = digest",
        ]
        return "\n".join(
            [*out, "const struct ss_program ss_program = {\n  " + ",\n  ".join(fields) + ",\n};"]
        )

    def _table_desc(self, control: ControlEmitter, t: Table) -> str:
        profile = control.profiles[t.profile][0] if t.profile is not None else -1
        return f"{{{sum_words(t.keys)}, {len(t.ranges)}, {profile}}}"

    def _vset_fields(self) -> dict[str, list[int]]:
        """The widths of a value set's fields, from the select that uses it."""
        out: dict[str, list[int]] = {}
        used: dict[str, list[int]] = {}
        for v in self.model.list("parse_vsets"):
            out[v["name"]] = [int(v["compressed_bitwidth"])]
        for parser in self.model.list("parsers"):
            for state in parser["parse_states"]:
                for t in state["transitions"]:
                    if t.get("type") == "parse_vset":
                        widths = [self._select_width(k) for k in state["transition_key"]]
                        if used.setdefault(t["value"], widths) != widths:
                            raise unsupported(f"value set {t['value']} with keys of different widths", state)
                        out[t["value"]] = widths
        return out

    def _select_width(self, k: Mapping[str, Any]) -> int:
        if k["type"] == "lookahead":
            return int(k["value"][1])
        if k["type"] == "union_stack_field":
            members = self.model.union_stacks[k["value"][0]].elements[0]
            return next(
                h.type.by_name[k["value"][2]].width for h in members if k["value"][2] in h.type.by_name
            )
        if k["type"] == "stack_field":
            return self.model.stacks[k["value"][0]].elements[0][0].type.by_name[k["value"][1]].width
        return self.model.field(k["value"][0], k["value"][1])[1].width

    def _vset_words(self) -> list[int]:
        return [
            max(1, sum_words(pack([(str(i), w) for i, w in enumerate(ws)])))
            for ws in self._vset_fields().values()
        ]

    # ---- the layout ----

    def _layout(self, control: ControlEmitter) -> dict[str, Any]:
        signed = self._signed_registers()
        return {
            "sharding": self._sharding_layout(),
            "tables": [self._table_layout(control, t) for t in control.tables.values()],
            "actions": [
                {"name": a["name"], "params": [[p.name, p.width] for p in params_of(a)]} for a in self.actions
            ],
            "profiles": [
                {"name": n, "size": int(p["max_size"]), "selector": "selector" in p}
                for n, (_, p) in control.profiles.items()
            ],
            "counters": [[c["name"], array_size(c)] for c in self.counters],
            "meters": [[m["name"], array_size(m)] for m in self.meters],
            "registers": [
                [r.name, r.size, r.width, element_bytes(r.width), r.name in signed]
                for r in self.model.registers.values()
            ],
            "vsets": [
                [v["name"], int(v.get("max_size") or 0), self._vset_fields()[v["name"]]]
                for v in self.model.list("parse_vsets")
            ],
            "digests": [
                [
                    d["name"],
                    int(d["id"]),
                    [self._select_width({"type": "field", "value": e["value"]}) for e in d["elements"]],
                ]
                for d in self.model.list("learn_lists")
            ],
        }

    def _sharding_layout(self) -> dict[str, Any]:
        index = self.sharding.index
        hint = None if index is None else steering(self.model, index, self.bodies)
        return {"refusal": self.sharding.refusal, "steering": None if hint is None else asdict(hint)}

    def _signed_registers(self) -> set[str]:
        """The JSON does not mark registers of int<>: a register is signed if its values are read into signed fields."""
        out = set()
        for body in self.bodies.values():
            for p in all_prims(body):
                if p.op == "register_read" and p.params[0]["type"] == "field":
                    _, f = self.model.field(*p.params[0]["value"])
                    if f.signed and f.width == self.model.registers[p.params[1]["value"]].width:
                        out.add(p.params[1]["value"])
        return out

    def _table_layout(self, control: ControlEmitter, t: Table) -> dict[str, Any]:
        packed = {k.name: [k.word, k.shift, k.words] for k in t.keys}
        default = t.node.get("default_entry")
        keys = []
        for i, k in enumerate(t.node["key"]):
            target = k["target"] if isinstance(k["target"], str) else ".".join(k["target"])
            keys.append([k.get("name") or target, control._key_width(k), k["match_type"], packed.get(str(i))])
        return {
            "name": t.name,
            "keys": keys,
            "words": sum_words(t.keys),
            "actions": t.actions,
            "size": int(t.node.get("max_size") or 0),
            "profile": control.profiles[t.profile][0] if t.profile is not None else None,
            "selector": t.node["type"] == "indirect_ws",
            "counter": t.counter,
            "meter": t.meter is not None,
            "constant": t.constant,
            "match_type": t.node["match_type"],
            "const_entries": "entries" in t.node,
            "const_action": bool((default or {}).get("action_const")),
            "const_default": bool((default or {}).get("action_entry_const")),
            "default": [control.by_id[default["action_id"]], [int(x, 16) for x in default["action_data"]]]
            if default
            else None,
            "entries": [self._entry(control, e) for e in t.node.get("entries") or []],
        }

    def _entry(self, control: ControlEmitter, e: Mapping[str, Any]) -> dict[str, Any]:
        action = e["action_entry"]
        keys = []
        for k in e["match_key"]:
            kind = k["match_type"]
            if kind == "range":
                keys.append([int(k["start"], 16), int(k["end"], 16)])
            elif kind == "lpm":
                keys.append([int(k["key"], 16), int(k["prefix_length"])])
            elif kind == "ternary":
                keys.append([int(k["key"], 16), int(k["mask"], 16)])
            else:
                keys.append([int(k["key"]) if isinstance(k["key"], bool) else int(k["key"], 16)])
        return {
            "keys": keys,
            "action": control.by_id[action["action_id"]],
            "data": [int(x, 16) for x in action["action_data"]],
            "priority": int(e["priority"]),
        }
