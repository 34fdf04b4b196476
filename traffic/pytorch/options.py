# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a program's job: `init_process_group("netfold", pg_options=netfold.TorchOptions(...))`, or environment
variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

from netfold.traffic.membership.job_options import JobOptions


@dataclass(frozen=True)
class TorchOptions(JobOptions):
    """The job that rank 0 submits; None: the default of docs/reference/jobs.md. The environment may set each
    option as ``NETFOLD_`` and its name in capitals (``NETFOLD_NUMERICS=half``); the program's value takes precedence.
    """

    report: str = ""
    """Where rank 0 reports at the end why training is not faster: 1: on stderr; else the path of a JSON file. Only rank
    0's value counts."""

    @classmethod
    def of(cls, given: Self | Mapping[str, object] | None) -> Self:
        """The program's options and the environment's. Raises ValueError, which names the option."""
        if given is None:
            return cls.from_environment()
        found = cls._read_environment()
        if not isinstance(given, cls | Mapping):
            raise ValueError(
                f"pg_options is of type {type(given).__name__}; expected netfold.TorchOptions or a mapping"
            )
        options: Mapping[str, object] = given if isinstance(given, Mapping) else vars(given)
        known = {field.name: field.default for field in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise ValueError(f"pg_options has '{name}'; the options are {', '.join(known)}")
            if value != known[name] or name not in found:
                found[name] = value
        return cls(**found)  # type: ignore[arg-type]
