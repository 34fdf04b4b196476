# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Tofino programs into out/tofino/CHIP and wraps each as the device configs of Stratum's P4Runtime server
and of the drivers' own.

    python -m netfold.p4src.tools.tofino                      # both chips
    python -m netfold.p4src.tools.tofino tofino --cpu-port 320
    python -m netfold.p4src.tools.tofino tofino2 --flow-hash crc32   # the middle of three tiers: out/tofino-crc32

Needs p4c with its Tofino back end on PATH: `p4c-barefoot`, and the assembler `bfas` on PATH or beside it.
A controller needs netfold.p4info.txtpb and manifest.json of a folder, and netfold.pb.bin for Stratum or netfold.pi.bin
for the drivers (docs/how-to/tofino.md).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netfold.p4src.manifest import Manifest, most_lanes, own_programs, sha256
from netfold.p4src.tools.p4build import REPOSITORY, P4BuildError, run_compiler
from netfold.p4src.tools.tofino_configs import TofinoProgram, drivers_config, stratum_config
from netfold.p4src.tools.tofino_parsers import check_parsers, share_with_checksums

PROGRAM = "p4src/tna/netfold.p4"
NAME = "netfold"
OUT = REPOSITORY / "out" / "tofino"
COMPILER, ASSEMBLER = "p4c-barefoot", "bfas"
FLAGS = ("-g", "--Wdisable=unknown", "--Wdisable=uninitialized-out-param", "--Wdisable=uninitialized-use")
"""Reports of what is used; and no warnings of what is meant: @controller_header is for the P4Info alone, metadata is
0 at first (@pa_auto_init_metadata)."""
TIMEOUT_S = 4 * 3600  # Tofino 2: ten minutes of a processor, and hours where others want it too


@dataclass(frozen=True)
class TofinoChip:
    """The compiler's options for a chip. `lanes`: of a packet."""

    name: str
    architecture: str
    lanes: int
    defines: tuple[str, ...]


CHIPS = {
    chip.name: chip
    for chip in (
        TofinoChip("tofino", "tna", most_lanes("tofino"), ("__TARGET_TOFINO__=1",)),
        TofinoChip(
            "tofino2", "t2na", most_lanes("tofino2"), ("__TARGET_TOFINO__=2", "__TOFINO2_VARIANT__=1")
        ),
    )
}


class FlowHash(StrEnum):
    """The CRC by which a Tofino 2 shares flows among next hops. Tiers one after the other need different ones
    (docs/decisions/0057-a-switch-s-hash-has-a-seed.md)."""

    CRC16 = "crc16"
    CRC32 = "crc32"


@dataclass(frozen=True)
class Build:
    """Files of a build, which took `seconds` of processor time, and the device configs made of them: `config` for
    Stratum, `drivers` for the drivers."""

    p4info: Path
    bfrt: Path
    context: Path
    binary: Path
    config: Path
    drivers: Path
    seconds: float


def build(chip: TofinoChip, folder: Path, cpu_port: int | None = None) -> Build:
    """Compile, assemble and wrap into `folder`, which is made and gets nothing of a build that failed. Raises
    P4BuildError."""
    with tempfile.TemporaryDirectory() as made:
        seconds = _build(chip, Path(made), cpu_port)
        shutil.copytree(made, folder, dirs_exist_ok=True)
    return _outcome(chip, folder, seconds)


def _build(chip: TofinoChip, folder: Path, cpu_port: int | None) -> float:
    compiler, assembler = find_tools()
    before = os.times()
    p4info, bfrt = folder / f"{NAME}.p4info.txtpb", folder / "bfrt.json"
    defines = [*chip.defines, f"LANES={chip.lanes}"]
    if cpu_port is not None:
        defines.append(f"CPU_PORT_NUMBER={cpu_port}")
    # both servers read the standard messages, not Tofino's own, of counters and action profiles
    options = ["--std", "p4-16", "--p4runtime-force-std-externs", *FLAGS]
    options += ["--target", chip.name, "--arch", chip.architecture, *(f"-D{d}" for d in defines)]
    options += ["--p4runtime-files", str(p4info), "--bf-rt-schema", str(bfrt), "-o", str(folder)]
    run_compiler([str(compiler), *options, PROGRAM], TIMEOUT_S)
    assembly = _only(folder, f"*/{NAME}.bfa", "assembly")
    pipe = assembly.parent
    _check_fit(chip, pipe)
    text = assembly.read_text()
    check_parsers(text)
    assembly.write_text(share_with_checksums(text))
    run_compiler([str(assembler), "--target", chip.name, "-o", str(pipe), str(assembly)], TIMEOUT_S)
    after = os.times()
    found = _outcome(chip, folder, 0.0)
    made = TofinoProgram(
        NAME, found.bfrt.read_bytes(), pipe.name, found.context.read_bytes(), found.binary.read_bytes()
    )
    found.config.write_bytes(stratum_config(made))
    found.drivers.write_bytes(drivers_config(made))
    program = own_programs()[f"netfold-{chip.name}"].model_copy(update={"lanes": chip.lanes})
    Manifest(programs={NAME: program}, artifacts={p4info.name: sha256(p4info)}).write(folder)
    return after.children_user - before.children_user


def _check_fit(chip: TofinoChip, pipe: Path) -> None:
    """Check the stages, since the compiler does not report those that the chip lacks. Raises P4BuildError."""
    mau = json.loads((pipe / "logs" / "resources.json").read_text())["resources"]["mau"]
    beyond = [s for s in mau["mau_stages"] if s["stage_number"] >= mau["nStages"]]
    tables = [t["table_name"] for s in beyond for t in s["logical_tables"]["ids"]]
    if tables:
        raise P4BuildError(
            f"the program does not fit into the {mau['nStages']} stages of {chip.name}: {', '.join(tables)} left over"
        )


def _outcome(chip: TofinoChip, folder: Path, seconds: float) -> Build:
    pipe = _only(folder, f"*/{NAME}.bfa", "assembly").parent
    return Build(
        p4info=_only(folder, f"{NAME}.p4info.txtpb", "P4Info"),
        bfrt=_only(folder, "bfrt.json", "BF-RT schema"),
        context=_only(pipe, "context.json", "context"),
        binary=_only(pipe, f"{chip.name}.bin", "binary"),
        config=folder / f"{NAME}.pb.bin",
        drivers=folder / f"{NAME}.pi.bin",
        seconds=seconds,
    )


def find_tools() -> tuple[Path, Path]:
    """The compiler and the assembler. Raises P4BuildError if one is missing."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise P4BuildError(
            f"{COMPILER} is not on PATH: build p4c with its Tofino back end (docs/how-to/tofino.md)"
        )
    beside = os.pathsep.join((os.environ.get("PATH", ""), str(Path(compiler).resolve().parent)))
    assembler = shutil.which(ASSEMBLER, path=beside)
    if assembler is None:
        raise P4BuildError(f"{ASSEMBLER} is neither on PATH nor beside {compiler}")
    return Path(compiler), Path(assembler)


def _only(folder: Path, pattern: str, what: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise P4BuildError(f"one {what} ({pattern}) should be in {folder}; there is {names}")
    return found[0]


def main(
    chips: Annotated[list[str] | None, typer.Argument(help="tofino, tofino2; default: both.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for each chip is made in here. Default: out/tofino; with crc32, out/tofino-crc32."
        ),
    ] = None,
    cpu_port: Annotated[
        int | None,
        typer.Option(min=0, max=511, help="The controller's port; default: 192 on tofino, 0 on tofino2."),
    ] = None,
    flow_hash: Annotated[
        FlowHash | None,
        typer.Option(help="How a tofino2 shares flows; every second tier needs crc32. Default: crc16."),
    ] = None,
    lanes: Annotated[
        int | None, typer.Option(min=32, help="Fewer than the chip's own, as the data plane's tests want it.")
    ] = None,
) -> None:
    """Compile the Tofino programs and make the configs that Stratum and the drivers take."""
    chosen = chips or list(CHIPS)
    unknown = [c for c in chosen if c not in CHIPS]
    if unknown:
        typer.echo(f"'{unknown[0]}' is no chip; it must be {' or '.join(CHIPS)}", err=True)
        raise typer.Exit(2)
    if flow_hash and set(chosen) != {"tofino2"}:
        typer.echo("--flow-hash is for tofino2 alone: the hash of other switches has a seed", err=True)
        raise typer.Exit(2)
    default = OUT.with_name(f"{OUT.name}-crc32") if flow_hash == FlowHash.CRC32 else OUT
    hashes = (f"FLOW_HASH={flow_hash.value.upper()}",) if flow_hash else ()
    for name in chosen:
        chip = replace(CHIPS[name], lanes=lanes or CHIPS[name].lanes, defines=(*CHIPS[name].defines, *hashes))
        try:
            made = build(chip, (out or default) / name, cpu_port)
        except P4BuildError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from error
        files = f"{made.p4info}, {made.config}, {made.drivers}"
        typer.echo(f"{name}, {chip.lanes} lanes, {made.seconds:.0f} s of one processor: {files}")


if __name__ == "__main__":
    typer.run(main)
