# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the v1model programs of the manifest (p4src/manifest.py) and renews its hashes.

`python -m netfold.p4src.tools.p4build` compiles into p4src/compiled (p4c-bm2-ss on PATH), or with `--out` into another
folder, which gets a manifest of its own. `--check` compares artifacts and sources without a compiler. A new program has
a source in p4src/programs and an entry in the manifest.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from netfold.p4src.manifest import (
    MANIFEST,
    P4INFO_SUFFIX,
    Form,
    Manifest,
    ManifestError,
    own_programs,
    read_manifest,
    sha256,
)
from netfold.protocol.constants import VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
COMPILED = Path("p4src/compiled")
SOURCE_DIRS = ("common", "programs", "quorum", "transport", "v1model")
PROGRAMS = Path("p4src/programs")
COMPILER = "p4c-bm2-ss"
FLAGS = ("--std", "p4-16", "-Werror", "--Wdisable=unsupported")
TIMEOUT_S = 300


TEXT_HEAD = """\
// SPDX-FileCopyrightText: 2026 The netfold authors
// SPDX-License-Identifier: Apache-2.0
// {source} with its includes and macros replaced, by `make p4`: for editors; nothing compiles it

"""

CHILDREN = 32
"""Children of a node without -DCHILDREN (p4src/common/sizes.p4)."""


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
    def key(self) -> str:
        """Name of the program in the manifest."""
        return f"netfold-{self.name}"

    @property
    def program(self) -> str:
        """Name of the compiled file."""
        return f"{self.key}.json"

    @property
    def p4info(self) -> str:
        """Name of its P4Info."""
        return f"{self.key}{P4INFO_SUFFIX}"

    @property
    def files(self) -> tuple[str, ...]:
        """Names of what is compiled: the program, its P4Info, and of one program its text without a preprocessor, for
        editors that have none."""
        return (self.program, self.p4info, *([f"{self.key}.p4"] if self == Profile(64) else []))


PROFILES = tuple(Profile(p.lanes, p.children, p.form) for p in own_programs().values() if p.form is not None)
LANES = tuple(p.lanes for p in PROFILES if p == Profile(p.lanes))
BMV2_LANES = tuple(p.lanes for p in PROFILES if p.form is Form.BMV2)


class P4BuildError(Exception):
    """The compiler is missing or failed."""


def compiler_version() -> str:
    """Raises P4BuildError without a compiler."""
    if shutil.which(COMPILER) is None:
        raise P4BuildError(
            f"{COMPILER} is not on PATH; install p4lang's p4c to compile the P4 program "
            "(docs/how-to/p4.md#get-the-compiler)"
        )
    text = run_compiler([COMPILER, "--version"])
    found = re.search(r"Version\s+(\S+)", text)
    if found is None:
        raise P4BuildError(f"{COMPILER} --version printed {text!r}: expected a version")
    return f"{COMPILER} {found[1]}"


def compile_all(target: Path, profiles: Sequence[Profile] = PROFILES) -> Manifest:
    """Compile every program, or these, into `target`, an existing folder. The manifest is written last, so that a
    failed build never leaves a manifest of wrong artifacts. Raises P4BuildError."""
    compiler = compiler_version()
    sources = source_hashes()
    artifacts: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as made:
        for profile in profiles:
            for path in compile_one(profile, Path(made)):
                shutil.copyfile(path, target / path.name)
                artifacts[path.name] = sha256(path)
    for name, program in own_programs().items():
        p4info = target / f"{name}{P4INFO_SUFFIX}"
        if program.chip is not None and p4info.is_file():  # tofino_golden.py makes it
            artifacts[p4info.name] = sha256(p4info)
    own = own_programs().items()
    programs = {
        n: p.model_copy(update={"wire": VERSION, "timed": p.form is not None})
        for n, p in own
        if f"{n}{P4INFO_SUFFIX}" in artifacts
    }
    manifest = Manifest(
        programs=programs, compiler=compiler, flags=FLAGS, sources=sources, artifacts=artifacts
    )
    manifest.write(target)
    return manifest


def compile_one(profile: Profile, target: Path, *flags: str) -> list[Path]:
    """Returns the files of `profile.files`. The compiler runs at the repository's root with a relative path, so that no
    path of a machine gets into the artifacts; the JSON is written without blanks, which halves it. `flags`: beside
    those of every program."""
    program, p4info, *texts = made = [target / name for name in profile.files]
    source = profile.source.as_posix()
    options = ["-o", str(program), "--p4runtime-files", str(p4info)]
    for text in texts:
        options += ["--pp", str(text)]
    run_compiler([COMPILER, *FLAGS, *flags, source, *options])
    compact = json.dumps(json.loads(program.read_text()), separators=(",", ":"))
    program.write_text(compact + "\n")
    for text in texts:
        text.write_text(TEXT_HEAD.format(source=source) + text.read_text())
    return made


def run_compiler(command: list[str], timeout_s: float = TIMEOUT_S) -> str:
    """Runs at the repository's root; returns standard output and error. Raises P4BuildError."""
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
    return {path.relative_to(REPOSITORY).as_posix(): sha256(path) for path in files}


def stale(compiled: Path) -> list[str]:
    """The faults of the artifacts in `compiled`, one sentence each; empty if they match the sources."""
    if not (compiled / MANIFEST).is_file():
        return [f"{MANIFEST} is missing"]
    try:
        manifest = read_manifest(compiled)
    except ManifestError as error:
        return [str(error)]
    wanted = {name for profile in PROFILES for name in profile.files}
    wanted |= {f"{name}{P4INFO_SUFFIX}" for name in manifest.programs}
    files = (path for path in compiled.glob("netfold-*") if not path.name.endswith(".resources.json"))
    here = {path.name: sha256(path) for path in files}
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
    out: Annotated[
        Path | None, typer.Option(help="Compile into this folder, and leave the committed artifacts alone.")
    ] = None,
    only: Annotated[
        str, typer.Option(help="With --out: one program, such as netfold-v1model-64; default: all.")
    ] = "",
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
    chosen = [profile for profile in PROFILES if only in ("", profile.key)]
    if not chosen or (only and out is None):
        names = ", ".join(profile.key for profile in PROFILES)
        typer.echo(f"--only {only}: expected --out FOLDER, and one of {names}", err=True)
        raise typer.Exit(2)
    try:
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        manifest = compile_all(out or compiled, chosen)
    except (P4BuildError, OSError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{len(manifest.artifacts)} artifacts of {manifest.compiler} in {out or COMPILED}")


if __name__ == "__main__":
    typer.run(main)
