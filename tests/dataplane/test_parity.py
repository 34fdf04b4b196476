# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One controller drives all targets: the P4Info of the Tofino programs says the same as v1model's of every table, key,
action and parameter, by name, kind and width. And what is committed of them belongs to the sources: where it does not,
as the compiler was not there when they changed, a chip's tests are skipped and say so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import finsy as fy
import pytest

from netfold.controller.switches.entries import Codec, Entity
from netfold.p4src.manifest import Manifest
from netfold.p4src.tools import p4build, tofino_golden
from netfold.p4src.tools.tofino import CHIPS, Build, build, find_tools
from netfold.p4src.tools.tofino_golden import (
    SOURCE_DIRS,
    outdated,
    p4info_path,
    renew,
    report,
    report_path,
)
from tests.dataplane.fixtures import SETTINGS, inner, root

REFERENCE = p4build.REPOSITORY / p4build.COMPILED / "netfold-v1model-64-children-64.p4info.txtpb"
STAGES = {"tofino": 12, "tofino2": 20}
EACH_CHIP = [
    pytest.param(name, marks=pytest.mark.skipif(outdated(name) is not None, reason=outdated(name) or ""))
    for name in CHIPS
]


def tables(schema: fy.P4Schema) -> dict[str, object]:
    """Return the keys and actions of each table as a controller sees them. Sizes are the target's own, and ids
    of parameters are the compiler's. RoCE, quorums and targets are v1model's alone, and Tofino 2 has no seeds."""
    aliases = ("quorums", "owners", "hash_seeds")
    own = {t.name for t in schema.tables if ".transport_" in t.name or t.alias in aliases}
    return {table.name: _table(table) for table in schema.tables if table.name not in own}


def _table(table: fy.P4Table) -> object:
    fields = [(f.alias, f.match_type, f.bitwidth) for f in table.match_fields if f.alias != "seal"]
    actions = {
        a.name: (a.scope, [(p.name, p.bitwidth) for p in a.params])
        for a in table.actions
        if a.alias not in ("send_late", "send_slot_reused")
    }
    default = None if table.const_default_action is None else table.const_default_action.alias
    profile = None if table.action_profile is None else table.action_profile.alias
    return fields, actions, default, profile, table.is_const


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_tables_keys_actions_and_parameters_agree(chip: str):
    assert tables(fy.P4Schema(p4info_path(chip))) == tables(fy.P4Schema(REFERENCE))


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_ids_agree(chip: str):
    """A client that has written numbers of tables and actions for one target writes them for each. p4c's Tofino part
    does not see the ids of counters and action profiles."""

    def ids(path: Path) -> dict[str, int]:
        info = fy.P4Schema(path).p4info
        return {each.preamble.name: each.preamble.id for kind in (info.tables, info.actions) for each in kind}

    reference = ids(REFERENCE)
    assert {name: reference[name] for name in ids(p4info_path(chip))} == ids(p4info_path(chip))


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_packet_headers_of_the_controller_agree(chip: str):
    def headers(path: Path) -> dict[str, list[tuple[str, int]]]:
        metadata = fy.P4Schema(path).p4info.controller_packet_metadata
        return {m.preamble.name: [(f.name, f.bitwidth) for f in m.metadata] for m in metadata}

    assert headers(p4info_path(chip)) == headers(REFERENCE)


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_the_verdict_counter_agrees(chip: str):
    def counters(path: Path) -> dict[str, int]:
        return {c.preamble.alias: c.spec.unit for c in fy.P4Schema(path).p4info.counters}

    reference = counters(REFERENCE)
    del reference["targeted_tx"]  # a chip's program takes no targeted packets
    assert counters(p4info_path(chip)) == reference


def entities() -> Iterator[Entity]:
    for setting in (*SETTINGS, root(2), inner(2)):
        yield from setting.entities()


@pytest.mark.parametrize("program", [pytest.param("v1model-64"), *EACH_CHIP])
def test_what_the_controller_writes_is_read_back(program: str):
    """finsy makes addresses of the values that have `@format`."""
    schema = fy.P4Schema(p4info_path(program))
    codec = Codec(schema)
    for entity in entities():
        written = codec.encode(entity).encode(schema)
        assert codec.decode(fy.p4entity.decode_entity(written, schema)) == entity


@pytest.mark.parametrize("chip", EACH_CHIP)
def test_the_report_is_of_these_sources_and_the_program_fits(chip: str):
    found = json.loads(report_path(chip).read_text())
    assert found["sources"] == p4build.hashes(SOURCE_DIRS)
    assert found["stages"] <= STAGES[chip] == found["stages_of_the_chip"]


def compiled_at(date: str, seconds: float, folder: Path) -> Build:
    """Returns the files that a compilation of a program with one table leaves, as far as a report is made of them."""
    stage: dict[str, Any] = {
        "stage_number": 0,
        "logical_tables": {"ids": [{"id": 0}]},
        "rams": {"srams": []},
        "map_rams": {"maprams": []},
        "tcams": {"tcams": []},
        "meter_alus": {"meters": []},
        "statistic_alus": {"stats": []},
        "gateways": {"gateways": []},
    }
    container = {"gress": "ingress", "container_type": "normal", "bit_width": 8, "slices": [{}]}
    run = {"build_date": date, "run_id": date, "compile_seconds": seconds}
    logs = folder / "logs"
    logs.mkdir(parents=True)
    tables = ("hash_action digest_flow ", "hash_action digest_flow_again ", "selection ipv4_routes$selector.")
    (folder / "netfold.bfa").write_text("".join(f"  {table}0:\n    seed: 0x0\n" for table in tables))
    resources = run | {"resources": {"mau": {"nStages": 1, "mau_stages": [stage]}}}
    (logs / "resources.json").write_text(json.dumps(resources))
    (logs / "phv.json").write_text(json.dumps(run | {"containers": [container]}))
    p4info = folder / "p4info.txtpb"
    p4info.write_text('pkg_info { arch: "tna" }\n')
    other = folder / "other"
    return Build(p4info, other, folder / "context.json", other, other, other, seconds)


def test_what_is_committed_depends_on_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Otherwise every `make p4-tofino` changes the tree."""
    chip = CHIPS["tofino"]
    committed = json.loads(report_path(chip.name).read_text())
    files = [tmp_path / "p4info.txtpb", tmp_path / "resources.json"]
    monkeypatch.setattr(tofino_golden, "p4info_path", lambda name: files[0])
    monkeypatch.setattr(tofino_golden, "report_path", lambda name: files[1])
    Manifest(programs={}).write(tmp_path)
    files.append(tmp_path / "manifest.json")
    written = []
    for date, seconds in (("2026-11-01", 61.5), ("2026-11-02", 74.25)):
        found = renew(chip, compiled_at(date, seconds, tmp_path / date))
        assert found.keys() == committed.keys()
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]


@pytest.mark.long
@pytest.mark.p4c
@pytest.mark.parametrize("chip", EACH_CHIP)
def test_compiling_again_gives_the_same_p4info_and_report(chip: str, tmp_path: Path):
    try:
        find_tools()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
    made = build(CHIPS[chip], tmp_path / "out")
    assert made.p4info.read_text() == p4info_path(chip).read_text()
    committed = json.loads(report_path(chip).read_text())
    assert report(CHIPS[chip], made) == committed
