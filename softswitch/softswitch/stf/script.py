# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads STF files."""

from __future__ import annotations

import re
from dataclasses import dataclass


class StfError(Exception):
    """The file is not STF, or refers to objects that the program lacks; the message has the line."""


@dataclass(frozen=True)
class Packet:
    """Send `data` into `port`."""

    port: int
    data: bytes


@dataclass(frozen=True)
class Expect:
    """A packet out of `port`: hex digits with * for any; None = any packet. `exact` = no bytes behind."""

    port: int
    pattern: str | None
    exact: bool


@dataclass(frozen=True)
class Add:
    """A table entry. Values stay text: what they mean depends on the key's match kind."""

    table: str
    priority: int | None
    match: tuple[tuple[str, str], ...]
    action: str
    args: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SetDefault:
    table: str
    action: str
    args: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cli:
    """A command of simple_switch_CLI, word by word."""

    words: tuple[str, ...]


Statement = Packet | Expect | Add | SetDefault | Cli


@dataclass(frozen=True)
class Command:
    """A statement and its line."""

    line: int
    statement: Statement


_CALL = re.compile(r"(?P<name>[^()]+?)\s*\((?P<args>[^)]*)\)\s*(=.*)?$")
_IGNORED = ("wait", "no_packet", "remove", "check_counter")


def parse(text: str) -> list[Command]:
    """Raises StfError with the line."""
    out = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        word, _, rest = line.partition(" ")
        try:
            statement = _statement(word.lower(), rest.strip())
        except ValueError as e:
            raise StfError(f"line {number}: {e}") from e
        if statement is not None:
            out.append(Command(number, statement))
    return out


def _statement(word: str, rest: str) -> Statement | None:
    if word in _IGNORED:
        return None
    if word == "packet":
        port, _, data = rest.partition(" ")
        return Packet(int(port), bytes.fromhex("".join(data.split())))
    if word == "expect":
        port, _, data = rest.partition(" ")
        pattern = "".join(data.split()).upper()
        return Expect(int(port), pattern.rstrip("$") or None, pattern.endswith("$"))
    if word == "add":
        return _add(rest)
    if word == "setdefault":
        table, _, call = rest.partition(" ")
        return SetDefault(table, *_call(call))
    if word.startswith(("mirroring_", "mc_", "counter_", "register_", "meter_")):
        return Cli((word, *rest.replace("\t", " ").split()))
    raise ValueError(f"unknown statement {word!r}")


def _call(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    m = _CALL.match(text.strip())
    if m is None:
        raise ValueError(f"an action with its arguments is wanted, not {text!r}")
    args = [a.split(":", 1) for a in m["args"].split(",") if a.strip()]
    return m["name"].strip().strip('"'), tuple((k.strip(), v.strip()) for k, v in args)


def _add(rest: str) -> Add:
    rest = re.sub(r"\s*:\s*", ":", rest)
    head, _, call = rest.partition("(")
    *front, name = head.split()
    action, args = _call(f"{name}({call}")
    table, *fields = front
    priority = int(fields.pop(0)) if fields and fields[0].isdigit() else None
    match = []
    for f in fields:
        key, _, value = f.partition(":")
        match.append((key.strip('"'), value))
    return Add(table.strip('"'), priority, tuple(match), action, args)
