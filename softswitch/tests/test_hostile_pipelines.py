# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A pushed program is refused with a reason, or runs and touches nothing but its own memory; and of its JSON only
checked names reach C."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from mutations import MARKER, base, hostile, mutated
from running import program
from softswitch.errors import PipelineError
from softswitch.state.pipeline import Pipeline
from softswitch.translate.program import translate
from test_core_fuzz import sanitized

HOSTILE = hostile()
FUZZ = Path(__file__).with_name("hostile_fuzz.py")


@pytest.mark.parametrize("tries", [name for name, (_, runs) in HOSTILE.items() if not runs])
def test_what_tries_to_do_harm_is_refused_before_a_compiler_sees_it(tries: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as refused:
        Pipeline.load(HOSTILE[tries][0], tmp_path)
    assert "gcc failed" not in str(refused.value)
    assert 10 < len(str(refused.value)) < 2000


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deep_json_is_refused(depth: int) -> None:
    deep = program("router").rstrip().removesuffix(b"}") + b', "x": ' + b"[" * depth + b"]" * depth + b"}"
    with pytest.raises(PipelineError, match="nested"):
        translate(deep)


def test_an_expression_that_doubles_with_each_level_is_translated_in_one_pass() -> None:
    tree = json.loads(program("router"))
    field = {"type": "field", "value": ["standard_metadata", "enq_timestamp"]}
    node = field
    for _ in range(40):
        minus = {"type": "expression", "value": {"op": "-", "left": node, "right": field}}
        width = {"type": "hexstr", "value": "0x20"}
        node = {"type": "expression", "value": {"op": "sat_cast", "left": minus, "right": width}}
    tree["actions"][1]["primitives"].append({"op": "assign", "parameters": [field, node]})
    assert translate(json.dumps(tree).encode()).source.count("ss_ssub32") <= 80


@pytest.mark.parametrize("traced", [False, True])
def test_no_text_of_the_json_reaches_c_but_checked_names(traced: bool) -> None:
    tree = base("kinds")
    marked = re.sub(
        r'("(?:filename|source_fragment|program)": )"[^"]*"',
        lambda m: m[1] + json.dumps(MARKER),
        json.dumps(tree),
    )
    source = translate(marked.encode(), traced=traced).source
    assert "Zq" in source if traced else "Zq" not in source
    for part in ("Zq*/", 'Zq*/ "', "\\\n", "Zq*/\n"):
        assert part not in source or (part == "Zq*/" and traced)
    assert not re.search(r"/\*[^\n]*[^A-Za-z0-9_ \n*/][^\n]*\*/", "\n".join(re.findall(r"/\*.*?\*/", source)))


@pytest.mark.slow
def test_mutations_are_refused_or_translated() -> None:
    rng = random.Random(1)
    bases = [base(name) for name in ("wire", "wire", "kinds", "copies", "parsing")]
    for _ in range(150):
        made = mutated(rng.choice(bases), rng)
        try:
            source = translate(made, traced=rng.random() < 0.3).source
        except PipelineError as error:
            assert len(str(error)) < 2000  # noqa: PT017 - both ends are right
            continue
        assert 'Zq*/ "\\' not in source


@pytest.mark.slow
def test_what_is_accepted_runs_within_its_memory_a_few(tmp_path: Path) -> None:
    sanitized(FUZZ, tmp_path, 1, 24)


@pytest.mark.slow
def test_the_committed_ones_run_within_their_memory(tmp_path: Path) -> None:
    assert "1 ran" in sanitized(FUZZ, tmp_path, 0, 0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_what_is_accepted_runs_within_its_memory(seed: int, tmp_path: Path) -> None:
    sanitized(FUZZ, tmp_path, seed, 400, deadline_s=3000)
