# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSONs that are wrong in one or a few places: what a hostile or broken controller might push."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

from running import program

HERE = Path(__file__).parent
MARKER = "Zq*/ \"\\\n;{}#'?"
"""Stands where a text may stand; no part of it that ends a comment, a string or a line may be found in C."""
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 8, 9, 63, 64, 65, 4096, 16384, 16385, 65535, 1 << 24, (1 << 31) - 1, 1 << 40,
    1.5, "", "0x", "0x0", "-0x1", "0x" + "f" * 5000, "*", MARKER, "$valid$", "ingress", "standard_metadata", [], {},
)  # fmt: skip


def base(name: str) -> Any:
    """A well-formed program, of the tests."""
    return json.loads(program(name))


def hostile() -> dict[str, tuple[bytes, bool]]:
    """The committed ones, by what each tries: a program of the tests, and values put into it (by JSON pointer; "-"
    appends). Those that are true run, and harm no process; the others are refused."""
    made = {}
    for case in json.loads((HERE / "hostile_pipelines.json").read_text()):
        tree = base(case["program"])
        for pointer, value in case["set"].items():
            put(tree, pointer, value)
        made[case["tries"]] = json.dumps(tree).encode(), case.get("runs", False)
    return made


def put(tree: Any, pointer: str, value: Any) -> None:
    *way, last = pointer.strip("/").split("/")
    for step in way:
        tree = tree[int(step) if isinstance(tree, list) else step]
    if last == "-":
        tree.append(value)
    else:
        tree[int(last) if isinstance(tree, list) else last] = value


def mutated(tree: Any, rng: random.Random) -> bytes:
    """The program with one to three changes that mind its structure: other values, or those of another place; parts
    that are doubled or dropped; numbers that are one off; expressions put into one another."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _change(tree, rng)
    return json.dumps(tree).encode()


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            if key == "source_info":
                continue
            found.append((node, key))
            if isinstance(node[key], dict | list):
                todo.append(node[key])
    return found


def _change(tree: Any, rng: random.Random) -> None:
    places = _places(tree)
    node, key = rng.choice(places)
    old = node[key]
    kind = rng.randrange(7)
    if kind == 0:
        node[key] = copy.deepcopy(rng.choice(VALUES))
    elif kind == 1:  # of the same kind, from elsewhere
        others = [n[k] for n, k in places if type(n[k]) is type(old)]
        node[key] = copy.deepcopy(rng.choice(others))
    elif kind == 2 and isinstance(node, list):
        node.append(copy.deepcopy(old))
    elif (kind == 3 and isinstance(node, list)) or kind == 3:
        del node[key]
    elif kind == 4 and type(old) is int:
        node[key] = old + rng.choice((-1, 1, 8, 1000))
    elif kind == 5 and isinstance(old, dict) and "type" in old and "value" in old:
        node[key] = {
            "type": "expression",
            "value": {"op": rng.choice("+-*&|^"), "left": copy.deepcopy(old), "right": old},
        }
    else:
        node[key] = copy.deepcopy(rng.choice(VALUES))
