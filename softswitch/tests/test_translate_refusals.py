# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs are refused with a reason, and a push that fails leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import program
from softswitch.errors import PipelineError, UnsupportedConstructError
from softswitch.state.pipeline import Pipeline
from softswitch.translate.program import translate

WHERE = {"filename": "prog.p4", "line": 17, "source_fragment": "x"}


def changed(name: str, **parts: Any) -> bytes:
    return json.dumps({**json.loads(program(name)), **parts}).encode()


def with_primitive(op: str, parameters: list[Any]) -> bytes:
    tree = json.loads(program("router"))
    tree["actions"][1]["primitives"].append({"op": op, "parameters": parameters, "source_info": WHERE})
    return json.dumps(tree).encode()


def test_an_unknown_primitive_is_named_with_its_line() -> None:
    with pytest.raises(UnsupportedConstructError) as e:
        translate(with_primitive("frobnicate", []))
    assert (e.value.construct, e.value.source_file, e.value.line) == ("primitive frobnicate", "prog.p4", 17)


def test_an_extern_is_refused() -> None:
    extern = {"name": "x", "id": 0, "type": "Mystery", "source_info": WHERE}
    with pytest.raises(UnsupportedConstructError, match=r"extern Mystery at prog\.p4:17"):
        translate(changed("router", extern_instances=[extern]))


def test_a_hash_that_is_not_ours_is_refused() -> None:
    tree = json.loads(program("router"))
    tree["calculations"][0]["algo"] = "xxh64"
    with pytest.raises(UnsupportedConstructError, match="hash algorithm xxh64"):
        translate(json.dumps(tree).encode())


def test_tables_that_name_their_actions_are_taken_as_those_with_ids() -> None:
    """Older compilers write no action_ids."""
    tree = json.loads(program("misc"))
    expected = translate(json.dumps(tree).encode()).source
    tables = [t for p in tree["pipelines"] for t in p["tables"]]
    for table in tables:
        del table["action_ids"]
    assert translate(json.dumps(tree).encode()).source == expected
    tables[0]["actions"][0] = "nowhere"
    with pytest.raises(PipelineError, match="no single action 'nowhere'"):
        translate(json.dumps(tree).encode())
    del tables[0]["actions"]
    with pytest.raises(PipelineError, match="has neither action_ids nor actions"):
        translate(json.dumps(tree).encode())


def test_a_match_kind_that_is_not_ours_is_refused() -> None:
    tree = json.loads(program("router"))
    table = next(t for p in tree["pipelines"] for t in p["tables"] if t["key"])
    table["key"][0]["match_type"] = "fuzzy"
    with pytest.raises(UnsupportedConstructError, match="match kind fuzzy"):
        translate(json.dumps(tree).encode())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not the output of p4c-bm2-ss"),
        (b"{}", "not the output of p4c-bm2-ss"),
        (b'{"pipelines": [], "header_types": [{}]}', "malformed BMv2 JSON"),
        (b'{"pipelines": [], "header_types": [], "__meta__": {"version": [3, 0]}}', "major version 3"),
    ],
)
def test_what_is_no_program_is_said_so(data: bytes, says: str) -> None:
    with pytest.raises(PipelineError, match=says):
        translate(data)


def test_a_stack_of_unlike_headers_is_refused() -> None:
    """An index chosen at run time would otherwise reach beyond them."""
    tree = json.loads(program("validity"))
    ids = tree["header_stacks"][0]["header_ids"]
    ids[1] = next(h["id"] for h in tree["headers"] if h["name"] == "cmd")
    with pytest.raises(PipelineError, match="not of one type"):
        translate(json.dumps(tree).encode())


def test_text_where_a_number_belongs_does_not_become_c() -> None:
    tree = json.loads(program("state"))
    for kind in ("counter_arrays", "register_arrays"):
        tree[kind][0]["size"] = (
            '16}; int system(const char *); __attribute__((constructor)) void f(void) { system("x"); } //'
        )
        with pytest.raises(PipelineError):
            translate(json.dumps(tree).encode())


def test_a_name_that_is_not_declared() -> None:
    with pytest.raises(PipelineError, match="header 'nowhere'"):
        translate(with_primitive("add_header", [{"type": "header", "value": "nowhere"}]))


def test_a_refused_push_leaves_the_cache_empty(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedConstructError):
        Pipeline.load(with_primitive("frobnicate", []), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@settings(max_examples=150, deadline=None, print_blob=True)
@given(st.data())
def test_damaged_json_is_an_error_of_ours(data: st.DataObject) -> None:
    """A value anywhere replaced by another: translated, refused or malformed, and never another exception."""
    tree = json.loads(program("tables"))
    node: Any = tree
    for _ in range(data.draw(st.integers(1, 9))):
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        child = node[key]
        if not isinstance(child, dict | list) or not child or (data.draw(st.booleans()) and node is not tree):
            node[key] = data.draw(st.sampled_from([None, 0, -1, "x", [], {}, "0x", 10**9, True]))
            break
        node = child
    with contextlib.suppress(PipelineError):
        translate(json.dumps(tree).encode())
