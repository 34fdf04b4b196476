# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Certificate, tokens and identities of a controller that serves at TCP, read from files, and again while it runs."""

from __future__ import annotations

import functools
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path

from netfold.controller.service.identities import (
    Identities,
    IdentitiesError,
    Identity,
    Role,
    digest_of,
    read_identities,
)

MIN_TOKEN_LENGTH = 16


class SecurityFileError(ValueError):
    """A file of a certificate, a key, tokens or identities cannot be used. The message names it."""


@dataclass(frozen=True)
class Security:
    """Security of TCP: a certificate and its key in PEM, and the tokens of which a caller has to present one. Callers
    with one of `member_tokens` may join jobs; those with one of `tokens` may call everything; those with the token of
    one of `identities` may do what its role allows."""

    certificate: bytes
    key: bytes
    tokens: frozenset[str]
    member_tokens: frozenset[str] = frozenset()
    identities: Identities = field(default_factory=Identities)

    @functools.cached_property
    def callers(self) -> Identities:
        """All identities that a token stands for: tokens without a name are an operator's, or a member's of all
        jobs."""
        unnamed = {t: Identity("", "", Role.MEMBER) for t in self.member_tokens}
        unnamed |= {t: Identity("", "", Role.OPERATOR) for t in self.tokens}
        by_digest = {digest_of(token.encode()): identity for token, identity in unnamed.items()}
        return replace(self.identities, by_digest={**self.identities.by_digest, **by_digest})


@dataclass(frozen=True)
class SecurityFiles:
    certificate: Path
    key: Path
    tokens: Path | None
    member_tokens: Path | None = None
    identities: Path | None = None

    def read(self) -> Security:
        """Raises SecurityFileError."""
        tokens = read_tokens(self.tokens) if self.tokens else frozenset()
        member_tokens = read_tokens(self.member_tokens) if self.member_tokens else frozenset()
        if tokens & member_tokens:
            raise SecurityFileError(
                f"{self.member_tokens}: a token of {self.tokens} is in it; expected other tokens"
            )
        try:
            identities = read_identities(self.identities) if self.identities else Identities()
        except IdentitiesError as error:
            raise SecurityFileError(str(error)) from error
        if any(digest_of(t.encode()) in identities.by_digest for t in tokens | member_tokens):
            raise SecurityFileError(f"{self.identities}: a token of --tokens or --member-tokens is in it")
        try:
            pair = self.certificate.read_bytes(), self.key.read_bytes()
        except OSError as error:
            raise SecurityFileError(str(error)) from error
        _check_key(self.certificate, self.key)
        return Security(*pair, tokens, member_tokens, identities)


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
