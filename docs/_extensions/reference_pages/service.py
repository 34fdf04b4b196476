# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page of the controller's gRPC service, from protocol/netfold.proto and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)
from grpc_tools import protoc

from .markdown import escaped, table

SERVICE, MESSAGE, ENUM = 6, 4, 5  # numbers of FileDescriptorProto's fields, as paths of comments have them
METHOD, FIELD, VALUE = 2, 2, 2


def page(repository: Path) -> str:
    """The service, then messages, then enums."""
    return "\n".join(Page(_descriptor(repository)).lines()) + "\n"


def _descriptor(repository: Path) -> FileDescriptorProto:
    out = repository / "out/docs"
    out.mkdir(parents=True, exist_ok=True)
    path = out / "netfold.protoset"
    options = ["--include_source_info", f"--descriptor_set_out={path}"]
    if protoc.main(["protoc", f"-I{repository}", *options, "protocol/netfold.proto"]):
        raise ValueError("protocol/netfold.proto cannot be compiled")
    return FileDescriptorSet.FromString(path.read_bytes()).file[0]


class Page:
    """Markdown of one proto file."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = {tuple(place.path): _comment(place) for place in file.source_code_info.location}

    def lines(self) -> Iterator[str]:
        for number, service in enumerate(self._file.service):
            yield from (f"## {service.name}", "", self._about(SERVICE, number), "")
            yield from table(
                ("call", "request", "response", "meaning"),
                (self._method(number, index, method) for index, method in enumerate(service.method)),
            )
        yield from ("## Messages", "")
        for number, message in enumerate(self._file.message_type):
            yield from self._message(message, (MESSAGE, number))
        yield from ("## Enums", "")
        for number, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, (ENUM, number))

    def _about(self, *path: int) -> str:
        return escaped(self._comments.get(path, ""))

    def _method(self, service: int, index: int, method: MethodDescriptorProto) -> tuple[str, ...]:
        request = ("stream " if method.client_streaming else "") + _short(method.input_type)
        response = ("stream " if method.server_streaming else "") + _short(method.output_type)
        about = self._about(SERVICE, service, METHOD, index)
        return f"`{method.name}`", f"`{request}`", f"`{response}`", about

    def _message(self, message: DescriptorProto, path: tuple[int, ...]) -> Iterator[str]:
        yield from (f"### {message.name}", "", self._about(*path), "")
        yield from table(
            ("field", "number", "type", "meaning"),
            (
                (f"`{f.name}`", str(f.number), _type(f), self._about(*path, FIELD, i))
                for i, f in enumerate(message.field)
            ),
        )

    def _enum(self, enum: EnumDescriptorProto, path: tuple[int, ...]) -> Iterator[str]:
        yield from (f"### {enum.name}", "", self._about(*path), "")
        yield from table(
            ("value", "number", "meaning"),
            ((f"`{v.name}`", str(v.number), self._about(*path, VALUE, i)) for i, v in enumerate(enum.value)),
        )


def _comment(location: object) -> str:
    parts = (getattr(location, "leading_comments", ""), getattr(location, "trailing_comments", ""))
    text = " ".join(" ".join(part.split()) for part in parts if part.strip())
    return re.sub(r"-{4,}.*?-{4,}", "", text)


def _short(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _type(field: FieldDescriptorProto) -> str:
    kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    name = _short(field.type_name) if field.type_name else kind
    return f"repeated {name}" if field.label == FieldDescriptorProto.LABEL_REPEATED else name
