# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the v1model programs (p4src/programs) into p4src/compiled, with a manifest of their sources.
`python -m netfold.p4src.tools.p4build` compiles (p4c-bm2-ss on PATH); `--check` compares artifacts and
sources without a compiler.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

REPOSITORY = Path(__file__).resolve().parents[2]
COMPILED = Path("p4src/compiled")
MANIFEST = "manifest.json"
SOURCE_DIRS = ("common", "programs", "quorum", "transport", "v1model")
PROGRAMS = Path("p4src/programs")
COMPILER = "p4c-bm2-ss"
FLAGS = ("--std", "p4-16", "-Werror", "--Wdisable=unsupported")
TIMEOUT_S = 300


CHILDREN = 32
"""Children of a node without -DCHILDREN (p4src/common/sizes.p4)."""


class Form(StrEnum):
    """Form of a program's lanes: for any target of v1model, or words of 64 lanes, for BMv2."""

    V1MODEL = "v1model"
    BMV2 = "bmv2"


@dataclass(frozen=True)
class Profile:
    """Differences of v1model programs: `lanes` of a packet, `children` that a node takes at most, and `form`."""

    lanes: int
    children: int = CHILDREN
    form: Form = Form.V1MODEL

    @property
    def name(self) -> str:
        """The program of an ordinary bitmap is named by its form and lanes alone."""
        wide = f"-children-{self.children}" if self.children != CHILDREN else ""
        return f"{self.form}-{self.lanes}{wide}"

    @property
    def source(self) -> Path:
        """From the repository's root."""
        return PROGRAMS / (self.name.replace("-", "_") + ".p4")

    @property
    def program(self) -> str:
        """Name of the compiled file."""
        return f"netfold-{self.name}.json"

    @property
    def p4info(self) -> str:
        """Name of its P4Info."""
        return f"netfold-{self.name}.p4info.txtpb"


LANES = (32, 64, 256, 512)
BMV2_LANES = (32, 256, 512)
PROFILES = (
    *(Profile(lanes) for lanes in LANES),
    Profile(64, 64),
    Profile(64, 256),
    *(Profile(lanes, form=Form.BMV2) for lanes in BMV2_LANES),
)


class P4BuildError(Exception):
    """The compiler is missing or failed."""


class Manifest(BaseModel):
    """The compiler, its flags, and SHA-256 hashes of sources (by path from the repository's root) and artifacts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    compiler: str
    flags: tuple[str, ...]
    sources: dict[str, str]
    artifacts: dict[str, str]


def compiler_version() -> str:
    """Raises BuildError without a compiler."""
    if shutil.which(COMPILER) is None:
        raise P4BuildError(f"{COMPILER} is not on PATH; install p4lang's p4c to compile the P4 program")
    text = run_compiler([COMPILER, "--version"])
    found = re.search(r"Version\s+(\S+)", text)
    if found is None:
        raise P4BuildError(f"{COMPILER} --version printed {text!r}: expected a version")
    return f"{COMPILER} {found[1]}"


def compile_all(target: Path) -> Manifest:
    """Compiles every program into `target`, an existing folder. The manifest is written last: a failed build never
    leaves a manifest of wrong artifacts. Raises BuildError."""
    compiler = compiler_version()
    sources = source_hashes()
    artifacts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as made:
        for profile in PROFILES:
            for path in compile_one(profile, Path(made)):
                shutil.copyfile(path, target / path.name)
                artifacts[path.name] = _sha256(path)
    manifest = Manifest(compiler=compiler, flags=FLAGS, sources=sources, artifacts=artifacts)
    (target / MANIFEST).write_text(json.dumps(manifest.model_dump(), indent=2) + "\n")
    return manifest


def compile_one(profile: Profile, target: Path, *flags: str) -> tuple[Path, Path]:
    """The compiler runs at the repository's root with a relative path, so that no path of a machine gets into the
    artifacts; the JSON is written without blanks, which halves it. `flags`: beside those of every program."""
    program, p4info = target / profile.program, target / profile.p4info
    source = profile.source.as_posix()
    run_compiler([COMPILER, *FLAGS, *flags, source, "-o", str(program), "--p4runtime-files", str(p4info)])
    compact = json.dumps(json.loads(program.read_text()), separators=(",", ":"))
    program.write_text(compact + "\n")
    return program, p4info


def run_compiler(command: list[str], timeout_s: float = TIMEOUT_S) -> str:
    """Runs at the repository's root; returns standard output and error. Raises BuildError."""
    try:
        done = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=timeout_s
        )
    except subprocess.CalledProcessError as error:
        raise P4BuildError(f"{' '.join(command)} failed:\n{error.stderr}{error.stdout}") from error
    except subprocess.TimeoutExpired as error:
        raise P4BuildError(f"{' '.join(command)} took more than {timeout_s:g} s") from error
    return done.stdout + done.stderr


def source_hashes() -> dict[str, str]:
    return hashes(SOURCE_DIRS)


def hashes(folders: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the P4 sources below folders of p4src, by path from the repository's root."""
    root = REPOSITORY / "p4src"
    files = sorted(path for name in folders for path in (root / name).rglob("*.[ph]*"))
    return {path.relative_to(REPOSITORY).as_posix(): _sha256(path) for path in files}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stale(compiled: Path) -> list[str]:
    """The faults of the artifacts in `compiled`, one sentence each; empty if they match the sources."""
    path = compiled / MANIFEST
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return [f"{MANIFEST} is missing"]
    except ValidationError as error:
        return [f"{MANIFEST} is not a manifest: {error}"]
    wanted = {name for profile in PROFILES for name in (profile.program, profile.p4info)}
    here = {path.name: _sha256(path) for path in compiled.glob("netfold-*-*")}
    return [
        *_differences("source", source_hashes(), manifest.sources),
        *_differences("artifact", here, manifest.artifacts),
        *(f"artifact {name} is not in the manifest" for name in sorted(wanted - manifest.artifacts.keys())),
        *(["the flags have changed"] if manifest.flags != FLAGS else []),
    ]


def _differences(what: str, here: dict[str, str], recorded: dict[str, str]) -> list[str]:
    new = [(name, "is new") for name in here.keys() - recorded.keys()]
    missing = [(name, "is missing") for name in recorded.keys() - here.keys()]
    both = [name for name in here.keys() & recorded.keys() if here[name] != recorded[name]]
    changed = [(name, "has changed") for name in both]
    return [f"{what} {name} {how}" for name, how in sorted([*new, *missing, *changed])]


def main(
    check: Annotated[
        bool, typer.Option("--check", help="Compare artifacts and sources without compiling.")
    ] = False,
) -> None:
    """Compile the P4 programs, or check that the committed artifacts belong to the sources."""
    compiled = REPOSITORY / COMPILED
    if check:
        problems = stale(compiled)
        for problem in problems:
            typer.echo(problem, err=True)
        if problems:
            typer.echo("run `make p4` where p4c-bm2-ss is on PATH", err=True)
            raise typer.Exit(1)
        typer.echo("the artifacts belong to the sources")
        return
    try:
        manifest = compile_all(compiled)
    except P4BuildError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{len(manifest.artifacts)} artifacts of {manifest.compiler} in {COMPILED}")


if __name__ == "__main__":
    typer.run(main)
