# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compiles the Tofino programs into out/tofino/CHIP and wraps each as the device config that Stratum's P4Runtime takes.

    python -m tools.tofino                      # both chips
    python -m tools.tofino tofino --cpu-port 320

Needs p4c with its Tofino back end on PATH: `p4c-barefoot`, and the assembler `bfas` on PATH or beside it.
What is left for the controller (docs/tofino.md): netfold.p4info.txtpb and netfold.pb.bin.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from tools.p4build import REPOSITORY, BuildError, run_compiler

PROGRAM = "p4src/tna/netfold.p4"
NAME = "netfold"
OUT = REPOSITORY / "out" / "tofino"
COMPILER, ASSEMBLER = "p4c-barefoot", "bfas"
FLAGS = ("-g", "--Wdisable=unknown", "--Wdisable=uninitialized-out-param", "--Wdisable=uninitialized-use")
"""Reports of what is used; and no warnings of what is meant: @controller_header is for the P4Info alone, metadata is
0 at first (@pa_auto_init_metadata)."""
PIPES = range(4)
"""The pipes that a program is loaded into. A chip with two takes the first two of them."""
TIMEOUT_S = 1800


@dataclass(frozen=True)
class Chip:
    """What the compiler has to be told of a chip. `lanes` is what fits into one pass."""

    name: str
    architecture: str
    lanes: int
    defines: tuple[str, ...]


CHIPS = {
    chip.name: chip
    for chip in (
        Chip("tofino", "tna", 32, ("__TARGET_TOFINO__=1",)),
        Chip("tofino2", "t2na", 64, ("__TARGET_TOFINO__=2", "__TOFINO2_VARIANT__=1")),
    )
}


@dataclass(frozen=True)
class Build:
    """What the compiler left, and the device config made of it."""

    p4info: Path
    bfrt: Path
    context: Path
    binary: Path
    config: Path


def build(chip: Chip, folder: Path, cpu_port: int | None = None) -> Build:
    """Compile, assemble and wrap into `folder`, which is made and gets nothing of a build that failed. Raises
    BuildError."""
    with tempfile.TemporaryDirectory() as made:
        _build(chip, Path(made), cpu_port)
        shutil.copytree(made, folder, dirs_exist_ok=True)
    return _outcome(chip, folder)


def _build(chip: Chip, folder: Path, cpu_port: int | None) -> None:
    compiler, assembler = find_tools()
    p4info, bfrt = folder / f"{NAME}.p4info.txtpb", folder / "bfrt.json"
    defines = [*chip.defines, f"LANES={chip.lanes}"]
    if cpu_port is not None:
        defines.append(f"CPU_PORT_NUMBER={cpu_port}")
    # Stratum reads the standard messages, not Tofino's own, of counters and action profiles
    options = ["--std", "p4-16", "--p4runtime-force-std-externs", *FLAGS]
    options += ["--target", chip.name, "--arch", chip.architecture, *(f"-D{d}" for d in defines)]
    options += ["--p4runtime-files", str(p4info), "--bf-rt-schema", str(bfrt), "-o", str(folder)]
    run_compiler([str(compiler), *options, PROGRAM], TIMEOUT_S)
    assembly = _only(folder, f"*/{NAME}.bfa", "assembly")
    pipe = assembly.parent
    run_compiler([str(assembler), "--target", chip.name, "-o", str(pipe), str(assembly)], TIMEOUT_S)
    found = _outcome(chip, folder)
    parts = (found.bfrt.read_bytes(), pipe.name, found.context.read_bytes(), found.binary.read_bytes())
    found.config.write_bytes(device_config(NAME, *parts))


def _outcome(chip: Chip, folder: Path) -> Build:
    pipe = _only(folder, f"*/{NAME}.bfa", "assembly").parent
    return Build(
        p4info=_only(folder, f"{NAME}.p4info.txtpb", "P4Info"),
        bfrt=_only(folder, "bfrt.json", "BF-RT schema"),
        context=_only(pipe, "context.json", "context"),
        binary=_only(pipe, f"{chip.name}.bin", "binary"),
        config=folder / f"{NAME}.pb.bin",
    )


def find_tools() -> tuple[Path, Path]:
    """The compiler and the assembler. Raises BuildError if one is missing."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise BuildError(f"{COMPILER} is not on PATH: build p4c with its Tofino back end (docs/tofino.md)")
    beside = os.pathsep.join((os.environ.get("PATH", ""), str(Path(compiler).resolve().parent)))
    assembler = shutil.which(ASSEMBLER, path=beside)
    if assembler is None:
        raise BuildError(f"{ASSEMBLER} is neither on PATH nor beside {compiler}")
    return Path(compiler), Path(assembler)


def device_config(
    program: str, bfrt: bytes, pipeline: str, context: bytes, binary: bytes, pipes: Iterable[int] = PIPES
) -> bytes:
    """The `p4_device_config` for Stratum on Tofino, a serialized stratum.hal.barefoot.BfPipelineConfig: the program's
    name and BF-RT schema, and of its one pipeline the name, context, binary and the pipes that it is loaded into."""
    profile = _message_types()["BfPipelineConfig.Profile"](
        profile_name=pipeline, context=context, binary=binary, pipe_scope=list(pipes)
    )
    config = _message_types()["BfPipelineConfig"](p4_name=program, bfruntime_info=bfrt, profiles=[profile])
    return config.SerializeToString(deterministic=True)


@cache
def _message_types() -> dict[str, type[Message]]:
    """The two messages that Stratum defines for this, as far as a client needs them. A pool of its own keeps them out
    of the way of whoever has the full definitions."""
    kind = descriptor_pb2.FieldDescriptorProto
    one, many = kind.LABEL_OPTIONAL, kind.LABEL_REPEATED
    file = descriptor_pb2.FileDescriptorProto(
        name="netfold/bf_pipeline_config.proto", package="stratum.hal.barefoot", syntax="proto3"
    )
    config = file.message_type.add(name="BfPipelineConfig")
    profile = config.nested_type.add(name="Profile")
    for message, number, name, type_, label in (
        (config, 1, "p4_name", kind.TYPE_STRING, one),
        (config, 2, "bfruntime_info", kind.TYPE_BYTES, one),
        (config, 3, "profiles", kind.TYPE_MESSAGE, many),
        (profile, 1, "profile_name", kind.TYPE_STRING, one),
        (profile, 2, "context", kind.TYPE_BYTES, one),
        (profile, 3, "binary", kind.TYPE_BYTES, one),
        (profile, 4, "pipe_scope", kind.TYPE_UINT32, many),
    ):
        field = message.field.add(number=number, name=name, type=type_, label=label)
        if type_ == kind.TYPE_MESSAGE:
            field.type_name = ".stratum.hal.barefoot.BfPipelineConfig.Profile"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = ("BfPipelineConfig", "BfPipelineConfig.Profile")
    found = {n: pool.FindMessageTypeByName(f"{file.package}.{n}") for n in names}
    return {n: message_factory.GetMessageClass(d) for n, d in found.items()}


def _only(folder: Path, pattern: str, what: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise BuildError(f"one {what} ({pattern}) should be in {folder}; there is {names}")
    return found[0]


def main(
    chips: Annotated[list[str] | None, typer.Argument(help="tofino, tofino2; default: both.")] = None,
    out: Annotated[Path, typer.Option(help="A folder for each chip is made in here.")] = OUT,
    cpu_port: Annotated[
        int | None,
        typer.Option(min=0, max=511, help="The controller's port; default: 192 on tofino, 0 on tofino2."),
    ] = None,
    lanes: Annotated[
        int | None, typer.Option(min=32, help="Fewer than the chip's own, as the data plane's tests want it.")
    ] = None,
) -> None:
    """Compile the Tofino programs and make the configs that Stratum takes."""
    chosen = chips or list(CHIPS)
    unknown = [c for c in chosen if c not in CHIPS]
    if unknown:
        typer.echo(f"'{unknown[0]}' is no chip; it must be {' or '.join(CHIPS)}", err=True)
        raise typer.Exit(2)
    for name in chosen:
        chip = replace(CHIPS[name], lanes=lanes or CHIPS[name].lanes)
        try:
            made = build(chip, out / name, cpu_port)
        except BuildError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from error
        typer.echo(f"{name}, {chip.lanes} lanes: {made.p4info}, {made.config}")


if __name__ == "__main__":
    typer.run(main)
