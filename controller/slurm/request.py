# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A Slurm job that asks for netfold: what its prolog finds in the environment, and the file of its netfold job."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

PLUGIN_OPTION = "SPANK__SLURM_SPANK_OPTION_netfold_netfold"
"""The variable in which Slurm brings the option of spank_netfold.c to a prolog."""
NO_ARGUMENT = ("", "(null)")
COMMENT = "netfold"
PREFIX = "slurm-"

MARK = "# made by netfold slurm\n"
"""First line of each job's file: a job of the same name without it is another's."""

PROGRAM_LEASE_MS = 20_000
"""As of the jobs that PyTorch and MPI programs submit: a rank may stand still for seconds."""
MOST_JOIN_S, MOST_RUN_S = 86_400, 366 * 86_400
"""Limits of `join_s` and `max_s`. Planners, which jobs/file.py imports, would double the time of each prolog."""
END_S = 60
"""Slurm ends a job by itself: its netfold job has so much longer, and is the later one to end."""

_NUMBER = r"-?[0-9]{1,9}(\.[0-9]{1,6})?"
_WORD = r"[a-z0-9-]{1,32}"
KEYS = {
    "rate": _NUMBER,
    "min_rate": _NUMBER,
    "priority": r"-?[0-9]{1,3}",
    "lease_ms": r"[0-9]{1,6}",
    "scheme": _WORD,
    "numerics": _WORD,
    "on_worker_loss": _WORD,
}
"""Keys of a job file that a user may set, and the form of their values."""


class SlurmError(Exception):
    """A wish of a Slurm job is wrong, or Slurm does not answer. The message has the cause."""


@dataclass(frozen=True)
class SlurmJob:
    """`account`: the user, where Slurm has no accounts. `nodes`: as Slurm writes them, `n[1-4]`. `options`: None: it
    asks for nothing."""

    number: int
    user: str
    uid: int
    account: str
    nodes: str
    options: str | None

    @property
    def name(self) -> str:
        """The name of its netfold job."""
        return f"{PREFIX}{self.number}"

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """The job of a PrologSlurmctld or an EpilogSlurmctld. Raises SlurmError."""
        number, uid = (_digits(environment, f"SLURM_JOB_{key}") for key in ("ID", "UID"))
        user = environment.get("SLURM_JOB_USER", "")
        return cls(
            number=number,
            user=user,
            uid=uid,
            account=environment.get("SLURM_JOB_ACCOUNT", "").replace("(null)", "") or user,
            nodes=environment.get("SLURM_JOB_NODELIST", ""),
            options=_options(environment),
        )


def read_keys(text: str) -> dict[str, object]:
    """The keys of a job file in `rate:10,numerics:half`. Raises SlurmError."""
    keys: dict[str, object] = {}
    for part in text.split(",") if text else []:
        key, _, value = part.partition(":")
        if key not in KEYS or key in keys or not re.fullmatch(KEYS[key], value):
            raise SlurmError(
                f"netfold's option {part[:80]!r}; expected KEY:VALUE of {', '.join(KEYS)}, each once"
            )
        number = KEYS[key] is _NUMBER
        keys[key] = float(value) if number else value if KEYS[key] is _WORD else int(value)
    if "numerics" in keys:
        keys["numerics"] = {"mode": keys["numerics"]}
    return keys


def job_file(job: SlurmJob, hosts: Sequence[str], limit_s: float | None) -> str:
    """The file of the netfold job. `limit_s`: time limit of the Slurm job; None: none. Raises SlurmError."""
    keys: dict[str, object] = {
        "name": job.name,
        "workers": list(hosts),
        "parameter_servers": 0,
        "lease_ms": PROGRAM_LEASE_MS,
        "join_s": MOST_JOIN_S,
    }
    if limit_s is not None:
        keys["max_s"] = min(limit_s + END_S, MOST_RUN_S)
        keys["join_s"] = min(limit_s + END_S, MOST_JOIN_S)
    return MARK + json.dumps({**keys, **read_keys(job.options or "")})


def number_of(name: str, file: str) -> int | None:
    """The number of the Slurm job whose netfold job has this name and file; None: it is another's."""
    found = re.fullmatch(rf"{PREFIX}([0-9]{{1,10}})", name)
    return int(found[1]) if found is not None and file.startswith(MARK) else None


def _options(environment: Mapping[str, str]) -> str | None:
    given = environment.get(PLUGIN_OPTION)
    if given is not None:
        return "" if given in NO_ARGUMENT else given
    word, _, options = environment.get("SLURM_JOB_COMMENT", "").partition(":")
    return options if word == COMMENT else None


def _digits(environment: Mapping[str, str], variable: str) -> int:
    value = environment.get(variable, "")
    if not re.fullmatch(r"[0-9]{1,10}", value):
        raise SlurmError(f"{variable} is {value[:80]!r}; expected a number, as Slurm sets it for its prologs")
    return int(value)
