# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The token of the members of one job: it has the job's name, and its proof is an HMAC by the controller's key. The
controller can make it again, so it is stored nowhere."""

from __future__ import annotations

import base64
import hashlib
import hmac

_PREFIX = "m"
"""Short: MPI programs pass a token in the 128 bytes of a job's name."""
_SEPARATOR = ":"
"""No name of a job has it."""
_PARTS = 4


def job_token(key: bytes, job: str, serial: str) -> str:
    """`serial` tells apart jobs of one name."""
    proof = hmac.digest(key, f"{_PREFIX}\0{job}\0{serial}".encode(), hashlib.sha256)
    text = base64.urlsafe_b64encode(proof).decode().rstrip("=")
    return _SEPARATOR.join((_PREFIX, job, serial, text))


def job_of_token(token: str) -> str | None:
    """The name in a job's token, which may be forged; None for another text."""
    parts = token.split(_SEPARATOR)
    return parts[1] if len(parts) == _PARTS and parts[0] == _PREFIX else None


def verified_job(key: bytes, token: bytes) -> tuple[str, str] | None:
    """Name and serial of the job whose members have the token; None for a forged one, and any other text."""
    text = token.decode(errors="replace")
    name = job_of_token(text)
    if name is None:
        return None
    serial = text.split(_SEPARATOR)[2]
    return (name, serial) if hmac.compare_digest(job_token(key, name, serial).encode(), token) else None
