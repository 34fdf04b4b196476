# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a planner needs from a job's YAML file:

name: two-racks-vgg
workers: [h1, h2, h5, h6]        # left out: all hosts of the fabric that are no parameter servers
parameter_servers: [ps1]         # left out: the fabric's own
elements: 138357544              # of the gradient
scheme: grid
options: {roundings: 16}         # of the scheme
published: {grid: 3, atp: 2.4375}  # a paper's figures for this example, by scheme
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller.planning.plan import JobSpec
from topologies.fabric import Fabric
from topologies.marked_yaml import Document, SpecError, read_document

EXAMPLES = Path(__file__).parent / "examples"

HostName = Annotated[str, Field(min_length=1, max_length=32)]
OptionValue = bool | int | float | str


class JobError(SpecError):
    """A job file that cannot be read or does not fit the fabric: file, line, what is wrong, what would be
    right."""


class JobFile(BaseModel):
    """A job file as it is written; see the module's text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
    workers: Annotated[tuple[HostName, ...], Field(min_length=1)] | None = None
    parameter_servers: tuple[HostName, ...] | None = None
    elements: Annotated[int, Field(ge=1, le=10**12)] = 1_000_000
    scheme: str = "auto"
    options: dict[str, OptionValue] = {}
    published: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}


@dataclass(frozen=True)
class ExampleJob:
    """A job with the figures that a paper gives for it, by scheme."""

    spec: JobSpec
    published: dict[str, float]


def load_job(name_or_path: str | Path, fabric: Fabric) -> ExampleJob:
    """Read a job file, or the example of that name, for a fabric. Raises JobError (or FabricError if
    unreadable)."""
    path = Path(name_or_path)
    if not path.is_file() and path.name == str(name_or_path) and (EXAMPLES / f"{path.name}.yaml").is_file():
        path = EXAMPLES / f"{path.name}.yaml"
    document = read_document(path)
    return _for_fabric(document, _parsed(document), fabric)


def default_job(fabric: Fabric) -> ExampleJob:
    """The example job named as the fabric; where there is none, a job over all its hosts."""
    if (EXAMPLES / f"{fabric.name}.yaml").is_file():
        return load_job(fabric.name, fabric)
    return ExampleJob(JobSpec(fabric.name, _free_hosts(fabric), _servers(fabric)), {})


def example_names() -> list[str]:
    return sorted(p.stem for p in EXAMPLES.glob("*.yaml"))


def _free_hosts(fabric: Fabric) -> tuple[str, ...]:
    return tuple(h.name for h in fabric.hosts if not h.parameter_server)


def _servers(fabric: Fabric) -> tuple[str, ...]:
    return tuple(h.name for h in fabric.hosts if h.parameter_server)


def _parsed(document: Document) -> JobFile:
    if not isinstance(document.value, dict):
        raise _error(document, (), "a job is a mapping with at least 'name'")
    try:
        return JobFile.model_validate(document.value)
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(p for p in first["loc"] if isinstance(p, str | int))
        known = ", ".join(JobFile.model_fields)
        if first["type"] == "extra_forbidden":
            raise _error(document, place, f"unknown key '{place[-1]}'; a job has {known}") from None
        where = ".".join(map(str, place)) or "the job"
        raise _error(document, place, f"{where}: {first['msg']}") from None


def _for_fabric(document: Document, job: JobFile, fabric: Fabric) -> ExampleJob:
    for key in ("workers", "parameter_servers"):
        for i, host in enumerate(getattr(job, key) or ()):
            if not fabric.is_host(host):
                raise _error(document, (key, i), f"'{host}' is no host of fabric '{fabric.name}'")
    servers = _servers(fabric) if job.parameter_servers is None else job.parameter_servers
    workers = job.workers or tuple(h for h in _free_hosts(fabric) if h not in servers)
    spec = JobSpec(job.name, workers, servers, job.elements, job.scheme, dict(job.options))
    return ExampleJob(spec, dict(job.published))


def _error(document: Document, place: tuple[str | int, ...], message: str) -> JobError:
    return JobError(document.file, [document.problem(place, message)])
