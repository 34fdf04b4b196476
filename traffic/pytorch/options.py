# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a program's job: `init_process_group("netfold", pg_options=netfold.TorchOptions(...))`, or environment
variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Self

from netfold.traffic.errors import ConflictingTimeoutsError
from netfold.traffic.membership.job_options import LEASE_MS, JobOptions

_LEASE_PART = 2 / 3
FALLBACK_S = 30.0
_FALLBACK_PART = 1 / 2
_MIN_LEASE_MS = 300  # of a job file


class Fallback(StrEnum):
    """The choice for a job that does not start. All ranks of a group do the same."""

    FAIL = "fail"
    GLOO = "gloo"


@dataclass(frozen=True)
class TorchOptions(JobOptions):
    """The job that rank 0 submits; None: the default of docs/reference/jobs.md. The environment may set each
    option as ``NETFOLD_`` and its name in capitals (``NETFOLD_NUMERICS=half``); the program's value takes precedence.
    """

    group_rate: float | None = None
    """Maximum rate of each host in the job of a group of some ranks. Such groups have no options of their own; one that
    does not start goes by Gloo. None: all of them do. Only rank 0's value counts. Needs `rate`."""
    fallback: str = Fallback.FAIL
    """The choice of all ranks when the job does not start: fail, or gloo. Equal at all ranks."""
    fallback_s: float | None = None
    """Time for the start of the job before all ranks go by Gloo, at most half of what is left of the group's timeout;
    None: FALLBACK_S. It counts from the moment at which all ranks are there. Equal at all ranks."""
    report: str = ""
    """Where rank 0 reports at the end why training is not faster: 1: on stderr; else the path of a JSON file. Only rank
    0's value counts."""

    @property
    def _timeout(self) -> None:
        """DeviceMesh reads it of options: none of their own."""

    def within(self, timeout: float) -> Self:
        """These with a lease that ends before a call does, in `timeout` seconds of the group: the error names the lost
        rank then. Raises ConflictingTimeoutsError."""
        if self.fallback_s is not None and self.fallback_s >= timeout:
            raise ConflictingTimeoutsError(
                f"fallback_s is {self.fallback_s:g}, and the group's timeout {timeout:g} s; expected a time below the "
                "timeout"
            )
        if self.lease_ms is None:
            lease = min(LEASE_MS, round(1000 * timeout * _LEASE_PART))
            return replace(self, lease_ms=max(_MIN_LEASE_MS, lease))
        if self.lease_ms >= 1000 * timeout:
            raise ConflictingTimeoutsError(
                f"lease_ms is {self.lease_ms}, and the group's timeout {timeout:g} s; expected a lease below the "
                "timeout"
            )
        return self

    def start_within(self, remaining: float) -> float:
        """Seconds for the start of the job; `remaining`: of the group's timeout. Gloo connects after it."""
        if self.fallback == Fallback.FAIL:
            return remaining
        return min(FALLBACK_S if self.fallback_s is None else self.fallback_s, remaining * _FALLBACK_PART)

    @property
    def fallback_rule(self) -> str:
        """`fallback` and `fallback_s`, for messages."""
        return self.fallback if self.fallback_s is None else f"{self.fallback} after {self.fallback_s:g} s"

    def of_a_group(self, rate: float) -> Self:
        """Those of a group without options."""
        return replace(
            self,
            job="",
            rate=rate,
            group_rate=None,
            queue=False,
            report="",
            fallback=Fallback.GLOO,
            fallback_s=None,
        )

    @classmethod
    def of(cls, given: Self | Mapping[str, object] | None) -> Self:
        """The program's options and the environment's. Raises ValueError, which names the option."""
        if given is None:
            return cls.from_environment()._checked()
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
        return cls(**found)._checked()  # type: ignore[arg-type]

    def _checked(self) -> Self:
        if self.group_rate is not None and self.rate is None:
            raise ValueError("group_rate needs rate: a job without rate leaves groups nothing")
        if self.fallback not in tuple(Fallback):
            raise ValueError(f"fallback is '{self.fallback}'; expected {' or '.join(Fallback)}")
        if self.fallback_s is not None and not self.fallback_s > 0:
            raise ValueError(f"fallback_s is {self.fallback_s:g}; expected a time above 0")
        return self
