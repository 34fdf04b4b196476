# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the job that `netfold plan` takes: any job file, a committed example by its name, or a job over all hosts of a
fabric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netfold.controller.jobs.file import order_from
from netfold.controller.planning.plan import JobSpec
from netfold.topologies.fabric import Fabric
from netfold.topologies.yaml_locations import read_document

EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class ExampleJob:
    """A job to plan: the rates that a paper publishes for it, by scheme; the seed of random choices; and the maximum
    and minimum rate that its file has for each worker (fabric units)."""

    spec: JobSpec
    published: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    rate: float | None = None
    min_rate: float | None = None


def load_job(name_or_path: str | Path, fabric: Fabric) -> ExampleJob:
    """Read a job file, or the example of that name, for a fabric. Raises JobError (or FabricError if
    unreadable)."""
    resolved = order_from(read_document(_path(name_or_path)), "", fabric)
    file = resolved.file
    return ExampleJob(resolved.spec(), file.published, file.seed, file.rate, file.min_rate)


def job_keys(name_or_path: str | Path | None, fabric: Fabric) -> dict[str, Any]:
    """The keys of the file of such a job; None: of the default job. Raises FabricError if unreadable."""
    if name_or_path is None and not _has_example(fabric.name):
        return {"name": fabric.name}
    keys = read_document(_path(fabric.name if name_or_path is None else name_or_path)).value
    return dict(keys) if isinstance(keys, dict) else {}


def _path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    is_example = not path.is_file() and path.name == str(name_or_path) and _has_example(path.name)
    return EXAMPLES / f"{path.name}.yaml" if is_example else path


def _has_example(name: str) -> bool:
    return (EXAMPLES / f"{name}.yaml").is_file()


def default_job(fabric: Fabric) -> ExampleJob:
    """The example job named as the fabric; if there is none, a job over all its hosts."""
    if _has_example(fabric.name):
        return load_job(fabric.name, fabric)
    servers = tuple(h.name for h in fabric.hosts if h.parameter_server)
    workers = tuple(h.name for h in fabric.hosts if not h.parameter_server)
    return ExampleJob(JobSpec(fabric.name, workers, servers))
