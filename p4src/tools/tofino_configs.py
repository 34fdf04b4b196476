# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A compiled Tofino program as the `p4_device_config` of the two P4Runtime servers that there are for the chips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from netfold.p4src.tools.tofino_slices import without_slices

PIPES = range(4)
"""The pipes that a program is loaded into. A chip with two takes the first two of them."""


@dataclass(frozen=True)
class TofinoProgram:
    """Files of the compiler and the assembler: name and BF-RT schema of the program; name, context and binary of its
    one pipeline."""

    name: str
    bfrt: bytes
    pipeline: str
    context: bytes
    binary: bytes


def drivers_config(program: TofinoProgram) -> bytes:
    """For the drivers' own server, over p4lang/PI: each part after its length, 32 bits with the lowest byte first.
    Raises P4BuildError."""
    context = without_slices(program.context)
    parts = (program.name.encode(), program.binary, context, program.pipeline.encode(), program.bfrt)
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def stratum_config(program: TofinoProgram, pipes: Iterable[int] = PIPES) -> bytes:
    """For Stratum: a serialized stratum.hal.barefoot.BfPipelineConfig."""
    profile = _message_types()["BfPipelineConfig.Profile"](
        profile_name=program.pipeline, context=program.context, binary=program.binary, pipe_scope=list(pipes)
    )
    config = _message_types()["BfPipelineConfig"](
        p4_name=program.name, bfruntime_info=program.bfrt, profiles=[profile]
    )
    return config.SerializeToString(deterministic=True)


@cache
def _message_types() -> dict[str, type[Message]]:
    """The two messages that Stratum defines for this, as far as a client needs them. A pool of its own keeps them out
    of the way of a reader with the full definitions."""
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
