# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The committed artifacts belong to the committed sources."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from netfold.controller.switches.programs import program_for
from netfold.p4src import manifest
from netfold.p4src.manifest import Form, read_manifest
from netfold.p4src.tools import p4build
from netfold.testbed.errors import RunError
from netfold.testbed.testbed import Testbed
from netfold.topologies.fabric import FabricError

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


def test_a_program_of_other_sources_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(manifest, "COMPILED", copy / "p4src/compiled")
    manifest.check_sources()
    _append(copy / "p4src/common/sizes.p4")
    with pytest.raises(manifest.ManifestError, match=r"^p4src/common/sizes.p4 has changed since"):
        manifest.check_sources()
    with pytest.raises(FabricError, match=r"^p4src/common/sizes.p4 has changed since"):
        program_for([], 64)
    with (
        pytest.raises(RunError, match=r"^p4src/common/sizes.p4 has changed since"),
        Testbed("single"),
    ):
        pass
    shutil.rmtree(copy / "p4src/common")
    shutil.rmtree(copy / "p4src/v1model")
    manifest.check_sources()  # as in a wheel, which has no sources


def test_one_program_alone_needs_a_folder_of_its_own(tmp_path: Path):
    run = CliRunner().invoke
    app = typer.Typer()
    app.command()(p4build.main)
    for arguments in (["--only", "netfold-v1model-64"], ["--only", "v1model-64", "--out", str(tmp_path)]):
        found = run(app, arguments)
        assert (found.exit_code, "one of netfold-" in found.output) == (2, True)


@pytest.fixture(params=p4build.PROFILES, ids=lambda profile: profile.name)
def profile(request: pytest.FixtureRequest) -> p4build.Profile:
    return request.param


def test_no_path_of_a_machine_is_in_the_artifacts(profile: p4build.Profile):
    program = json.loads((COMPILED / profile.program).read_text())
    names = set(re.findall(r'"filename": "([^"]*)"', json.dumps(program))) | {program["program"]}
    assert names
    assert not [
        name for name in names if Path(name).is_absolute() or not (p4build.REPOSITORY / name).is_file()
    ]


def test_the_program_has_registers_for_all_lanes_and_ids_that_no_profile_changes(profile: p4build.Profile):
    program = json.loads((COMPILED / profile.program).read_text())
    sums = [
        array["bitwidth"]
        for array in program["register_arrays"]
        if re.search(r"\.lanes?_\w+$", array["name"])
    ]
    width = min(2048, 32 * profile.lanes) if profile.form is Form.BMV2 else 32
    assert sums == [width] * (32 * profile.lanes // width)
    assert _ids(profile) == _ids(p4build.PROFILES[0])


def _ids(profile: p4build.Profile) -> dict[str, int]:
    """P4Runtime ids by name, of all that a controller writes or reads; 32 lanes have no RoCE."""
    text = (COMPILED / profile.p4info).read_text()
    found = re.findall(r'preamble \{\s+id: (\d+)\s+name: "([^"]+)"', text)
    own = (".lanes.", ".transport_")
    return {name: int(number) for number, name in found if not any(part in name for part in own)}


def test_a_slot_costs_what_the_readme_says(profile: p4build.Profile):
    program = json.loads((COMPILED / profile.program).read_text())
    bits = sum(array["bitwidth"] for array in program["register_arrays"])
    assert bits == 64 + 2 * profile.children + 32 * profile.lanes + (profile.form is Form.BMV2)
    assert features()[profile.key][-2] == f"{bits // 8:,}"


def test_one_table_has_the_features_of_all_programs():
    def cells(program: manifest.Program) -> list[str]:
        able = (program.floats, program.roce, program.quorum, program.targets)
        return [str(program.lanes), str(program.children), *("yes" if is_able else "" for is_able in able)]

    told = {name: row[:-2] for name, row in features().items()}
    assert told == {name: cells(program) for name, program in manifest.own_programs().items()}


def features() -> dict[str, list[str]]:
    """The rows of the README's table by the key of the program."""
    text = (p4build.REPOSITORY / "p4src/README.md").read_text()
    (body,) = re.findall(r"^\| program \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = ([cell.strip() for cell in row.strip("|").split("|")] for row in body.splitlines())
    return {f"netfold-{name}": cells for name, *cells in rows}


def test_each_bitmap_has_the_bits_of_its_profile(profile: p4build.Profile):
    program = json.loads((COMPILED / profile.program).read_text())
    arrays = [array for array in program["register_arrays"] if array["name"].endswith("bitmaps")]
    arrays += [array for array in program["register_arrays"] if array["name"].endswith("quorum_bitmap")]
    assert [array["bitwidth"] for array in arrays] == [profile.children] * 2


def test_the_sizes_of_the_sources_are_those_of_the_ordinary_profile():
    sizes = (p4build.REPOSITORY / "p4src/common/sizes.p4").read_text()
    assert f"#define CHILDREN {p4build.CHILDREN} " in sizes


@pytest.mark.p4c
def test_compiling_again_gives_the_same_artifacts(profile: p4build.Profile, tmp_path: Path):
    try:
        here = p4build.compiler_version()
    except p4build.P4BuildError as missing:
        pytest.skip(str(missing))
    committed = read_manifest(COMPILED)
    if here != committed.compiler:
        pytest.skip(f"{here} is on PATH, the artifacts are of {committed.compiler}: bytes may differ")
    made = {
        path.name: sha256(path.read_bytes()).hexdigest() for path in p4build.compile_one(profile, tmp_path)
    }
    assert made == {name: committed.artifacts[name] for name in made}


def _append(path: Path) -> None:
    path.write_text(path.read_text() + "\n")
