# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Identities of callers, and the file that lists them: digests of their tokens, issuers of JSON Web Tokens, and the
limits of tenants."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from netfold.controller.jobs.submitter import TenantLimits
from netfold.controller.service.jwt_issuers import (
    OPTIONS,
    Claims,
    IssuerError,
    JwtIssuer,
    JwtVerifier,
    TokenRefusedError,
    is_jwt,
    read_issuer,
    read_protected,
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,63}")
LIMITS, JWT = "limits", "jwt"
"""First words of lines with limits and issuers, and so no names. `jwt` in place of a digest: an issuer names the
caller."""
_LIMIT = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?")
_KEYS = tuple(f.name for f in fields(TenantLimits))
_WHOLE = ("jobs", "queued", "priority")
_POSITIVE = ("calls", "weight")
UNLIMITED = "calls=unlimited"
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
    """Identities by the digest of their token. `by_name`: those that issuers name. `limits`: by tenant."""

    by_digest: Mapping[str, Identity] = field(default_factory=dict)
    by_name: Mapping[str, Identity] = field(default_factory=dict)
    limits: Mapping[str, TenantLimits] = field(default_factory=dict)
    verifier: JwtVerifier = field(default_factory=lambda: JwtVerifier(()))

    def of_token(self, token: bytes) -> Identity | None:
        """The holder of a token. The digest hides from an attacker's clock how much of a guess is right. Raises
        TokenRefusedError for a JSON Web Token that no issuer vouches for."""
        found = self.by_digest.get(digest_of(token))
        if found is not None or not self.verifier.issuers or not is_jwt(token):
            return found
        return self._of_claims(self.verifier.claims(token))

    def _of_claims(self, claims: Claims) -> Identity:
        """The caller that a token names: as the file has it, or else as its claims have it."""
        known = self.by_name.get(claims.name)
        if known is not None:
            return known
        if fault := name_fault(claims.name, claims.tenant):
            raise TokenRefusedError(f"the token names a caller with {fault}")
        if claims.role not in ROLES_IN_FILES:
            raise TokenRefusedError(
                f"the token gives the role {claims.role[:80]!r}; expected {', '.join(ROLES_IN_FILES)}"
            )
        return _limited(Identity(claims.name, claims.tenant, Role(claims.role)), self.limits)


def digest_of(token: bytes) -> str:
    """The digest in a file of identities. Tokens are random, so that a digest without salt reveals none."""
    return hashlib.sha256(token).hexdigest()


def name_fault(name: str, tenant: str) -> str:
    """Why a caller cannot have these; "": it can."""
    for what, value in (("name", name), ("tenant", tenant)):
        if not _NAME.fullmatch(value) or value in (LIMITS, JWT):
            return f"{what} {value[:80]!r}; expected at most 64 letters, digits, '_', '.', ':', '@' and '-'"
    return ""


def identity_line(identity: Identity, token: str) -> str:
    """The line of a file of identities."""
    return f"{identity.name} {identity.tenant} {identity.role} {digest_of(token.encode())}"


def read_identities(file: Path) -> Identities:
    """Read lines `NAME TENANT ROLE SHA256`, `limits TENANT KEY=VALUE ...` and `jwt KIND FILE KEY=VALUE ...`. Raises
    IdentitiesError."""
    found: dict[str, Identity] = {}
    named: dict[str, Identity] = {}
    issuers: list[JwtIssuer] = []
    known: dict[str, Identity] = {}
    limits: dict[str, TenantLimits] = {}
    for place, line in _lines(file):
        words = line.split()
        if words[0] == LIMITS:
            _add_limits(limits, place, words[1:])
            continue
        if words[0] == JWT:
            issuers.append(_issuer(file, place, words[1:]))
            continue
        identity, digest = _identity(place, words)
        if known.setdefault(identity.name, identity) != identity:
            raise IdentitiesError(f"{place}: '{identity.name}' has another tenant or role in an earlier line")
        if digest == JWT:
            named[identity.name] = identity
            continue
        if digest in found:
            raise IdentitiesError(f"{place}: the token of '{found[digest].name}' again; expected another one")
        found[digest] = identity
    if named and not issuers:
        raise IdentitiesError(
            f"{file}: '{min(named)}' has a JSON Web Token, and there is no line of an issuer"
        )
    if not found and not issuers:
        raise IdentitiesError(f"{file}: expected at least one line NAME TENANT ROLE SHA256")
    tenants = {identity.tenant for identity in known.values()} | {i.options.tenant for i in issuers}
    strangers = limits.keys() - tenants
    names_tenants = any(i.options.tenant_claim for i in issuers) or any(
        identity.role is Role.OPERATOR for identity in known.values()
    )  # an operator submits for users of any tenant
    if strangers and not names_tenants:
        raise IdentitiesError(f"{file}: limits of '{min(strangers)}', a tenant that no identity has")
    return Identities(
        {digest: _limited(identity, limits) for digest, identity in found.items()},
        {name: _limited(identity, limits) for name, identity in named.items()},
        limits,
        JwtVerifier(tuple(issuers)),
    )


def _issuer(file: Path, place: str, words: list[str]) -> JwtIssuer:
    if len(words) < 2:
        raise IdentitiesError(f"{place}: expected `{JWT} hs256|jwks FILE KEY=VALUE ...`")
    values: dict[str, str] = {}
    for word in words[2:]:
        key, _, value = word.partition("=")
        name = key.replace("-", "_")
        if name not in OPTIONS or name in values or not value:
            shown = ", ".join(option.replace("_", "-") for option in OPTIONS)
            raise IdentitiesError(f"{place}: {word[:80]!r}; expected KEY=VALUE of {shown}, each once")
        values[name] = value
    if (role := values.get("role", Role.USER)) not in ROLES_IN_FILES:
        raise IdentitiesError(f"{place}: role={role[:80]!r}; expected {', '.join(ROLES_IN_FILES)}")
    try:
        return read_issuer(words[0], file.parent / words[1], values)
    except IssuerError as error:
        raise IdentitiesError(f"{place}: {error}") from error


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
        if word == UNLIMITED and key not in values:
            values[key] = math.inf
            continue
        number = _LIMIT.fullmatch(value)
        is_whole = number is not None and number[1] is None
        if key not in _KEYS or key in values or number is None:
            raise IdentitiesError(
                f"{place}: {word[:80]!r}; expected KEY=NUMBER of {', '.join(_KEYS)}, each once, or {UNLIMITED}"
            )
        is_negative = value.startswith("-") and key != "priority"
        is_nothing = key in _POSITIVE and not float(value)
        if (key in _WHOLE and not is_whole) or is_negative or is_nothing:
            kind = "a whole number" if key in _WHOLE else "a number"
            smallest = "" if key == "priority" else " above 0" if key in _POSITIVE else ", 0 or more"
            raise IdentitiesError(f"{place}: {word[:80]!r}; expected {kind}{smallest}")
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
        return read_protected(file).decode()
    except IssuerError as error:
        raise IdentitiesError(str(error)) from error
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
    if digest != JWT and not _DIGEST.fullmatch(digest):
        raise IdentitiesError(
            f"{place}: expected the SHA-256 of a token as 64 hexadecimal digits in lower case"
        )
    return Identity(name, tenant, Role(role)), digest
