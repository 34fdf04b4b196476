# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads manifests of compiled programs. A folder of compiled programs has one, `manifest.json`. It says what each
program can do, and of which sources and by which compiler it was made. Build, planners, controller and testbed read it
there, and nowhere else."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

MANIFEST = "manifest.json"
COMPILED = Path(__file__).resolve().parent / "compiled"
"""The programs that come with netfold."""

WIRE = 1
"""Version of the packets of the programs whose manifest does not name it."""

P4INFO_SUFFIX = ".p4info.txtpb"


class ManifestError(Exception):
    """A manifest is missing or wrong, or a program is not the one that it describes."""


class Form(StrEnum):
    """Form of the lanes of a program for v1model: for any target, or in words of 64 lanes, which BMv2 runs faster."""

    V1MODEL = "v1model"
    BMV2 = "bmv2"


class Program(BaseModel):
    """Abilities of a program.

    lanes     values of a packet, each of 32 bits
    children  most children of a node
    form      of its lanes; None: it is for a chip
    chip      name of the chip that it is compiled for; None: v1model
    floats    whether it adds float32, too
    roce      whether a leaf translates RoCE's packets
    quorum    whether a sum can be complete without all children
    targets   whether it takes short contributions, and cuts results
    wire      version of the packets that it takes
    timed     whether it marks by the time in a queue, and counts targeted packets by their form
    seeded    whether its choice among next hops has a seed of the switch
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    lanes: int = Field(gt=0)
    children: int = Field(gt=0)
    form: Form | None = None
    chip: str | None = None
    floats: bool = False
    roce: bool = False
    quorum: bool = False
    targets: bool = False
    wire: int = WIRE
    timed: bool = False
    seeded: bool = False

    def lacks(self, other: Program) -> list[str]:
        """The abilities of another program that this one does not have."""
        lost = [
            name
            for name in ("floats", "roce", "quorum", "targets", "timed")
            if getattr(other, name) > getattr(self, name)
        ]
        return [*lost, *([f"{other.children} children"] if other.children > self.children else [])]


class Manifest(BaseModel):
    """Programs by name, the compiler, its flags, and SHA-256 hashes of sources (by path from the repository's root) and
    of artifacts (by file name). Sources are empty where programs were compiled outside `compiled/`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    programs: dict[str, Program]
    compiler: str = ""
    flags: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    artifacts: dict[str, str] = {}

    def write(self, folder: Path) -> None:
        (folder / MANIFEST).write_text(self.model_dump_json(indent=2, exclude_defaults=True) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Raises ManifestError."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ManifestError(
            f"{path} cannot be read ({error.strerror}): it says what each program can do"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ManifestError(f"{path} is not a manifest: {where}: {first['msg']}") from error


@functools.cache
def own_programs() -> Mapping[str, Program]:
    """The programs that come with netfold, by name."""
    return read_manifest(COMPILED).programs


def program_of(p4info: Path) -> Program:
    """Return the program of a P4Info file, by the manifest in its folder. Raises ManifestError."""
    try:
        digest = sha256(p4info)
    except OSError as error:
        raise ManifestError(f"{p4info} cannot be read: {error.strerror}") from error
    return _program_of(p4info, digest)


@functools.lru_cache(maxsize=64)
def _program_of(p4info: Path, digest: str) -> Program:
    manifest, name = read_manifest(p4info.parent), p4info.name.removesuffix(P4INFO_SUFFIX)
    program = manifest.programs.get(name)
    if program is None:
        known = ", ".join(sorted(manifest.programs)) or "none"
        raise ManifestError(f"{p4info.parent / MANIFEST} has no program '{name}'; it has {known}")
    if manifest.artifacts.get(p4info.name) != digest:
        raise ManifestError(
            f"{p4info} is not the file that {MANIFEST} describes: compile it again (`make p4`, or "
            "`python -m netfold.p4src.tools.p4build --out FOLDER`), which renews both"
        )
    return program


def check_sources() -> None:
    """Check that netfold's programs for v1model are compiled from the present sources, as far as these are installed.
    Raises ManifestError, which names a source that has changed."""
    root = COMPILED.parents[1]
    recorded = read_manifest(COMPILED).sources
    changed = [name for name, digest in recorded.items() if _differs(root / name, digest)]
    if changed:
        more = f" and {len(changed) - 1} more have" if len(changed) > 1 else " has"
        raise ManifestError(
            f"{changed[0]}{more} changed since the programs in p4src/compiled were compiled. Compile them (`make p4`; "
            "`netfold doctor` names where p4c-bm2-ss is from), run a program of your own (`netfold controller run "
            "--p4info FILE --program FILE`), or undo the change"
        )


def _differs(source: Path, digest: str) -> bool:
    return source.is_file() and sha256(source) != digest


def _of_chip(chip: str | None) -> list[Program]:
    """The programs for a chip, or for v1model."""
    return [p for p in own_programs().values() if p.chip == chip and p.form is not Form.BMV2]


@functools.cache
def ordinary_program(chip: str | None, lanes: int) -> Program:
    """Netfold's program of `lanes` with the fewest children for a chip (None: v1model). If there is none, a program
    that has no ability but to add."""
    fitting = [program for program in _of_chip(chip) if program.lanes == lanes]
    nothing = Program(lanes=lanes, children=usual_children(chip), chip=chip)
    return min(fitting, key=lambda program: program.children, default=nothing)


def lanes_with(ability: Literal["floats", "roce", "quorum", "targets"]) -> list[int]:
    """The lane counts of netfold's programs for v1model that have an ability."""
    return sorted({program.lanes for program in _of_chip(None) if getattr(program, ability)})


@functools.cache
def usual_children(chip: str | None) -> int:
    """Most children of a node in netfold's ordinary programs for a chip (None: v1model)."""
    return min(program.children for program in _of_chip(chip))


@functools.cache
def most_children(chip: str | None) -> int:
    """Most children of a node in any of netfold's programs for a chip (None: v1model)."""
    return max(program.children for program in _of_chip(chip))


@functools.cache
def most_lanes(chip: str | None) -> int:
    """Most lanes of netfold's programs for a chip (None: v1model)."""
    return max(program.lanes for program in _of_chip(chip))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
