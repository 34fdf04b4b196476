# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Reads job files for a simulation: each as the controller takes it, several in one file between lines of `---`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from netfold.controller.jobs.file import JobError, ResolvedJob, resolve_job
from netfold.topologies.fabric import Fabric
from netfold.topologies.yaml_locations import Problem

_BETWEEN = re.compile(r"^---[ \t]*(?:#.*)?$", re.MULTILINE)


def read_jobs(files: Sequence[Path], fabric: Fabric) -> tuple[ResolvedJob, ...]:
    """Reads the jobs in the order in which they are admitted. Raises SpecError (JobError is one) with file and
    line, also for a name that is given twice."""
    orders: list[ResolvedJob] = []
    for file in files:
        try:
            text = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise JobError(str(file), [Problem(1, 1, f"cannot be read: {reason}")]) from None
        for job in _jobs(text):
            order = resolve_job(job, fabric, str(file))
            if order.file.name in (o.file.name for o in orders):
                line = len(job) - len(job.lstrip("\n")) + 1
                raise JobError(str(file), [Problem(line, 1, f"a job '{order.file.name}' is given twice")])
            orders.append(order)
    return tuple(orders)


def _jobs(text: str) -> list[str]:
    """Splits a file into its jobs. Each has as many empty lines before it as the file has lines before it, so that
    errors name the file's."""
    found, began = [], 0
    ends = [(m.start(), m.end()) for m in _BETWEEN.finditer(text)]
    for end, after in [*ends, (len(text), len(text))]:
        part = text[began:end]
        if part.strip():
            found.append("\n" * text.count("\n", 0, began) + part)
        began = after
    return found or [text]
