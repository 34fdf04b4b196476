# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The parser to one C function: a label for each state, every read of the frame checked first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softswitch.errors import PipelineError
from softswitch.translate import store, wide
from softswitch.translate.checksum import emit_verify
from softswitch.translate.code import Code
from softswitch.translate.expr import Expr, FieldRef, HeaderRef, Node
from softswitch.translate.layout import KeyField, pack
from softswitch.translate.model import MAX_WIDTH, Field, names_in, unsupported
from softswitch.translate.phv import emit_own
from softswitch.translate.primitive import Primitives, Shared
from softswitch.translate.refs import identifier
from softswitch.translate.statements import Prim
from softswitch.translate.trace import quoted
from softswitch.translate.value import U32, Val, field_range, limbs_for, literal, native_type

CORE_ERRORS = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
]
MAX_STATES = 4096  # states that one frame may visit; BMv2 has no bound and would hang

HEAD = """static void parse(struct ss_packet *K) {
  struct phv *P = (struct phv *)K->phv;
  const uint8_t *D = K->frame;
  const uint32_t len = K->frame_len;
  uint32_t at = 0, err = 0, states = 0;
  (void)D; (void)len; (void)states;"""
TAIL = """ done: __attribute__((unused));
  P->std.parser_error = err;
  K->parsed = at;
  K->payload = D + at;
  K->payload_len = len - at;"""


class ParserEmitter:
    """Emits the program's one parser."""

    def __init__(self, shared: Shared, vsets: Mapping[str, int]) -> None:
        self.shared = shared
        self.trace = shared.trace
        self.name = "parser"
        self.model = shared.model
        self.code = Code()
        self.ex = Expr(self.model, self.code)
        self.primitives = Primitives(shared, self.ex)
        self.vsets = vsets

    def emit(self) -> str:
        parsers = self.model.list("parsers")
        if len(parsers) > 1:
            raise unsupported("more than one parser", parsers[1])
        if parsers and parsers[0].get("init_state"):
            self.name = str(parsers[0]["name"])
            self.trace.step(self.code, f"Parser '{self.name}': start")
            states = {s["name"]: (i, s) for i, s in enumerate(parsers[0]["parse_states"])}
            self.labels = {name: f"s{i}_{identifier(name)}" for name, (i, _) in states.items()}
            self.code.add(f"goto {self.labels[parsers[0]['init_state']]};")
            for name, (_, state) in states.items():
                self._state(name, state)
        verify = Code()
        verify.count = self.code.count
        emit_verify(Expr(self.model, verify), self.shared.calculations, self.trace)
        self.trace.step(verify, f"Parser '{self.name}': end")
        return "\n".join([HEAD, self.code.text(), TAIL, verify.text(), "}"])

    def error(self, name: str) -> str:
        code = self.model.errors.get(name, CORE_ERRORS.index(name))
        trace = (
            f"ss_trace(K, 'E', \"Exception while parsing: %s\", {quoted(name)}); " if self.trace.on else ""
        )
        return f"{{ {trace}err = {code}; goto done; }}"

    def _state(self, name: str, state: Node) -> None:
        self.code.lines.append(f" {self.labels[name]}: __attribute__((unused));")
        with self.code.block():
            self.trace.step(self.code, f"Parser '{self.name}' entering state '{name}'")
            self.code.add(f"if (SS_UNLIKELY(++states > {MAX_STATES})) {self.error('ParserTimeout')}")
            for op in state["parser_ops"]:
                self.ex.node = {"source_info": op.get("source_info") or state.get("source_info")}
                with self.code.block():
                    self._op(op)
            self.ex.node = state
            self.trace.number(self.code, "Bytes parsed: ", "at")
            self._transition(state)

    def _op(self, op: Node) -> None:
        a = op["parameters"]
        kind = op["op"]
        if kind != "extract":
            emit_own(self.model, self.code, names_in(a))
        if kind == "extract":
            self._extract(a[0])
        elif kind == "extract_VL":
            self._extract(a[0], a[1])
        elif kind == "set":
            self._set(a[0], a[1])
        elif kind == "verify":
            self._verify(a)
        elif kind == "primitive":
            self.primitives.emit(Prim(a[0]["op"], tuple(a[0]["parameters"]), a[0]))
        elif kind == "shift":
            if not 0 <= int(a[0]) <= MAX_WIDTH:
                raise unsupported(f"a shift of {a[0]} bytes", self.ex.node)
            self._advance(f"{int(a[0])}u")
        elif kind == "advance":
            bits = self.code.temp("uint64_t", self.ex.modulo(a[0], 64).as_type("uint64_t"))
            self.code.add(f"if ({bits} % 8) {self.error('ParserInvalidArgument')}")
            self._advance(f"{bits} / 8")
        else:
            raise unsupported(f"parser operation {kind}", self.ex.node)

    def _advance(self, count: str) -> None:
        self.code.add(f"if (len - at < {count}) {self.error('PacketTooShort')}")
        self.code.add(f"at += (uint32_t)({count});")

    def _verify(self, a: list[Any]) -> None:
        error = str(int(a[1])) if isinstance(a[1], int) else self.ex.modulo(a[1], 32).code
        self.code.add(f"if (!{self.ex.boolean(a[0])}) {{ err = (uint32_t)({error}); goto done; }}")

    # ---- extract ----

    def _extract(self, what: Node, length: Node | None = None) -> None:
        kind, value = what["type"], what["value"]
        if kind == "regular":
            self._extract_into(self.ex.header_ref(self.model.header(value)), length)
            return
        if kind == "stack":
            stack, member = self.model.stacks[value], 0
        elif kind == "union_stack":
            stack = self.model.union_stacks[value[0]]
            member = self._union_member(value[0], value[1])
        else:
            raise unsupported(f"extract of {kind}", self.ex.node)
        nxt = f"P->next[{stack.index}]"
        self.code.add(f"if ({nxt} >= {stack.depth}u) {self.error('StackOutOfBounds')}")
        self._extract_into(self.ex.element_ref(stack, nxt, member), length)
        self.code.add(f"{nxt}++;")

    def _union_member(self, stack_name: str, entry: str) -> int:
        for s in self.model.list("header_union_stacks"):
            if s["name"] == stack_name:
                types = next(t for t in self.model.list("header_union_types") if t["name"] == s["union_type"])
                return [n for n, _ in types["headers"]].index(entry)
        raise PipelineError(f"the JSON names union stack {stack_name!r}, which it does not declare")

    def _extract_into(self, h: HeaderRef, length: Node | None) -> None:
        t = h.header.type
        self.trace.step(self.code, f"Extracting header '{h.header.name}'")
        short = self.error("PacketTooShort")
        if t.varbit is None:
            self.code.add(f"if (len - at < {t.bytes}u) {short}")
            if h.header.big >= 0:
                take = "ss_big_view" if t.is_read_exactly else "ss_big_copy"
                self.code.add(f"{take}(K, &P->big[{h.header.big}], D + at, {t.bytes});")
            elif t.bytes:
                self.code.add(f"memcpy({h.base}, D + at, {t.bytes});")
            self.code.add(f"at += {t.bytes}u;")
        else:
            if length is None:
                raise unsupported(
                    f"extract of {t.name}, which has a varbit field, without a length", self.ex.node
                )
            n = self.code.temp(U32, self.ex.modulo(length, 32).code)
            self.code.add(f"if ({n} % 8) {self.error('ParserInvalidArgument')}")
            self.code.add(f"if (len - at < {t.bytes}u + (uint64_t){n} / 8) {short}")
            self.code.add(f"if ({n} / 8 > {t.var_max}u) {self.error('HeaderTooShort')}")
            first, rest = t.varbit.offset, t.bits - t.varbit.offset
            self.code.add(f"ss_copy_bits({h.base}, 0, D + at, 0, {first});")
            self.code.add(f"ss_copy_bits({h.base} + {t.var_offset}, 0, D + at, {first}, {n});")
            if rest:
                self.code.add(f"ss_copy_bits({h.base}, {first}, D + at, {first} + {n}, {rest});")
            self.code.add(f"{h.var_bits} = {n};")
            self.code.add(f"at += {t.bytes}u + {n} / 8;")
        store.mark_valid(self.ex, h)

    # ---- set and lookahead ----

    def _set(self, dst: Node, src: Node) -> None:
        if src["type"] != "lookahead":
            store.assign(self.ex, self.ex.field_ref(dst), src)
            return
        ref = self.ex.field_ref(dst)
        v = self._lookahead(src["value"][0], src["value"][1])
        f = ref.field
        if v.wide or f.width > 64:
            n = max(v.limbs, limbs_for(0, (1 << f.width) - 1))
            name = self.code.array(n)
            self.code.add(f"ss_w_cp({name}, {n}, {wide.limbs(self.code, v, n)}, {n});")
            self.code.add(f"ss_w_{'s' if f.signed else 'z'}ext({name}, {n}, {f.width});")
            store.store(self.ex, ref, Val(name, *field_range(f.width, f.signed), n))
        else:
            store.set_number(self.ex, ref, v.code, v.hi)

    def _lookahead(self, offset: int, width: int) -> Val:
        """`width` bits, `offset` bits ahead. The bytes are copied out first: reads of whole words may run
        past a field."""
        if not (0 <= offset <= MAX_WIDTH and 0 < width <= MAX_WIDTH):
            raise unsupported(f"lookahead of {width} bits, {offset} bits ahead", self.ex.node)
        offset, width = int(offset), int(width)
        first, end = offset // 8, (offset + width + 7) // 8
        self.code.add(f"if (len - at < {end}u) {self.error('PacketTooShort')}")
        self.code.count += 1
        name = f"l{self.code.count}"
        self.code.take_stack(end - first + 8)
        self.code.add(f"uint8_t {name}[{end - first + 8}];")
        self.code.add(f"memcpy({name}, D + at + {first}, {end - first});")
        hi = (1 << width) - 1
        t = native_type(0, hi)
        if t is not None:
            return Val(f"({t})ss_get({name}, {offset % 8}, {width})", 0, hi)
        n = limbs_for(0, hi)
        limbs = self.code.array(n)
        self.code.add(f"ss_w_get({limbs}, {n}, {name}, {offset % 8}, {width});")
        return Val(limbs, 0, hi, n)

    # ---- select ----

    def _key(self, node: Node) -> tuple[Val, int]:
        kind, value = node["type"], node["value"]
        if kind == "lookahead":
            return self._lookahead(value[0], value[1]), int(value[1])
        if kind == "union_stack_field":
            stack = self.model.union_stacks[value[0]]
            ref = self.ex.last_ref(stack, self._union_member(value[0], value[1]))
            f = ref.header.type.by_name[value[2]]
            return self.ex.load(FieldRef(Field(f.name, f.width, False, f.offset), ref)), f.width
        ref_ = self.ex.field_ref(node)
        return self.ex.modulo(node, ref_.field.width), ref_.field.width

    def _transition(self, state: Node) -> None:
        keys = [self._key(k) for k in state.get("transition_key") or []]
        names = []
        for v, width in keys:
            names.append((v if v.wide else Val(self.code.temp(v.ctype, v.code), v.lo, v.hi), width))
        self.trace.select(self.code, state["name"], names)
        default = "goto done;"
        matched = []
        for t in state["transitions"]:
            target = f"goto {self.labels[t['next_state']]};" if t["next_state"] is not None else "goto done;"
            kind = t.get("type", "hexstr")
            if kind == "default" or t.get("value") == "default":
                default = target
            elif kind == "hexstr":
                matched.append(f"if ({self._match(names, t)}) {target}")
            elif kind == "parse_vset":
                matched.append(f"if ({self._vset(names, t)}) {target}")
            else:
                raise unsupported(f"parser transition of type {kind}", self.ex.node)
        for line in matched:
            self.code.add(line)
        self.code.add(default)

    def _match(self, keys: list[tuple[Val, int]], t: Node) -> str:
        value = int(t["value"], 16)
        mask = int(t["mask"], 16) if t.get("mask") is not None else None
        terms = []
        for v, width in reversed(keys):
            room = (width + 7) // 8 * 8
            want, full = value & ((1 << room) - 1), (1 << width) - 1
            m = full if mask is None else mask & full
            value, mask = value >> room, (None if mask is None else mask >> room)
            terms.append(self._equal(v, want & m, m, full))
        return " && ".join(reversed(terms)) or "1"

    def _equal(self, v: Val, want: int, mask: int, full: int) -> str:
        if mask == 0:
            return "1"
        if not v.wide:
            left = v.code if mask == full else f"({v.code} & {literal(mask, v.ctype)})"
            return f"{left} == {literal(want, v.ctype)}"
        n = v.limbs
        name = wide.binary(self.code, "&", v.code, wide.constant(self.code, mask, n), n)
        return f"ss_w_cmp({name}, {wide.constant(self.code, want, n)}, {n}) == 0"

    def _vset(self, keys: list[tuple[Val, int]], t: Node) -> str:
        name = t["value"]
        if name not in self.vsets:
            raise PipelineError(f"the JSON names value set {name!r}, which it does not declare")
        if t.get("mask") is not None:
            raise unsupported(f"masked use of value set {name}", self.ex.node)
        fields = pack([(f"{i}", w) for i, (_, w) in enumerate(keys)])
        words = emit_key(self.code, fields, [v for v, _ in keys])
        return f"ss_vset_has(&K->pl->vsets[{self.vsets[name]}], {words}, {max(1, sum_words(fields))})"


def sum_words(fields: list[KeyField]) -> int:
    return max((f.word + f.words for f in fields), default=0)


def emit_key(code: Code, fields: list[KeyField], values: list[Val]) -> str:
    """The name of an array of words that holds the fields as `pack` laid them out."""
    n = max(1, sum_words(fields))
    code.count += 1
    name = f"key{code.count}"
    parts: dict[int, list[str]] = {}
    for f, v in zip(fields, values, strict=True):
        if f.words > 1 or v.wide:
            for i in range(f.words):
                parts.setdefault(f.word + i, []).append(
                    f"{v.code}[{i}]" if v.wide else v.as_type("uint64_t") if i == 0 else "0"
                )
        else:
            parts.setdefault(f.word, []).append(
                f"({v.as_type('uint64_t')} << {f.shift})" if f.shift else v.as_type("uint64_t")
            )
    words = [" | ".join(parts.get(i, ["0"])) for i in range(n)]
    code.add(f"uint64_t {name}[{n}] = {{{', '.join(words)}}};")
    return name
