# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All C that is compiled on a user's machine compiles without a warning against the headers of each release that README
names: this machine's, and those that its distribution's packages have for other releases. Packages are downloaded by
the machine's apt and unpacked, not installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from softswitch.build import native
from softswitch.translate.program import translate

from netfold.simulator import recipe as simulator
from netfold.traffic.engine import recipe as engine
from netfold.traffic.mpi import recipe as mpi
from netfold.traffic.roce import recipe as roce
from tests.house.imports import REPOSITORY

RELEASES = {"Debian": ("bookworm", "trixie", "forky"), "Ubuntu": ("noble", "resolute")}
"""By distribution. Debian's next release has headers that are newer than those of Ubuntu's last one."""
COMPONENTS = {"Debian": "main", "Ubuntu": "main universe"}
PACKAGES = ("libc6-dev", "linux-libc-dev", "libibverbs-dev", "libopenmpi-dev")
APT_SECONDS, COMPILER_SECONDS = 600, 300
STRICT = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror")
COMPILERS = ("gcc", "clang")
_SOFTSWITCH = native.CORE.parent
_PROGRAM = "netfold-v1model-32.json"


@dataclass(frozen=True)
class Part:
    """C files that are compiled alike."""

    flags: tuple[str, ...]
    files: tuple[Path, ...]


def _simulator(level: str) -> Part:
    names = simulator.files(engine.CORE, engine.HEADERS)[level]
    files = tuple(REPOSITORY / n for n in names if n.endswith(".c"))
    return Part((*engine.FLAGS, *_without_libraries(simulator.OPTIONS[level])), files)


def _without_libraries(flags: Sequence[str]) -> tuple[str, ...]:
    return tuple(f for f in flags if not f.startswith(("-l", "-Wl,")) and f != "-shared")


def _c_of(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.c")))


PARTS = {
    "softswitch": Part(
        (*_without_libraries(native.BASE_FLAGS), f"-I{native.RUNTIME}"),
        (*_c_of(native.CORE), *_c_of(_SOFTSWITCH / "engine")),
    ),
    "engine": Part(engine.FLAGS, tuple(engine.FOLDER / n for n in engine.SOURCES)),
    "flow level": _simulator("flow"),
    "packet level": _simulator("packet"),
    "MPI": Part(_without_libraries(mpi.FLAGS), mpi.SOURCES),
    "RoCE": Part(roce.FLAGS, tuple(roce.HERE / n for n in (*roce.SOURCES, roce.PROGRAM))),
}


def _compile(compiler: str, part: Part, headers: Sequence[str]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"SKIPPED: {compiler} is not installed")
    command = [compiler, *STRICT, *part.flags, *headers, *map(str, part.files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILER_SECONDS)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Part:
    """The C of a program."""
    path = tmp_path_factory.mktemp("translated") / "program.c"
    path.write_text(translate((REPOSITORY / "p4src/compiled" / _PROGRAM).read_bytes(), traced=True).source)
    return Part(PARTS["softswitch"].flags, (path,))


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", ["softswitch", "engine", "flow level", "packet level"])
def test_c_compiles_with_the_headers_of_this_machine(name: str, compiler: str):
    _compile(compiler, PARTS[name], ())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_translated_program_compiles_with_the_headers_of_this_machine(translated: Part, compiler: str):
    _compile(compiler, translated, ())


# ---- other releases ----


@dataclass(frozen=True)
class Repository:
    """Where this machine's apt has its distribution's packages from."""

    distribution: str
    uri: str


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=APT_SECONDS
    )
    if done.returncode != 0:
        lines = (done.stderr.strip() or "no output").splitlines()
        pytest.skip(f"SKIPPED: {command[0]} {command[-1]}: {lines[-1]}")
    return done.stdout


@pytest.fixture(scope="module")
def repository() -> Repository:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("SKIPPED: this machine has no apt")
    form = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    for line in _run(
        ["apt-get", "indextargets", "--format", form, "Created-By: Packages"], Path("/")
    ).splitlines():
        origin, label, uri = line.split("|")
        if origin in RELEASES and label == origin:
            return Repository(origin, uri)
    pytest.skip(f"SKIPPED: no packages of {' or '.join(RELEASES)} in apt's lists (try apt-get update)")


@pytest.fixture(scope="module", params=sorted({r for releases in RELEASES.values() for r in releases}))
def root(
    request: pytest.FixtureRequest, repository: Repository, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The unpacked packages of a release, from an apt that has lists of its own."""
    if request.param not in RELEASES[repository.distribution]:
        pytest.skip(f"SKIPPED: {request.param} is not {repository.distribution}'s")
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "lists/partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    source = f"deb {repository.uri} {request.param} {COMPONENTS[repository.distribution]}\n"
    (folder / "sources.list").write_text(source)
    (folder / "status").touch()
    settings = {
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Sandbox::User": "root",  # its own user may not read this folder
    }
    apt = ["apt-get", "-qq", *(option for k, v in settings.items() for option in ("-o", f"{k}={v}"))]
    _run([*apt, "update"], folder)
    _run([*apt, "download", *PACKAGES], folder)
    for package in folder.glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(folder / "root")], folder)
    yield folder / "root"
    shutil.rmtree(folder)


def _headers(root: Path, compiler: str) -> list[str]:
    """The compiler's own headers and those of the release, and none of this machine."""
    own = subprocess.check_output(
        [compiler, "-print-file-name=include"], text=True, timeout=APT_SECONDS
    ).strip()
    system = root / "usr/include"
    (library,) = (folder.parent for folder in system.glob("*-linux-gnu/bits"))
    found = [own, library, system, root / "usr/lib" / library.name / "openmpi/include"]
    return ["-nostdinc", *(option for folder in found for option in ("-isystem", str(folder)))]


@pytest.mark.long
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_compiles_with_the_headers_of_each_release(root: Path, translated: Part, compiler: str):
    if shutil.which(compiler) is None:
        pytest.skip(f"SKIPPED: {compiler} is not installed")
    headers = _headers(root, compiler)
    for part in (*PARTS.values(), translated):
        _compile(compiler, part, headers)
