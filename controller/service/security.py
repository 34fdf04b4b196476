# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Certificate and tokens of a controller that serves at TCP, read from files, and read again while it runs."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

MIN_TOKEN_LENGTH = 16


class SecurityFileError(ValueError):
    """A file of a certificate, a key or tokens cannot be used. The message names it."""


@dataclass(frozen=True)
class Security:
    """Security of TCP: a certificate and its key in PEM, and the tokens of which a caller has to present one. Callers
    with one of `member_tokens` may join jobs; those with one of `tokens` may call everything."""

    certificate: bytes
    key: bytes
    tokens: frozenset[str]
    member_tokens: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SecurityFiles:
    certificate: Path
    key: Path
    tokens: Path
    member_tokens: Path | None = None

    def read(self) -> Security:
        """Raises SecurityFileError."""
        tokens = read_tokens(self.tokens)
        member_tokens = read_tokens(self.member_tokens) if self.member_tokens else frozenset()
        if tokens & member_tokens:
            raise SecurityFileError(
                f"{self.member_tokens}: a token of {self.tokens} is in it; expected other tokens"
            )
        try:
            pair = self.certificate.read_bytes(), self.key.read_bytes()
        except OSError as error:
            raise SecurityFileError(str(error)) from error
        _check_key(self.certificate, self.key)
        return Security(*pair, tokens, member_tokens)


class Credentials:
    """The security that new connections and calls are checked by. `files`: None: it stays as it is."""

    def __init__(self, current: Security, files: SecurityFiles | None = None) -> None:
        self.current = current
        self._files = files

    def reload(self) -> None:
        """Read the files again. Raises SecurityFileError, and keeps what was read before: a file that is half written
        refuses no caller."""
        if self._files is not None:
            self.current = self._files.read()


def read_tokens(file: Path) -> frozenset[str]:
    """Raises SecurityFileError if the file cannot be read, or has no tokens or short ones."""
    try:
        tokens = frozenset(file.read_text().split())
    except OSError as error:
        raise SecurityFileError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecurityFileError(f"{file} is no text: {error}") from error
    if not tokens or any(len(t) < MIN_TOKEN_LENGTH for t in tokens):
        raise SecurityFileError(
            f"{file}: expected at least one token, each of {MIN_TOKEN_LENGTH} characters or more"
        )
    return tokens


def _check_key(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:  # of which ssl's is one
        why = getattr(error, "reason", None) or "no PEM"
        raise SecurityFileError(
            f"{certificate} and {key} are no certificate with its private key: {why}"
        ) from error
