# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Issuers of JSON Web Tokens (RFC 7519): their keys, and the caller that their claims name.

A key has one algorithm, whatever a token's header says: HS256 for a secret, RS256 and ES256 for the public keys of a
JWKS file. So no public key is taken for a secret, and a token without a signature is of no key."""

from __future__ import annotations

import hashlib
import json
import re
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

MAX_FILE_BYTES = 1 << 20
MAX_KEYS = 32
MAX_CACHED = 4096
"""Tokens whose callers are known until they expire."""
MIN_SECRET_BYTES = 32
"""RFC 7518, section 3.2."""
MIN_RSA_BITS = 2048
MAX_LEEWAY_S = 300.0
HS256, RS256, ES256 = "HS256", "RS256", "ES256"
_FORM = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


class IssuerError(ValueError):
    """A file, a key or an option cannot be used."""


class TokenRefusedError(Exception):
    """A JSON Web Token is not accepted. The message says why."""


@dataclass(frozen=True)
class JwtKey:
    """`kid`: "": the key has none."""

    algorithm: str
    kid: str
    key: Any = field(repr=False)


@dataclass(frozen=True)
class ClaimOptions:
    """How claims name a caller.

    name_claim, tenant_claim, role_claim   claims with them; "": none has it
    tenant, role                           of callers whose claims have none
    issuer, audience                       values that `iss` and `aud` have to have; "": `iss` may be any, `aud` none
    leeway                                 seconds by which clocks may differ
    """

    name_claim: str = "sub"
    tenant_claim: str = ""
    role_claim: str = ""
    tenant: str = ""
    role: str = ""
    issuer: str = ""
    audience: str = ""
    leeway: float = 30.0


OPTIONS = tuple(f.name for f in fields(ClaimOptions))


@dataclass(frozen=True)
class JwtIssuer:
    """`digest`: of the file with its keys."""

    keys: tuple[JwtKey, ...] = field(repr=False)
    options: ClaimOptions
    digest: str


@dataclass(frozen=True)
class Claims:
    """The caller that a token names; "": it says nothing of the tenant, or the role."""

    name: str
    tenant: str
    role: str
    until: float


def is_jwt(token: bytes) -> bool:
    """Whether a token has the form of a JSON Web Token."""
    return _FORM.fullmatch(token) is not None


class JwtVerifier:
    """Verifies tokens of some issuers. A token is verified once, and known until it expires. `now`: wall clock."""

    def __init__(self, issuers: tuple[JwtIssuer, ...], now: Callable[[], float] = time.time) -> None:
        self.issuers = issuers
        self._now = now
        self._known: dict[bytes, Claims] = {}

    def claims(self, token: bytes) -> Claims:
        """The claims of a token. Raises TokenRefusedError."""
        digest = hashlib.sha256(token).digest()
        known = self._known.get(digest)
        if known is None or known.until <= self._now():
            self._known.pop(digest, None)
            known = self._verified(token)
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            self._known[digest] = known
        return known

    def _verified(self, token: bytes) -> Claims:
        import jwt  # noqa: PLC0415  # optional

        # Versions of PyJWT differ in the faults of JSON and of numbers that they turn into an error of their own.
        faults = (jwt.PyJWTError, ArithmeticError, RecursionError, TypeError, ValueError)
        try:
            header = jwt.get_unverified_header(token)
        except faults as error:
            raise TokenRefusedError(f"the token cannot be read: {error}") from error
        algorithm, kid = header.get("alg"), header.get("kid")
        if "crit" in header:
            raise TokenRefusedError("the token has critical extensions in its header; expected none")
        refusal = f"the token is signed by no {algorithm!r} key of this controller"[:200]
        for issuer in self.issuers:
            for key in issuer.keys:
                if key.algorithm != algorithm or (kid and key.kid and kid != key.kid):
                    continue
                try:
                    found = jwt.decode(
                        token,
                        key.key,
                        algorithms=[key.algorithm],
                        audience=issuer.options.audience or None,
                        issuer=issuer.options.issuer or None,
                        leeway=issuer.options.leeway,
                        options={"require": ["exp"]},
                    )
                    return _claims(found, issuer.options)
                except jwt.InvalidSignatureError:
                    continue
                except faults as error:
                    refusal = f"the token is refused: {error}"
        raise TokenRefusedError(refusal)


def _claims(found: Mapping[str, Any], options: ClaimOptions) -> Claims:
    def claim(name: str, default: str) -> str:
        value = found.get(name, default) if name else default
        if not isinstance(value, str):
            raise TokenRefusedError(f"the token's claim '{name}' is no text")
        return value

    return Claims(
        claim(options.name_claim, ""),
        claim(options.tenant_claim, options.tenant),
        claim(options.role_claim, options.role),
        float(found["exp"]) + options.leeway,
    )


def read_issuer(kind: str, file: Path, values: Mapping[str, str]) -> JwtIssuer:
    """An issuer with a secret (`hs256`) or public keys (`jwks`) in a file. Raises IssuerError."""
    try:
        import jwt  # noqa: F401, PLC0415  # optional
    except ImportError as error:
        raise IssuerError("JSON Web Tokens need PyJWT; install netfold[jwt]") from error
    content = read_protected(file, is_secret=kind == "hs256")
    if kind == "hs256":
        keys: tuple[JwtKey, ...] = (_secret(file, content),)
    elif kind == "jwks":
        keys = _public_keys(file, content)
    else:
        raise IssuerError(f"kind {kind[:80]!r}; expected hs256 or jwks")
    return JwtIssuer(keys, _options(values), hashlib.sha256(content).hexdigest())


def _options(values: Mapping[str, str]) -> ClaimOptions:
    leeway = values.get("leeway", "30")
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,3})?", leeway) or float(leeway) > MAX_LEEWAY_S:
        raise IssuerError(f"leeway={leeway[:80]}; expected seconds, at most {MAX_LEEWAY_S:g}")
    texts = {key: value for key, value in values.items() if key != "leeway"}
    return ClaimOptions(**texts, leeway=float(leeway))


def read_protected(file: Path, *, is_secret: bool = False) -> bytes:
    """The content of a file that names callers or has their keys: other users may not write it. Raises IssuerError."""
    try:
        with file.open("rb") as opened:
            mode, content = file.stat().st_mode, opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise IssuerError(f"{file} cannot be read: {error.strerror}") from error
    if is_secret and mode & stat.S_IRWXO:
        raise IssuerError(f"{file} has a secret that every user can read; expected `chmod o-rwx {file}`")
    if mode & stat.S_IWOTH:
        raise IssuerError(f"{file} can be written by every user; expected `chmod o-w {file}`")
    if len(content) > MAX_FILE_BYTES:
        raise IssuerError(f"{file} has more than {MAX_FILE_BYTES} bytes")
    return content


def _secret(file: Path, content: bytes) -> JwtKey:
    if b"-----BEGIN" in content or b'"keys"' in content:
        raise IssuerError(
            f"{file} has keys in PEM or a JWKS; expected a secret. Public keys go to `jwt jwks`"
        )
    if len(content) < MIN_SECRET_BYTES:
        raise IssuerError(f"{file} has {len(content)} bytes; expected {MIN_SECRET_BYTES} or more")
    return JwtKey(HS256, "", content)


def _public_keys(file: Path, content: bytes) -> tuple[JwtKey, ...]:
    """The keys of a JWKS (RFC 7517) that RS256 and ES256 take; others of the issuer are left out."""
    try:
        rows = json.loads(content)["keys"]
        known = [row for row in rows if row.get("use", "sig") == "sig"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IssuerError(f"{file}: expected a JWKS, a JSON object with `keys`") from error
    if len(known) > MAX_KEYS:
        raise IssuerError(f"{file} has {len(known)} keys; expected at most {MAX_KEYS}")
    keys = [key for row in known if (key := _public_key(file, row)) is not None]
    if not keys:
        raise IssuerError(f"{file} has no key for RS256 or ES256")
    return tuple(keys)


def _public_key(file: Path, row: Mapping[str, Any]) -> JwtKey | None:
    import jwt  # noqa: PLC0415  # optional

    kid = str(row.get("kid", ""))
    if "d" in row or row.get("kty") == "oct":
        raise IssuerError(f"{file}: key {kid[:80]!r} is secret; expected public keys")
    kind = (row.get("kty"), row.get("crv"))
    algorithm = RS256 if kind == ("RSA", None) else ES256 if kind == ("EC", "P-256") else None
    if algorithm is None or row.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(dict(row), algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise IssuerError(f"{file}: key {kid[:80]!r} cannot be read: {error}") from error
    if algorithm == RS256 and key.key_size < MIN_RSA_BITS:
        raise IssuerError(
            f"{file}: key {kid[:80]!r} has {key.key_size} bits; expected {MIN_RSA_BITS} or more"
        )
    return JwtKey(algorithm, kid, key)
