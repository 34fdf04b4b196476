# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Job files, as they are submitted and planned. docs/reference/jobs.md describes every key; errors name line and
field."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
from netfold.topologies.faults import Place, hint
from netfold.topologies.model_errors import model_problems
from netfold.topologies.spec import Number
from netfold.topologies.yaml_locations import Document, Problem, SpecError, parse_document

MAX_CHARACTERS = 256 << 10
"""Maximum size of a job file."""
MIN_DEFAULT_LEASE_MS, LEASE_MS_A_MEMBER = 3000, 10
"""Lease of a job whose file has no `lease_ms` (docs/decisions/0049)."""

SANDBOX_RATE = 1e-3
"""Rate that a sandbox reserves, as a fraction of its slowest worker's link: its packets are few."""

MOST_TIME_LIMIT_S = 60
"""Longest time of a planner: other jobs wait for their turns meanwhile."""

MOST_RUN_S = 366 * 86_400
"""The longest `max_s`."""

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_NAME_RULE = "a letter or digit, then at most 63 letters, digits, '_', '.' and '-'"
_DURATION = re.compile(r"\d{1,6}(\.\d{1,3})?(ms|s)$")
_DURATION_EXAMPLES = "50ms or 0.5s"

HostName = Annotated[str, Field(min_length=1, max_length=32)]
OptionValue = bool | int | float | Annotated[str, Field(max_length=256)]


class JobError(SpecError):
    """A job file that cannot be read or does not fit the fabric: file, line, what is wrong, what would be
    right."""


class OnWorkerLoss(StrEnum):
    """The fate of a job whose worker goes silent."""

    FAIL = "fail"
    CONTINUE = "continue"
    RECONFIGURE = "reconfigure"
    """The part of all its workers ends, and the job waits `join_s` for the next ones."""


class Reroute(StrEnum):
    """Whether a job moves when the traffic of others squeezes it: `on`, with the split of the gradient as it is or
    another, whichever is better; `fixed-split`; or `off`."""

    ON = "on"
    FIXED_SPLIT = "fixed-split"
    OFF = "off"


class TargetsOption(StrEnum):
    """Whether a job's scatters and gathers carry each block to, or from, its owner alone: `auto`, where switches and
    members know that; `required`, or the job is refused; or `off`."""

    AUTO = "auto"
    REQUIRED = "required"
    OFF = "off"


def _words_of_yaml(value: object) -> object:
    """YAML reads `on` and `off` as truth values."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _duration(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a duration, as in {_DURATION_EXAMPLES}")
    if not _DURATION.match(str(value)):
        unit = "" if isinstance(value, str) else f" ({value}ms if milliseconds are meant)"
        raise ValueError(
            f"expected a number of at most six digits with its unit, as in {_DURATION_EXAMPLES}{unit}"
        )
    return value


Rate = Annotated[float, Number, Field(gt=0, allow_inf_nan=False)]
Latency = Annotated[float, Number, Field(ge=0, le=1e6, allow_inf_nan=False)]
Hosts = Annotated[tuple[HostName, ...], Field(min_length=1)]
Count = Annotated[int, Number, Field(ge=0, le=65_000, strict=True)]


class Numerics(BaseModel):
    """How workers turn numbers into lanes; only of `float32` do the switches have to know."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["auto", "block", "half", "quarter", "float32", "fixed", "integer"] = "auto"
    fraction_bits: Annotated[int, Number, Field(ge=0, le=30)] = 20

    @property
    def floats(self) -> bool:
        """Whether switches add lanes as floats."""
        return self.mode == "float32"


class RanksPerHost(BaseModel):
    """The ranks of a job whose hosts have several; bandwidth and latencies as in planning's Ranks, which has the
    defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    per_host: Annotated[int, Number, Field(ge=1, le=1024, strict=True)] = Ranks.per_host
    intra_gbs: Rate = Ranks.intra_gbs
    intra_us: Latency = Ranks.intra_us
    network_us: Latency = Ranks.network_us


class JobFile(BaseModel):
    """A job as it is written: what a planner reads, and how it is run. `published` are a paper's rates for this
    job, by scheme."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=_NAME)]
    workers: Hosts | Annotated[Count, Field(ge=1)] | None = None
    parameter_servers: tuple[HostName, ...] | Count | None = None
    elements: Annotated[int, Number, Field(ge=1, le=10**12)] = 1_000_000
    scheme: str = "auto"
    options: dict[str, OptionValue] = {}
    published: dict[str, Rate] = {}
    seed: Annotated[int, Number, Field(ge=0, le=10**18)] = 0
    priority: Annotated[int, Number, Field(ge=-100, le=100)] = 0
    rate: Rate | None = None
    min_rate: Rate | None = None
    slots: Annotated[int, Number, Field(ge=16, le=65_536)] | None = None
    on_worker_loss: OnWorkerLoss = OnWorkerLoss.FAIL
    reroute: Annotated[Reroute, BeforeValidator(_words_of_yaml)] = Reroute.ON
    lease_ms: Annotated[int, Number, Field(ge=300, le=600_000)] | None = None
    join_s: Annotated[float, Number, Field(gt=0, le=86_400)] = 120.0
    max_s: Annotated[float, Number, Field(gt=0, le=MOST_RUN_S)] | None = None
    numerics: Numerics = Numerics()
    transport: Transport = Transport.UDP
    quorum: Annotated[int, Number, Field(ge=1, le=COUNT_MAX, strict=True)] | None = None
    quorum_deadline: Annotated[str, BeforeValidator(_duration)] = "50ms"
    targets: Annotated[TargetsOption, BeforeValidator(_words_of_yaml)] = TargetsOption.AUTO
    ranks: RanksPerHost = RanksPerHost()
    sandbox: Annotated[bool, Field(strict=True)] = False

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
        """Lease of each member. Large jobs have longer ones by default: a controller reads at most 300 heartbeats of a
        job a second, three a lease."""
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


@dataclass(frozen=True)
class JobHosts:
    """The hosts of a job that has been accepted."""

    workers: tuple[str, ...]
    parameter_servers: tuple[str, ...]


def resolve_job(text: str, fabric: Fabric, source: str = "job", hosts: JobHosts | None = None) -> ResolvedJob:
    """`hosts`: of a job that was accepted before, perhaps with another fabric. Raises JobError: source, line, what is
    wrong and what would be right."""
    if len(text) > MAX_CHARACTERS:
        raise JobError(
            source, [Problem(1, 1, f"{len(text)} characters; a job file has at most {MAX_CHARACTERS}")]
        )
    return order_from(parse_document(text, source), text, fabric, hosts)


def order_from(document: Document, text: str, fabric: Fabric, hosts: JobHosts | None = None) -> ResolvedJob:
    """The same of a file that is parsed already. Raises JobError with every mistake."""
    values = document.value
    if not isinstance(values, dict):
        raise JobError(document.file, [document.problem((), "a job is a mapping with at least 'name'")])
    check = _Check(document, fabric)
    try:
        file = JobFile.model_validate(values)
    except ValidationError as error:
        check.wrong |= {str(e["loc"][0]) for e in error.errors()}
        check.problems += model_problems(document, JobFile, error, {_NAME: _NAME_RULE})
        sound = {key: value for key, value in values.items() if key not in check.wrong}
        file = JobFile.model_validate({"name": "unnamed"} | sound)
    servers, workers = check.all(file, hosts)
    if check.problems:
        raise JobError(document.file, check.problems)
    if file.sandbox and file.rate is None:
        file = file.model_copy(update={"rate": SANDBOX_RATE * slowest_link(fabric, workers)})
    return ResolvedJob(text=text, file=file, workers=workers, parameter_servers=servers)


def slowest_link(fabric: Fabric, workers: tuple[str, ...]) -> float:
    """The rate of the slowest link of a worker."""
    return min(fabric.link(worker, fabric.attachment(worker)).rate for worker in workers)


class _Check:
    """Collects the mistakes of a job file. A value of its model's form may still not fit the fabric or other values;
    what depends on a wrong value is not checked."""

    def __init__(self, document: Document, fabric: Fabric) -> None:
        self.problems: list[Problem] = []
        self.wrong: set[str] = set()
        """Keys whose values are wrong."""
        self._document = document
        self._fabric = fabric

    def all(self, file: JobFile, hosts: JobHosts | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The job's parameter servers and workers."""
        self._choices(file)
        if hosts is None:
            servers = self._servers(file)
            workers = self._workers(file, servers)
        else:
            servers, workers = hosts.parameter_servers, hosts.workers
        if file.min_rate is not None and self._sound("workers", "parameter_servers", "min_rate"):
            self._least_rate(file.min_rate, workers)
        if file.transport is Transport.ROCE:
            self._roce(file, workers)
        if file.quorum is not None:
            self._quorum(file, file.quorum, len(workers))
        if file.targets is TargetsOption.REQUIRED:
            self._targets(file)
        if file.sandbox and file.transport is Transport.ROCE:
            self._report(("sandbox",), "a RoCE job is no sandbox: packets made by hand are UDP")
        return servers, workers

    def _report(self, place: Place, message: str) -> None:
        self.problems.append(self._document.problem(place, message))
        self.wrong.add(str(place[0]))

    def _sound(self, *keys: str) -> bool:
        return self.wrong.isdisjoint(keys)

    def _choices(self, file: JobFile) -> None:
        if file.scheme not in SCHEMES:
            self._report(("scheme",), f"scheme '{file.scheme}' is unknown; there are {', '.join(SCHEMES)}")
        limit = file.options.get("time_limit")
        if isinstance(limit, int | float) and limit > MOST_TIME_LIMIT_S:
            what = f"time_limit is {limit:g}; it is at most {MOST_TIME_LIMIT_S}"
            self._report(("options", "time_limit"), what)
        if file.slots is not None and file.slots & (file.slots - 1):
            self._report(("slots",), f"slots is {file.slots}; it must be a power of two")
        if file.rate is not None and file.min_rate is not None and file.min_rate > file.rate:
            self._report(("min_rate",), f"min_rate {file.min_rate:g} is above rate {file.rate:g}")

    def _servers(self, file: JobFile) -> tuple[str, ...]:
        own = tuple(h.name for h in self._fabric.hosts if h.parameter_server)
        chosen = file.parameter_servers
        if isinstance(chosen, tuple):
            return self._hosts("parameter_servers", chosen)
        if chosen is None:
            return own
        if chosen > len(own):
            have = f"fabric '{self._fabric.name}' has {len(own)}"
            what = f"{chosen} parameter servers are wanted, {have}; name hosts instead"
            self._report(("parameter_servers",), what)
        return own[:chosen]

    def _workers(self, file: JobFile, servers: tuple[str, ...]) -> tuple[str, ...]:
        if isinstance(file.workers, tuple):
            for i, worker in enumerate(file.workers):
                if worker in servers and file.parameter_servers is not None:
                    self._report(("workers", i), f"'{worker}' is a parameter server of the job too")
            return self._hosts("workers", file.workers)
        free = tuple(h.name for h in self._fabric.hosts if not h.parameter_server and h.name not in servers)
        if file.workers is not None and file.workers > len(free) and self._sound("parameter_servers"):
            have = f"fabric '{self._fabric.name}' has {len(free)}"
            self._report(("workers",), f"{file.workers} workers are wanted, {have}")
        return free if file.workers is None else free[: file.workers]

    def _hosts(self, key: str, names: tuple[str, ...]) -> tuple[str, ...]:
        for i, name in enumerate(names):
            if not self._fabric.is_host(name):
                near = hint(name, (h.name for h in self._fabric.hosts))
                self._report((key, i), f"'{name}' is no host of fabric '{self._fabric.name}'{near}")
            elif name in names[:i]:
                self._report((key, i), f"'{name}' is named twice")
        return names

    def _least_rate(self, least: float, workers: tuple[str, ...]) -> None:
        rates = {w: self._fabric.link(w, self._fabric.attachment(w)).rate for w in workers}
        slowest = min(rates, key=lambda w: rates[w], default=None)
        if slowest is not None and least > rates[slowest]:
            have = f"{rates[slowest]:g} {self._fabric.unit.name}, which no plan exceeds"
            what = f"min_rate is {least:g}, and the link of worker '{slowest}' carries {have}"
            self._report(("min_rate",), f"{what}; expected at most {rates[slowest]:g}")

    def _roce(self, file: JobFile, workers: tuple[str, ...]) -> None:
        if file.on_worker_loss is OnWorkerLoss.RECONFIGURE:
            what = "the workers of a RoCE job are not replaced at once; expected `on_worker_loss: fail` or `continue`"
            self._report(("on_worker_loss",), what)
        mode = file.numerics.mode
        if mode not in ("auto", "block", "quarter", "float32", "integer"):
            what = f"numerics '{mode}' is not for RoCE; block, quarter, float32 and integer are"
            self._report(("numerics",), what)
        if not self._sound("workers", "parameter_servers"):
            return
        if alone := unpaired_worker(self._fabric, workers):
            self._report(("transport",), alone)

    def _quorum(self, file: JobFile, quorum: int, workers: int) -> None:
        if self._sound("workers", "parameter_servers") and not quorum <= workers <= COUNT_MAX:
            have = f"the job has {workers} workers"
            what = f"{have}; a quorum is at most that, and for at most {COUNT_MAX} workers"
            self._report(("quorum",), f"quorum is {quorum}, and {what}")
        if file.quorum_deadline_s == 0:
            self._report(("quorum_deadline",), "quorum_deadline is 0; it must be above that")
        if file.transport is Transport.ROCE:
            self._report(("quorum",), "a RoCE job has no quorum: it awaits all its workers")
        if file.numerics.mode == "integer":
            what = "a job with a quorum adds up floats, and numerics are 'integer' here"
            self._report(("quorum",), what)
        if file.numerics.mode == "quarter":
            what = "numerics 'quarter' predict sums of all workers, and a quorum may lack some"
            self._report(("quorum",), f"{what}; expected half or block")

    def _targets(self, file: JobFile) -> None:
        what = "targets are required, and {}; expected auto, or a job without `{}`"
        if file.transport is Transport.ROCE:
            self._report(("targets",), what.format("RoCE packets have none", "transport: roce"))
        if file.sandbox:
            self._report(("targets",), what.format("packets of a sandbox have none", "sandbox"))
        if file.quorum is not None:
            self._report(("targets",), what.format("sums with a quorum have none", "quorum"))
        if file.on_worker_loss is OnWorkerLoss.CONTINUE:
            reason = "an elastic job's blocks may lose their owners"
            self._report(("targets",), what.format(reason, "on_worker_loss: continue"))
