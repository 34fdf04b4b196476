# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Identities of callers, and the file that lists them: digests of their tokens, and the limits of tenants."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from netfold.controller.jobs.submitter import TenantLimits

MAX_FILE_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
LIMITS = "limits"
"""First word of a line with limits, and so no name."""
_LIMIT = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?")
_KEYS = tuple(f.name for f in fields(TenantLimits))
_WHOLE = ("jobs", "queued", "priority")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class IdentitiesError(ValueError):
    """A file of identities cannot be used. The message names the file and the line."""


class Role(StrEnum):
    """Role of a caller: what it may do is in access.py."""

    MEMBER = "member"
    VIEWER = "viewer"
    USER = "user"
    OPERATOR = "operator"


ROLES_IN_FILES = (Role.VIEWER, Role.USER, Role.OPERATOR)


@dataclass(frozen=True)
class Identity:
    """A caller. `name`: "" for those whose token has no name. `job`, `serial`: of a member whose token is of one job;
    "": its token joins every job. `limits`: of its tenant; an operator has its weight alone."""

    name: str
    tenant: str
    role: Role
    job: str = ""
    serial: str = ""
    limits: TenantLimits = field(default_factory=TenantLimits)


@dataclass(frozen=True)
class Identities:
    """Identities by the digest of their token."""

    by_digest: Mapping[str, Identity] = field(default_factory=dict)

    def of_token(self, token: bytes) -> Identity | None:
        """The holder of a token. The digest hides from an attacker's clock how much of a guess is right."""
        return self.by_digest.get(digest_of(token))


def digest_of(token: bytes) -> str:
    """The digest in a file of identities. Tokens are random, so that a digest without salt reveals none."""
    return hashlib.sha256(token).hexdigest()


def name_fault(name: str, tenant: str) -> str:
    """Why a caller cannot have these; "": it can."""
    for what, value in (("name", name), ("tenant", tenant)):
        if not _NAME.fullmatch(value) or value == LIMITS:
            return f"{what} {value[:80]!r}; expected at most 64 letters, digits, '_', '.', '@' and '-'"
    return ""


def identity_line(identity: Identity, token: str) -> str:
    """The line of a file of identities."""
    return f"{identity.name} {identity.tenant} {identity.role} {digest_of(token.encode())}"


def read_identities(file: Path) -> Identities:
    """Read lines `NAME TENANT ROLE SHA256`, and `limits TENANT KEY=VALUE ...`. Raises IdentitiesError."""
    found: dict[str, Identity] = {}
    known: dict[str, Identity] = {}
    limits: dict[str, TenantLimits] = {}
    for place, line in _lines(file):
        words = line.split()
        if words[0] == LIMITS:
            _add_limits(limits, place, words[1:])
            continue
        identity, digest = _identity(place, words)
        if known.setdefault(identity.name, identity) != identity:
            raise IdentitiesError(f"{place}: '{identity.name}' has another tenant or role in an earlier line")
        if digest in found:
            raise IdentitiesError(f"{place}: the token of '{found[digest].name}' again; expected another one")
        found[digest] = identity
    if not found:
        raise IdentitiesError(f"{file}: expected at least one line NAME TENANT ROLE SHA256")
    if strangers := limits.keys() - {identity.tenant for identity in found.values()}:
        raise IdentitiesError(f"{file}: limits of '{min(strangers)}', a tenant that no identity has")
    return Identities({digest: _limited(identity, limits) for digest, identity in found.items()})


def _limited(identity: Identity, limits: Mapping[str, TenantLimits]) -> Identity:
    """The identity with the limits of its tenant. An operator has its weight alone."""
    own = limits.get(identity.tenant, TenantLimits())
    if identity.role is Role.OPERATOR:
        own = TenantLimits(weight=own.weight)
    return replace(identity, limits=own)


def _add_limits(limits: dict[str, TenantLimits], place: str, words: list[str]) -> None:
    if len(words) < 2 or words[0] in limits:
        raise IdentitiesError(f"{place}: expected `{LIMITS} TENANT KEY=VALUE ...`, one line a tenant")
    values: dict[str, Any] = {}
    for word in words[1:]:
        key, _, value = word.partition("=")
        number = _LIMIT.fullmatch(value)
        is_whole = number is not None and number[1] is None
        if key not in _KEYS or key in values or number is None:
            raise IdentitiesError(
                f"{place}: {word[:80]!r}; expected KEY=NUMBER of {', '.join(_KEYS)}, each once"
            )
        is_negative = value.startswith("-") and key != "priority"
        is_nothing = key == "weight" and not float(value)
        if (key in _WHOLE and not is_whole) or is_negative or is_nothing:
            raise IdentitiesError(f"{place}: {word[:80]!r}; expected a number that {key} can have")
        values[key] = int(value) if key in _WHOLE else float(value)
    limits[words[0]] = TenantLimits(**values)


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Lines that are neither empty nor comments, with their places."""
    for number, line in enumerate(_text(file).split("\n"), 1):
        content = line.partition("#")[0].strip()
        if content:
            yield f"{file}:{number}", content


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            mode = file.stat().st_mode
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise IdentitiesError(f"{file} cannot be read: {error.strerror}") from error
    if mode & stat.S_IWOTH:
        raise IdentitiesError(f"{file} can be written by every user; expected `chmod o-w {file}`")
    if len(content) > MAX_FILE_BYTES:
        raise IdentitiesError(f"{file} has more than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise IdentitiesError(f"{file}: expected text in UTF-8: {error.reason}") from error


def _identity(place: str, words: list[str]) -> tuple[Identity, str]:
    if len(words) != 4:
        raise IdentitiesError(f"{place}: {len(words)} words; expected NAME TENANT ROLE SHA256")
    name, tenant, role, digest = words
    if fault := name_fault(name, tenant):
        raise IdentitiesError(f"{place}: {fault}")
    if role not in ROLES_IN_FILES:
        raise IdentitiesError(f"{place}: role {role[:80]!r}; expected {', '.join(ROLES_IN_FILES)}")
    if not _DIGEST.fullmatch(digest):
        raise IdentitiesError(
            f"{place}: expected the SHA-256 of a token as 64 hexadecimal digits in lower case"
        )
    return Identity(name, tenant, Role(role)), digest
