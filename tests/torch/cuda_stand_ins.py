# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Puts stand-ins for the CUDA packages that PyTorch's Linux package requires into the environment of the interpreter
that runs this program. The packages take 4 GB, and the tests run on processors.

    pip install --no-deps torch==2.14.1
    python tests/torch/cuda_stand_ins.py

Each function of a stand-in returns `cudaErrorNoDevice`, or that error's name where it returns text. So PyTorch finds no
GPU. For pip the packages are installed.
A package of PyTorch for processors requires none, and gets none.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

_PACKAGE = re.compile(r"(?P<name>(?:cuda|nvidia|triton)[\w-]*)[^;]*?[=~>]=(?P<version>[\d.]+)")
_VERSION = re.compile(r"File: (?P<file>\S+)|Name: (?P<name>\S+)")
_LIBRARY = re.compile(r"\[(lib(?:cu|nv|nccl)[\w-]*\.so[.\d]*)\]")
_FUNCTION = re.compile(r"_*(?:cu|nv|nccl)")
_TEXT = re.compile(r"Error(?:Name|String)$")
"""Names of functions that return the text of an error."""
_NO_DEVICE = 100  # cudaErrorNoDevice


def main() -> None:
    site = Path(sysconfig.get_paths()["platlib"])
    libraries = site / "torch" / "lib"
    objects = [*libraries.glob("lib*.so*"), *(site / "torch").glob("_C.*.so")]
    needed = {name for one in objects for name in _LIBRARY.findall(_readelf("--dynamic", one))}
    symbols, versions = _missing_symbols(objects), _versions(objects)
    for name in sorted(needed):
        if not (libraries / name).exists():
            version = versions.get(name, "")
            _compile(libraries / name, version, symbols[version])
    for name, version in _required_packages():
        _describe(site, name, version)


def _missing_symbols(objects: Iterable[Path]) -> dict[str, set[str]]:
    """The functions that no library of PyTorch defines, by the version that they must have; "": none."""
    defined: set[str] = set()
    wanted: dict[str, set[str]] = defaultdict(set)
    for one in objects:
        for line in _readelf("--dyn-syms", one).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[4] != "GLOBAL":
                continue
            name, _, version = fields[7].partition("@")
            if fields[6] != "UND":
                defined.add(name)
            elif _FUNCTION.match(name):
                wanted[version].add(name)
    return {version: names - defined for version, names in wanted.items()} | {"": wanted[""] - defined}


def _readelf(what: str, path: Path) -> str:
    command = ["readelf", "--wide", what, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _versions(objects: Iterable[Path]) -> dict[str, str]:
    """The version of a library's symbols; libraries without versions are left out."""
    found: dict[str, str] = {}
    for one in objects:
        library = ""
        for match in _VERSION.finditer(_readelf("--version-info", one)):
            library = match["file"] or library
            if match["name"] and _LIBRARY.match(f"[{library}]"):
                found[library] = match["name"]
    return found


def _compile(path: Path, version: str, names: Iterable[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder) / "stand_in.c", Path(folder) / "versions"
        source.write_text("".join(map(_definition, sorted(names))))
        script.write_text(f"{version} {{ global: *; }};\n")
        options = [f"-Wl,-soname,{path.name}", *([f"-Wl,--version-script,{script}"] if version else [])]
        command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-w", *options, "-o", str(path), str(source)]
        subprocess.run(command, check=True)


def _definition(name: str) -> str:
    if _TEXT.search(name):
        return f'const char *{name}(void) {{ return "cudaErrorNoDevice"; }}\n'
    return f"long {name}(void) {{ return {_NO_DEVICE}; }}\n"


def _required_packages() -> Iterator[tuple[str, str]]:
    for requirement in metadata.requires("torch") or ():
        found = _PACKAGE.match(requirement)
        if found is not None:
            yield found["name"], found["version"]


def _describe(site: Path, name: str, version: str) -> None:
    """Writes pip's description of an installed package, unless it is installed."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "INSTALLER").write_text("netfold\n")
        (folder / "RECORD").write_text(
            f"{folder.name}/METADATA,,\n{folder.name}/INSTALLER,,\n{folder.name}/RECORD,,\n"
        )


if __name__ == "__main__":
    sys.exit(main())
