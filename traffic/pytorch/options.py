# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a program may say about its job: `init_process_group("netfold", pg_options=netfold.TorchOptions(...))`, or its
environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

_TRUE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class TorchOptions:
    """The job that rank 0 submits; what is None is as docs/jobs.md has it. Each one may also come from the environment,
    as NETFOLD_ and its name in capitals (NETFOLD_NUMERICS=half); what the program says goes first.

    job          name; "": one is made up
    numerics     how numbers become lanes: block, half, fixed or integer
    scheme       the planner
    rate         at most so much for each host, in the fabric's unit
    priority     in the queue
    queue        wait for room in place of a refusal
    lease_ms     a rank that is silent for so long is lost
    """

    job: str = ""
    numerics: str | None = None
    scheme: str | None = None
    rate: float | None = None
    priority: int | None = None
    queue: bool = False
    lease_ms: int | None = None

    @classmethod
    def of(cls, given: Self | Mapping[str, object] | None) -> Self:
        """What the program gave, and the environment has. Raises ValueError, which names the option."""
        found: dict[str, object] = {}
        for field in fields(cls):
            text = os.environ.get(f"NETFOLD_{field.name.upper()}")
            if text:
                found[field.name] = _read(field.name, text)
        if given is None:
            return cls(**found)  # type: ignore[arg-type]
        if not isinstance(given, cls | Mapping):
            raise ValueError(
                f"pg_options is a {type(given).__name__}; netfold takes netfold.TorchOptions or a mapping"
            )
        said: Mapping[str, object] = given if isinstance(given, Mapping) else vars(given)
        known = {field.name: field.default for field in fields(cls)}
        for name, value in said.items():
            if name not in known:
                raise ValueError(f"pg_options has '{name}'; netfold knows {', '.join(known)}")
            if value != known[name] or name not in found:
                found[name] = value
        return cls(**found)  # type: ignore[arg-type]

    def job_file(self, name: str, hosts: Sequence[str]) -> dict[str, object]:
        """The keys of the job file."""
        keys: dict[str, object] = {"name": name, "workers": list(hosts), "parameter_servers": 0}
        if self.numerics is not None:
            keys["numerics"] = {"mode": self.numerics}
        for key in ("scheme", "rate", "priority", "lease_ms"):
            value = getattr(self, key)
            if value is not None:
                keys[key] = value
        return keys


def _read(name: str, text: str) -> object:
    try:
        if name == "queue":
            return _TRUE[text.lower()]
        if name in ("priority", "lease_ms"):
            return int(text)
        return float(text) if name == "rate" else text
    except (KeyError, ValueError):
        raise ValueError(f"NETFOLD_{name.upper()} is '{text}', which is no value of it") from None
