# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Job files, as they are submitted and planned. docs/reference/jobs.md describes every key; errors name line and
field."""

from __future__ import annotations

import difflib
import re
import reprlib
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from netfold.controller.jobs.records import Transport
from netfold.controller.jobs.rings import unpaired_worker
from netfold.controller.planning.hierarchy import Ranks
from netfold.controller.planning.plan import JobSpec
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.protocol.wire import COUNT_MAX
from netfold.topologies.fabric import Fabric
from netfold.topologies.yaml_locations import Document, Place, Problem, SpecError, parse_document

MAX_CHARACTERS = 256 << 10
"""Maximum size of a job file."""
MIN_DEFAULT_LEASE_MS, LEASE_MS_A_MEMBER = 3000, 10
"""Of a job file without `lease_ms` (docs/decisions/0049)."""

MOST_TIME_LIMIT_S = 60
"""Of a planner: others wait for their turns meanwhile."""

_DURATION = re.compile(r"\d{1,6}(\.\d{1,3})?(ms|s)$")
_DURATION_EXAMPLES = "50ms or 0.5s"

HostName = Annotated[str, Field(min_length=1, max_length=32)]
OptionValue = bool | int | float | Annotated[str, Field(max_length=256)]


class JobError(SpecError):
    """A job file that cannot be read or does not fit the fabric: file, line, what is wrong, what would be
    right."""


class OnWorkerLoss(StrEnum):
    """What becomes of a job whose worker goes silent."""

    FAIL = "fail"
    CONTINUE = "continue"


class Reroute(StrEnum):
    """Whether a job moves when the traffic of others squeezes it: `on`, with the split of the gradient as it is or
    another, whichever is better; `fixed-split`; or `off`."""

    ON = "on"
    FIXED_SPLIT = "fixed-split"
    OFF = "off"


def _words_of_yaml(value: object) -> object:
    """YAML reads `on` and `off` as truth values."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _no_truth_value(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not a truth value")
    return value


def _duration(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a duration, as in {_DURATION_EXAMPLES}")
    if not _DURATION.match(str(value)):
        unit = "" if isinstance(value, str) else f" ({value}ms if milliseconds are meant)"
        raise ValueError(
            f"expected a number of at most six digits with its unit, as in {_DURATION_EXAMPLES}{unit}"
        )
    return value


_Number = BeforeValidator(_no_truth_value)
Rate = Annotated[float, _Number, Field(gt=0, allow_inf_nan=False)]
Latency = Annotated[float, _Number, Field(ge=0, le=1e6, allow_inf_nan=False)]
Hosts = Annotated[tuple[HostName, ...], Field(min_length=1)]
Count = Annotated[int, _Number, Field(ge=0, le=65_000, strict=True)]


class Numerics(BaseModel):
    """How workers turn numbers into lanes; only of `float32` do the switches have to know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["auto", "block", "half", "quarter", "float32", "fixed", "integer"] = "auto"
    fraction_bits: Annotated[int, _Number, Field(ge=0, le=30)] = 20

    @property
    def floats(self) -> bool:
        """Whether switches add lanes as floats."""
        return self.mode == "float32"


class RanksPerHost(BaseModel):
    """Of a job whose hosts have several ranks; bandwidth and latencies as in planning's Ranks, which has the
    defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_host: Annotated[int, _Number, Field(ge=1, le=1024, strict=True)] = Ranks.per_host
    intra_gbs: Rate = Ranks.intra_gbs
    intra_us: Latency = Ranks.intra_us
    network_us: Latency = Ranks.network_us


class JobFile(BaseModel):
    """A job as it is written: what a planner reads, and how it is run. `published` are a paper's rates for this
    job, by scheme."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    workers: Hosts | Annotated[Count, Field(ge=1)] | None = None
    parameter_servers: tuple[HostName, ...] | Count | None = None
    elements: Annotated[int, _Number, Field(ge=1, le=10**12)] = 1_000_000
    scheme: str = "auto"
    options: dict[str, OptionValue] = {}
    published: dict[str, Rate] = {}
    seed: Annotated[int, _Number, Field(ge=0, le=10**18)] = 0
    priority: Annotated[int, _Number, Field(ge=-100, le=100)] = 0
    rate: Rate | None = None
    min_rate: Rate | None = None
    slots: Annotated[int, _Number, Field(ge=16, le=65_536)] | None = None
    on_worker_loss: OnWorkerLoss = OnWorkerLoss.FAIL
    reroute: Annotated[Reroute, BeforeValidator(_words_of_yaml)] = Reroute.ON
    lease_ms: Annotated[int, _Number, Field(ge=300, le=600_000)] | None = None
    join_s: Annotated[float, _Number, Field(gt=0, le=86_400)] = 120.0
    numerics: Numerics = Numerics()
    transport: Transport = Transport.UDP
    quorum: Annotated[int, _Number, Field(ge=1, le=COUNT_MAX, strict=True)] | None = None
    quorum_deadline: Annotated[str, BeforeValidator(_duration)] = "50ms"
    ranks: RanksPerHost = RanksPerHost()

    @property
    def quorum_deadline_s(self) -> float:
        """Seconds."""
        text = self.quorum_deadline
        return float(text[:-2]) / 1e3 if text.endswith("ms") else float(text[:-1])


class ResolvedJob(BaseModel):
    """A job file that fits the fabric, with its hosts named."""

    model_config = ConfigDict(frozen=True)

    text: str
    file: JobFile
    workers: tuple[str, ...]
    parameter_servers: tuple[str, ...]

    @property
    def lease_ms(self) -> int:
        """Of each member. Large jobs have longer leases by default: a controller reads at most 300 heartbeats of a job
        a second, three a lease."""
        if self.file.lease_ms is not None:
            return self.file.lease_ms
        members = len(self.workers) + len(self.parameter_servers)
        return max(MIN_DEFAULT_LEASE_MS, members * LEASE_MS_A_MEMBER)

    def spec(self, without: frozenset[str] = frozenset()) -> JobSpec:
        """For planners; `without` are hosts that are lost."""
        return JobSpec(
            self.file.name,
            tuple(w for w in self.workers if w not in without),
            tuple(p for p in self.parameter_servers if p not in without),
            self.file.elements,
            self.file.scheme,
            dict(self.file.options),
            Ranks(**self.file.ranks.model_dump()),
        )


def resolve_job(text: str, fabric: Fabric, source: str = "job") -> ResolvedJob:
    """Raises JobError: source, line, what is wrong and what would be right."""
    if len(text) > MAX_CHARACTERS:
        raise JobError(
            source, [Problem(1, 1, f"{len(text)} characters; a job file has at most {MAX_CHARACTERS}")]
        )
    return order_from(parse_document(text, source), text, fabric)


def order_from(document: Document, text: str, fabric: Fabric) -> ResolvedJob:
    """The same of a file that is parsed already. Raises JobError."""
    if not isinstance(document.value, dict):
        raise _error(document, (), "a job is a mapping with at least 'name'")
    try:
        file = JobFile.model_validate(document.value)
    except ValidationError as error:
        raise JobError(
            document.file, [document.problem(*_explain(dict(e))) for e in error.errors()]
        ) from None
    _check_choices(document, file)
    servers = _servers(document, file, fabric)
    workers = _workers(document, file, fabric, servers)
    if file.transport is Transport.ROCE:
        _check_roce(document, file, fabric, workers)
    _check_quorum(document, file, len(workers))
    return ResolvedJob(text=text, file=file, workers=workers, parameter_servers=servers)


def _check_quorum(document: Document, file: JobFile, workers: int) -> None:
    if file.quorum is None:
        return
    if not file.quorum <= workers <= COUNT_MAX:
        what = f"the job has {workers} workers; a quorum is at most that, and for at most {COUNT_MAX} workers"
        raise _error(document, ("quorum",), f"quorum is {file.quorum}, and {what}")
    if file.quorum_deadline_s == 0:
        raise _error(document, ("quorum_deadline",), "quorum_deadline is 0; it must be above that")
    if file.transport is Transport.ROCE:
        raise _error(document, ("quorum",), "a RoCE job has no quorum: it awaits all its workers")
    if file.numerics.mode == "integer":
        raise _error(
            document, ("quorum",), "a job with a quorum adds up floats, and numerics are 'integer' here"
        )
    if file.numerics.mode == "quarter":
        raise _error(
            document,
            ("quorum",),
            "numerics 'quarter' predict sums of all workers, and a quorum may lack some; expected half or block",
        )


def _explain(error: dict[str, object]) -> tuple[Place, str]:
    loc = error["loc"]
    assert isinstance(loc, tuple)
    # pydantic adds the union's branch to the place
    place: Place = tuple(p for p in loc if isinstance(p, int) or str(p).isidentifier())
    if error["type"] == "extra_forbidden":
        groups: dict[str, type[BaseModel]] = {"numerics": Numerics, "ranks": RanksPerHost}
        known = list((groups[str(place[0])] if len(place) > 1 else JobFile).model_fields)
        close = difflib.get_close_matches(str(place[-1]), known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"a job has {', '.join(known)}"
        return place, f"unknown key '{place[-1]}'; {hint}"
    if error["type"] == "missing":
        return place[:-1], f"'{place[-1]}' is missing"
    where = ".".join(map(str, place)) or "the job"
    message = str(error["msg"]).removeprefix("Input ").removeprefix("Value error, ").replace("should", "must")
    return place, f"{where} is {reprlib.repr(error['input'])}: {message}"


def _check_choices(document: Document, file: JobFile) -> None:
    if file.scheme not in SCHEMES:
        raise _error(
            document, ("scheme",), f"scheme '{file.scheme}' is unknown; there are {', '.join(SCHEMES)}"
        )
    limit = file.options.get("time_limit")
    if isinstance(limit, int | float) and limit > MOST_TIME_LIMIT_S:
        raise _error(
            document, ("options", "time_limit"), f"time_limit is {limit:g}; it is at most {MOST_TIME_LIMIT_S}"
        )
    if file.slots is not None and file.slots & (file.slots - 1):
        raise _error(document, ("slots",), f"slots is {file.slots}; it must be a power of two")
    if file.rate is not None and file.min_rate is not None and file.min_rate > file.rate:
        raise _error(document, ("min_rate",), f"min_rate {file.min_rate:g} is above rate {file.rate:g}")


def _check_roce(document: Document, file: JobFile, fabric: Fabric, workers: tuple[str, ...]) -> None:
    place = ("transport",)
    if file.numerics.mode not in ("auto", "block", "quarter", "float32", "integer"):
        mode = file.numerics.mode
        raise _error(
            document,
            ("numerics",),
            f"numerics '{mode}' is not for RoCE; block, quarter, float32 and integer are",
        )
    alone = unpaired_worker(fabric, workers)
    if alone:
        raise _error(document, place, alone)


def _servers(document: Document, file: JobFile, fabric: Fabric) -> tuple[str, ...]:
    own = tuple(h.name for h in fabric.hosts if h.parameter_server)
    chosen = file.parameter_servers
    if isinstance(chosen, tuple):
        return _hosts(document, "parameter_servers", chosen, fabric)
    if chosen is None:
        return own
    if chosen > len(own):
        raise _error(
            document,
            ("parameter_servers",),
            f"{chosen} parameter servers are wanted, fabric '{fabric.name}' has {len(own)}; name hosts instead",
        )
    return own[:chosen]


def _workers(document: Document, file: JobFile, fabric: Fabric, servers: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(file.workers, tuple):
        chosen = _hosts(document, "workers", file.workers, fabric)
        for i, worker in enumerate(chosen):
            if worker in servers and file.parameter_servers is not None:
                raise _error(document, ("workers", i), f"'{worker}' is a parameter server of the job too")
        return chosen
    free = tuple(h.name for h in fabric.hosts if not h.parameter_server and h.name not in servers)
    if file.workers is not None and file.workers > len(free):
        raise _error(
            document,
            ("workers",),
            f"{file.workers} workers are wanted, fabric '{fabric.name}' has {len(free)}",
        )
    return free if file.workers is None else free[: file.workers]


def _hosts(document: Document, key: str, names: tuple[str, ...], fabric: Fabric) -> tuple[str, ...]:
    for i, name in enumerate(names):
        if not fabric.is_host(name):
            close = difflib.get_close_matches(name, [h.name for h in fabric.hosts], n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise _error(document, (key, i), f"'{name}' is no host of fabric '{fabric.name}'{hint}")
        if name in names[:i]:
            raise _error(document, (key, i), f"'{name}' is named twice")
    return names


def _error(document: Document, place: Place, message: str) -> JobError:
    return JobError(document.file, [document.problem(place, message)])
