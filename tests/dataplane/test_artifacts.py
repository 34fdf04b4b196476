# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The committed artifacts belong to the committed sources."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from netfold.p4src.tools import p4build

COMPILED = p4build.REPOSITORY / p4build.COMPILED


def test_the_artifacts_are_not_stale():
    assert p4build.stale(COMPILED) == []


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of p4src where nothing but the build tool looks."""
    shutil.copytree(p4build.REPOSITORY / "p4src", tmp_path / "p4src")
    monkeypatch.setattr(p4build, "REPOSITORY", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda root: _append(root / "p4src/common/sizes.p4"), "source p4src/common/sizes.p4 has changed"),
        (lambda root: (root / "p4src/v1model/new.p4").write_text(""), "source p4src/v1model/new.p4 is new"),
        (lambda root: (root / "p4src/common/lanes.h").unlink(), "source p4src/common/lanes.h is missing"),
        (
            lambda root: _append(root / "p4src/compiled/netfold-v1model-64.json"),
            "artifact netfold-v1model-64.json has changed",
        ),
        (
            lambda root: (root / "p4src/compiled/netfold-v1model-32.p4info.txtpb").unlink(),
            "artifact netfold-v1model-32.p4info.txtpb is missing",
        ),
        (lambda root: (root / "p4src/compiled/manifest.json").unlink(), "manifest.json is missing"),
    ],
)
def test_every_change_is_noticed(copy: Path, change, said: str):
    change(copy)
    assert p4build.stale(copy / "p4src/compiled") == [said]


def test_a_broken_manifest_is_said_to_be_one(copy: Path):
    (copy / "p4src/compiled/manifest.json").write_text('{"compiler": 3}')
    assert "is not a manifest" in p4build.stale(copy / "p4src/compiled")[0]


@pytest.mark.parametrize("lanes", p4build.LANES)
def test_no_path_of_a_machine_is_in_the_artifacts(lanes: int):
    program = json.loads((COMPILED / f"netfold-v1model-{lanes}.json").read_text())
    names = set(re.findall(r'"filename": "([^"]*)"', json.dumps(program))) | {program["program"]}
    assert names
    assert not [
        name for name in names if Path(name).is_absolute() or not (p4build.REPOSITORY / name).is_file()
    ]


@pytest.mark.parametrize("lanes", p4build.LANES)
def test_the_program_has_one_register_for_each_lane_and_ids_that_do_not_depend_on_the_lanes(lanes: int):
    program = json.loads((COMPILED / f"netfold-v1model-{lanes}.json").read_text())
    sums = [
        array
        for array in program["register_arrays"]
        if ".lanes." in array["name"] or "lane_" in array["name"]
    ]
    assert len(sums) == lanes
    assert _ids(lanes) == _ids(p4build.LANES[0])


def _ids(lanes: int) -> dict[str, int]:
    """P4Runtime ids by name, of all that a controller writes or reads; 32 lanes have no RoCE."""
    text = (COMPILED / f"netfold-v1model-{lanes}.p4info.txtpb").read_text()
    found = re.findall(r'preamble \{\s+id: (\d+)\s+name: "([^"]+)"', text)
    return {name: int(number) for number, name in found if "lane_" not in name and ".transport_" not in name}


@pytest.mark.parametrize("lanes", p4build.LANES)
def test_a_slot_costs_what_the_readme_says(lanes: int):
    program = json.loads((COMPILED / f"netfold-v1model-{lanes}.json").read_text())
    size = sum(array["bitwidth"] for array in program["register_arrays"]) // 8
    assert size == 16 + 4 * lanes
    assert f"| {lanes} | {size:,} |" in (p4build.REPOSITORY / "p4src/README.md").read_text()


@pytest.mark.p4c
def test_compiling_again_gives_the_same_artifacts(tmp_path: Path):
    try:
        here = p4build.compiler_version()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
    committed = p4build.Manifest.model_validate_json((COMPILED / p4build.MANIFEST).read_bytes())
    if here != committed.compiler:
        pytest.skip(f"{here} is on PATH, the artifacts are of {committed.compiler}: bytes may differ")
    assert p4build.compile_all(tmp_path) == committed


def _append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")
