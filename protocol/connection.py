# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The connection to the controller, for commands and members: address, trusted certificate, token.

A unix socket is guarded by its own rights; over TCP everything is TLS, and a call without a token is refused.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import grpc

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import (
    DEFAULT_NAME,
    FolderError,
    check_own,
    default_name,
    is_root,
    runtime_folder,
)

TOKEN_KEY = "authorization"

TOO_MANY_KEY = "netfold-too-many-calls"
"""Trailing metadata of the refusal of a call that exceeds the calls of its tenant: a repeated one may be answered."""

PASSING = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN})
"""Status codes on which a retry can succeed: the controller is starting, restarting or briefly unreachable."""

_SOCKET = "controller.sock"
_UNIX = "unix:"
_FORM = re.compile(r"unix:.+|[^\s/]+:[0-9]{1,5}")
_RUNTIME_FOLDERS = ("/run/user/{uid}", "/tmp/netfold-{uid}")
_KEEPALIVE_MS = 10_000  # a peer that vanished is detected after this and five seconds more


class ConnectError(Exception):
    """No connection can be made; the message names the file or setting that is wrong."""


@dataclass(frozen=True)
class Connection:
    """`unix:PATH` or `HOST:PORT`; of several controllers with commas between, of which one leads at a time. Over TCP:
    the certificate (PEM) that the controller's is checked against, in place of the system's own; the token; and the
    name that the controller's certificate bears if it is not `HOST`."""

    address: str
    certificate: bytes | None = None
    token: str = field(default="", repr=False)
    server_name: str = ""

    @property
    def addresses(self) -> list[str]:
        return self.address.split(",")

    def as_member(self, token: str) -> Connection:
        """The connection with a job's token. "": the controller gave none."""
        return replace(self, token=token) if token else self


def default_socket() -> str:
    """Path of the default socket: in the runtime folder, or in that of $NETFOLD_NAME's network if that is not the
    default's."""
    folder, name = runtime_folder(), default_name()
    return f"unix:{folder / _SOCKET if name == DEFAULT_NAME else folder / name / _SOCKET}"


def check_default_socket() -> None:
    """Raises ConnectError if another user could have put the default socket where it is, or could take it away."""
    try:
        check_own(Path(default_socket().removeprefix("unix:")).parent)
    except FolderError as error:
        raise ConnectError(str(error)) from error


def _callers_socket() -> str | None:
    """For root's process that a user has started through sudo, as what runs in Mininet's hosts: the user's own
    controller, unless root has one. None if there is none."""
    user = os.environ.get("SUDO_UID", "")
    if not is_root() or not user.isdecimal() or Path(default_socket().removeprefix("unix:")).exists():
        return None
    for folder in _RUNTIME_FOLDERS:
        file = Path(folder.format(uid=user)) / "netfold" / "controller.sock"
        with contextlib.suppress(OSError):
            if file.stat().st_uid == int(user):
                return f"unix:{file}"
    return None


def connection(
    address: str | None = None,
    certificate: Path | None = None,
    token: Path | None = None,
    server_name: str | None = None,
) -> Connection:
    """Connect to a controller. Arguments that are None are taken from NETFOLD_CONTROLLER, NETFOLD_TLS_CA,
    NETFOLD_JOB_TOKEN or NETFOLD_TOKEN_FILE, and NETFOLD_TLS_SERVER_NAME. Their defaults are the default socket (under
    sudo the caller's, if root has none), the system's certificates, and no token. Raises ConnectError."""
    chosen = address or os.environ.get(Variable.CONTROLLER) or _callers_socket() or default_socket()
    addresses = chosen.split(",")
    if not all(_FORM.fullmatch(a) for a in addresses):
        raise ConnectError(
            f"the controller's address is '{chosen}'; expected unix:PATH or HOST:PORT, or several of them with commas "
            "between"
        )
    if default_socket() in addresses:
        check_default_socket()
    name = server_name or os.environ.get(Variable.TLS_SERVER_NAME, "")
    of_job = "" if token else os.environ.get(Variable.JOB_TOKEN, "").strip()
    if all(a.startswith(_UNIX) for a in addresses):
        return Connection(chosen, token=of_job, server_name=name)
    ca = certificate or _path(Variable.TLS_CA)
    file = token or (None if of_job else _path(Variable.TOKEN_FILE))
    try:
        trusted = None if ca is None else ca.read_bytes()
        shown = [] if file is None else file.read_text().split()
    except OSError as error:
        raise ConnectError(
            f"certificate or token cannot be read: {error.filename}: {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise ConnectError(f"certificate or token cannot be read: {file}: {error}") from error
    if trusted is not None and b"-----BEGIN CERTIFICATE-----" not in trusted:
        raise ConnectError(f"{ca}: no certificate is in it; a file in PEM is expected")
    if file is not None and not shown:
        raise ConnectError(
            f"{file}: it is empty; a token is needed, as the controller's --tokens file has it"
        )
    return Connection(chosen, trusted, shown[0] if shown else of_job, name)


def channel_to(where: Connection, address: str) -> grpc.Channel:
    """For threads; to one address of the connection, whether a controller is there or not."""
    credentials, options = _credentials(where, address), _options(where, address)
    if credentials is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=options)


def aio_channel_to(where: Connection, address: str) -> grpc.aio.Channel:
    """For asyncio; otherwise as `channel_to`."""
    credentials, options = _credentials(where, address), _options(where, address)
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _options(where: Connection, address: str) -> list[tuple[str, Any]]:
    # plans of large jobs, from a controller that is trusted
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", -1),
        # A caller that waits for the controller finds it within a second.
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.enable_http_proxy", 0),  # what http_proxy names leads to the web, not to a controller
        # Channels of a process that shared a connection, which the earlier ones had lost, made no attempt at it again.
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if address.startswith(_UNIX):
        return options
    options += [("grpc.keepalive_time_ms", _KEEPALIVE_MS), ("grpc.keepalive_timeout_ms", _KEEPALIVE_MS // 2)]
    if where.server_name:
        options.append(("grpc.ssl_target_name_override", where.server_name))
    return options


def _credentials(where: Connection, address: str) -> grpc.ChannelCredentials | None:
    """None for a unix socket."""
    if address.startswith(_UNIX):
        return None
    credentials = grpc.ssl_channel_credentials(root_certificates=where.certificate)
    if not where.token:
        return credentials
    return grpc.composite_channel_credentials(
        credentials, grpc.metadata_call_credentials(_Token(where.token))
    )


class _Token(grpc.AuthMetadataPlugin):
    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(
        self, context: Any, callback: Callable[[tuple[tuple[str, str], ...], Exception | None], None]
    ) -> None:
        callback(((TOKEN_KEY, f"Bearer {self._token}"),), None)
