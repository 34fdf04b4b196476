# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two controllers of one store accept the same tokens. A leader publishes a digest in the store, from
which no token can be read."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from netfold.controller.service.server import Security

_SALT_BYTES = 16
_COST = {"n": 2**14, "r": 8, "p": 1}
"""Cost of scrypt (RFC 7914): 16 MiB, and tens of milliseconds a guess."""


def token_digest(security: Security | None) -> str:
    """A digest of the tokens, different at each call; "" for a controller without tokens, as at a Unix socket."""
    return "" if security is None else _digest(security, secrets.token_bytes(_SALT_BYTES))


def has_tokens_of(security: Security | None, published: str) -> bool:
    """Whether this controller accepts the tokens of the one that published the digest `published` (by `token_digest`).
    "": that one has no tokens, and this one accepts its callers."""
    if not published:
        return True
    salt = bytes.fromhex(published.partition(":")[0])
    return security is not None and hmac.compare_digest(_digest(security, salt), published)


def _digest(security: Security, salt: bytes) -> str:
    tokens = [sorted(group) for group in (security.tokens, security.member_tokens)]
    return f"{salt.hex()}:{hashlib.scrypt(repr(tokens).encode(), salt=salt, **_COST).hex()}"
