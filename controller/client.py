# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A channel to the controller, as the command line opens it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from controller.server import TOKEN_KEY, default_socket


class ConnectError(Exception):
    """The controller cannot be asked; the message says where it was looked for."""


@dataclass(frozen=True)
class Connection:
    """`unix:PATH` or `HOST:PORT`; over TCP the certificate that is trusted, and a token."""

    address: str
    certificate: bytes | None = None
    token: str = ""


def connection(address: str | None, certificate: Path | None, token: Path | None) -> Connection:
    """From the command line, NETFOLD_CONTROLLER or the default socket. Raises ConnectError."""
    chosen = address or os.environ.get("NETFOLD_CONTROLLER") or default_socket()
    try:
        trusted = None if certificate is None else certificate.read_bytes()
        shown = "" if token is None else token.read_text().split()[0]
    except (OSError, IndexError) as error:
        raise ConnectError(f"certificate or token cannot be read: {error}") from error
    return Connection(chosen, trusted, shown)


def open_channel(where: Connection) -> grpc.aio.Channel:
    options = [
        ("grpc.max_receive_message_length", -1)
    ]  # plans of large jobs, from a controller that is trusted
    if where.address.startswith("unix:"):
        return grpc.aio.insecure_channel(where.address, options=options)
    credentials = grpc.ssl_channel_credentials(root_certificates=where.certificate)
    if where.token:
        call = grpc.metadata_call_credentials(_Token(where.token))
        credentials = grpc.composite_channel_credentials(credentials, call)
    return grpc.aio.secure_channel(where.address, credentials, options=options)


class _Token(grpc.AuthMetadataPlugin):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(
        self, context: Any, callback: Callable[[tuple[tuple[str, str], ...], Exception | None], None]
    ) -> None:
        callback(((TOKEN_KEY, f"Bearer {self._token}"),), None)
