# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The packet trace in BMv2's format: calls in traced translations, none in others (core/trace.c formats the text)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softswitch.translate.code import Code
from softswitch.translate.expr import Expr, Node
from softswitch.translate.layout import KeyField, params_of
from softswitch.translate.value import Val

KINDS = {
    "lpm": "SS_KEY_LPM",
    "ternary": "SS_KEY_TERNARY",
    "optional": "SS_KEY_TERNARY",
    "range": "SS_KEY_RANGE",
}


def quoted(text: str) -> str:
    """A C string literal. What is not plain ASCII goes in octal, so that no name can leave the literal."""
    plain = (chr(c) if 32 <= c < 127 and chr(c) not in '"\\?' else f"\\{c:03o}" for c in text.encode())
    return f'"{"".join(plain)}"'


def where(node: Node) -> str:
    """FILE(LINE) and a space, if the JSON has it."""
    info = node.get("source_info") or {}
    return f"{info['filename']}({info['line']}) " if "filename" in info and "line" in info else ""


def fragment(node: Node) -> str:
    """The P4 of a node."""
    return str((node.get("source_info") or {}).get("source_fragment", "(no source info)"))


@dataclass(frozen=True)
class Trace:
    """Emits the calls, if it is `on`. Levels are those of BMv2's log: D(ebug) and T(race)."""

    on: bool = False

    def step(self, code: Code, text: str, *, level: str = "D") -> None:
        """A fixed text."""
        if self.on:
            code.add(f"ss_trace(K, '{level}', \"%s\", {quoted(text)});")

    def number(self, code: Code, text: str, value: str) -> None:
        """`text`, and a C expression of an unsigned type."""
        if self.on:
            code.add(f"ss_trace(K, 'T', \"%s%llu\", {quoted(text)}, (unsigned long long)({value}));")

    def choice(self, code: Code, text: str, condition: str, yes: str, no: str, *, level: str = "T") -> None:
        """`text`, and which of two words a C condition gives."""
        if self.on:
            words = f"({condition}) ? {quoted(yes)} : {quoted(no)}"
            code.add(f"ss_trace(K, '{level}', \"%s%s\", {quoted(text)}, {words});")

    def select(self, code: Code, state: str, keys: Sequence[tuple[Val, int]]) -> None:
        """The key of a parser state's select: each field's bytes behind one another."""
        if not self.on:
            return
        if not keys:
            self.step(code, f"Parser state '{state}' has no switch, going to default next state")
            return
        with code.block():
            code.add('struct ss_text X = {0, ""};')
            for value, width in keys:
                code.add(f"ss_text_field(&X, {self._words(code, value)}, {width});")
            code.add(f"ss_trace(K, 'D', \"Parser state '%s': key is %s\", {quoted(state)}, X.text);")

    def assigned(self, ex: Expr, target: Node) -> None:
        """The value of a field that was just set."""
        if not self.on or target["type"] != "field":
            return
        _, field = ex.model.field(*target["value"])
        if field.varbit or field.name == "$valid$":
            return
        words = self._words(ex.code, ex.modulo(target, field.width))
        ex.code.add(f"ss_trace_value(K, {quoted('.'.join(target['value']))}, {words}, {field.width});")

    def lookup(
        self,
        code: Code,
        table: Node,
        widths: Sequence[int],
        fields: Sequence[KeyField],
        key: str,
        values: str,
    ) -> None:
        """Key, hit or miss, and the entry; `E` is the entry found, `T` the table. What is not in `fields`, the packed
        key, is a range, in order."""
        if not self.on:
            return
        packed = {f.name: f for f in fields}
        texts: list[str] = []
        ranges = 0
        for i, (k, width) in enumerate(zip(table["key"], widths, strict=True)):
            target = k["target"] if isinstance(k["target"], str) else ".".join(k["target"])
            name = quoted(k.get("name") or target)
            kind = KINDS.get(k["match_type"], "SS_KEY_EXACT")
            if str(i) in packed:
                f = packed[str(i)]
                texts.append(f"{{{name}, {kind}, {f.word}, {f.shift}, {f.width}}}")
            else:
                texts.append(f"{{{name}, {kind}, {ranges}, 0, {width}}}")
                ranges += 1
        with code.block():
            code.add(f"static const struct ss_key_text F[] = {{{', '.join(texts) or '{0}'}}};")
            call = f"K, {quoted(str(table['name']))}, T, E, F, {len(texts)}, {key}, {values}"
            code.add(f"ss_trace_lookup({call});")

    def action_entry(self, code: Code, action: Node, data: str) -> None:
        """The action that a table chose, with its parameters."""
        if self.on:
            widths = [str(p.width) for p in params_of(action)]
            array = f"(const uint32_t[]){{{', '.join(widths)}}}" if widths else "0"
            code.add(f"ss_trace_action(K, {quoted(str(action['name']))}, {data}, {array}, {len(widths)});")

    def _words(self, code: Code, value: Val) -> str:
        if value.wide:
            return value.code
        return f"(const uint64_t[]){{{value.as_type('uint64_t')}}}"
