# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Hides the jobs of other tenants from a user, and all others from the members of one job: their load stays in an
answer, and their names do not."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from netfold.controller.jobs.records import JobRecord
from netfold.controller.recording.lines import LineKind, StateSection
from netfold.controller.service.access import sees
from netfold.controller.service.identities import Identity, Role
from netfold.protocol import netfold_pb2 as pb

NAMELESS = "another-tenant"
"""In place of the name of a hidden job."""
_NAMED_JOB = re.compile(r"(?<=\bjob ')[A-Za-z0-9_.-]+(?=')")
"""The form in which texts name a job. Elsewhere a word that equals a name, as `h1`, may be a host's."""


class HiddenJobs:
    """The part of `jobs` that `caller` does not see. They are listed when an answer has to be searched for them: most
    answers of a member have no text."""

    def __init__(self, caller: Identity, jobs: Callable[[], Sequence[JobRecord]]) -> None:
        self._caller = caller
        self._hides = caller.role is Role.USER or caller.job != ""
        self._tenant = caller.tenant
        self._jobs = jobs

    @functools.cached_property
    def _own(self) -> dict[str, JobRecord]:
        return {j.name: j for j in self._jobs() if sees(self._caller, j)}

    @functools.cached_property
    def _names(self) -> set[str]:
        return {j.name for j in self._jobs()} - self._own.keys()

    def name(self, name: str) -> str:
        """The name of a job, or what is in its place."""
        return NAMELESS if self.hides(name) else name

    def hides(self, name: str) -> bool:
        """Whether a job of this name is hidden."""
        return self._hides and name in self._names

    def text(self, text: str) -> str:
        """A text for people, where each `job 'NAME'` of a hidden job is replaced."""
        return _NAMED_JOB.sub(lambda found: self.name(found[0]), text) if self._hides else text

    def answer(self, message: Any) -> Any:
        """An answer of the service without what is hidden."""
        if not self._hides:
            return message
        match message:
            case pb.ListJobsResponse():
                shown = [job for job in message.jobs if job.name in self._own]
                del message.jobs[:]
                message.jobs.extend(shown)
                for job in message.jobs:
                    job.reason = self.text(job.reason)
            case pb.Job():
                message.reason = self.text(message.reason)
            case pb.ControllerUpdate():
                if message.HasField("ended"):
                    message.ended.reason = self.text(message.ended.reason)
            case pb.Explanation():
                message.steps[:] = map(self.text, message.steps)
            case pb.Diagnosis():
                message.finding = self.text(message.finding)
                message.evidence[:] = map(self.text, message.evidence)
                message.document_json = self.text(message.document_json)
            case pb.Status():
                for tree in message.trees:
                    tree.job = self._shown(tree.job)
            case pb.Usage():
                own = [row for row in message.tenants if row.tenant == self._tenant]
                del message.tenants[:]
                message.tenants.extend(own)
            case pb.FabricStatus():
                for element in message.elements:
                    element.reason = self.text(element.reason)
                    for staying in element.jobs:
                        staying.name, staying.reason = self._shown(staying.name), self.text(staying.reason)
            case pb.RecordingLines():
                rows = (self._line(json.loads(line)) for line in message.lines)
                message.lines[:] = [json.dumps(row, separators=(",", ":")) for row in rows if row]
            case pb.EventLines():
                lines = [line for line in message.lines if json.loads(line).get("tenant") == self._tenant]
                message.lines[:] = map(self.text, lines)
        return message

    def _shown(self, name: str) -> str:
        """Names that the store has forgotten are hidden, too: they may be of any tenant."""
        return name if not name or name in self._own else NAMELESS

    def _line(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """A line of a recording; None: it is of a hidden job."""
        if row["kind"] == LineKind.EVENT:
            if "job" in row and not self._is_of_own(row["job"], row["at"]):
                return None
            return {**row, "text": self.text(row["text"])}
        sections = row.get("state", {})
        if StateSection.MEMBERS in sections:
            sections[StateSection.MEMBERS] = {
                key: value
                for key, value in sections[StateSection.MEMBERS].items()
                if self._is_of_own(key.split(" ")[0], row["at"])
            }
        if StateSection.JOBS in sections:
            sections[StateSection.JOBS] = {
                name: value and {**value, "reason": self.text(value["reason"])}
                for name, value in sections[StateSection.JOBS].items()
                if name in self._own and (value is None or value["sequence"] == self._own[name].seq)
            }
        if StateSection.PACKETS in sections:
            sections[StateSection.PACKETS] = {
                switch: self._packets(jobs) for switch, jobs in sections[StateSection.PACKETS].items()
            }
        return row

    def _is_of_own(self, name: str, at: float) -> bool:
        """Whether what was recorded at `at` is of a job that the caller sees, not of an earlier one of the name."""
        return name in self._own and at >= round(self._own[name].submitted, 6)

    def _packets(self, jobs: dict[str, dict[str, float]] | None) -> dict[str, dict[str, float]] | None:
        """Packets a second of a switch by job and verdict, where all hidden jobs are one."""
        if jobs is None:
            return None
        shown: dict[str, dict[str, float]] = {}
        for name, rates in jobs.items():
            of_job = shown.setdefault(self._shown(name), {})
            for verdict, rate in rates.items():
                of_job[verdict] = round(of_job.get(verdict, 0.0) + rate, 1)
        return shown
