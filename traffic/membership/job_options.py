# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of the job that a program submits for itself, from environment variables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

from netfold.protocol.environment import Variable

_BOOLEANS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_EXPECTED = {
    "queue": "1, true, yes, 0, false or no",
    "priority": "an integer",
    "lease_ms": "an integer",
    "rate": "a number",
    "group_rate": "a number",
    "fallback_s": "a number",
}

LEASE_MS = 20_000
"""A rank may stand still for seconds: it saves a checkpoint, or its machine is busy."""


@dataclass(frozen=True)
class JobOptions:
    """None: the default of docs/reference/jobs.md. The environment may set each option as ``NETFOLD_`` and its name in
    capitals (``NETFOLD_NUMERICS=half``)."""

    job: str = ""
    """Name of the job; "": a random one."""
    numerics: str | None = None
    """auto, block, half, quarter, float32, fixed or integer."""
    scheme: str | None = None
    """Planner."""
    rate: float | None = None
    """Maximum rate of each host, in the fabric's unit."""
    priority: int | None = None
    """Priority in the queue, -100 to 100."""
    queue: bool = True
    """Wait for capacity within the group's timeout, as a restarted program must until the lease of its dead job has
    expired; False: fail at once."""
    lease_ms: int | None = None
    """A rank without a heartbeat for this time is lost, ms; None: LEASE_MS."""

    @classmethod
    def from_environment(cls) -> Self:
        """Raises ValueError, which names the variable."""
        return cls(**cls._read_environment())  # type: ignore[arg-type]

    @classmethod
    def _read_environment(cls) -> dict[str, object]:
        """The options that the environment sets."""
        found: dict[str, object] = {}
        for field in fields(cls):
            text = os.environ.get(Variable[field.name.upper()])
            if text:
                found[field.name] = _read(field.name, text)
        return found

    def job_file(self, name: str, hosts: Sequence[str]) -> dict[str, object]:
        """The keys of the job file."""
        keys: dict[str, object] = {"name": name, "workers": list(hosts), "parameter_servers": 0}
        if self.numerics is not None:
            keys["numerics"] = {"mode": self.numerics}
        keys["lease_ms"] = LEASE_MS
        for key in ("scheme", "rate", "priority", "lease_ms"):
            value = getattr(self, key)
            if value is not None:
                keys[key] = value
        return keys


def _read(name: str, text: str) -> object:
    try:
        if name == "queue":
            return _BOOLEANS[text.lower()]
        if name in ("priority", "lease_ms"):
            return int(text)
        return float(text) if _EXPECTED.get(name) == "a number" else text
    except (KeyError, ValueError):
        raise ValueError(f"{Variable[name.upper()]}='{text}': expected {_EXPECTED[name]}") from None
