# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A certificate for controllers of tests at TCP, and the connection that trusts it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from netfold.protocol.connection import Connection, connection


@dataclass(frozen=True)
class Tls:
    """A certificate, made for this run, and its key."""

    certificate: Path
    key: Path


def make_certificate(folder: Path, name: str = "controller.test", addresses: Iterable[str] = ()) -> Tls:
    names = ",".join((f"DNS:{name}", *(f"IP:{address}" for address in addresses)))
    made = Tls(folder / "cert", folder / "key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}",
         "-addext", f"subjectAltName={names}", "-keyout", made.key, "-out", made.certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    return made


def reached(target: str, tls: Tls, folder: Path, token: str = "a-token") -> Connection:
    (folder / "token").write_text(token + "\n")
    return connection(target, tls.certificate, folder / "token", "controller.test")
