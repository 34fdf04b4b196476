# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the job registry needs of a store. jobs/store.py is the one on disk; a simulation has one that fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from netfold.controller.jobs.records import JobRecord, Member
from netfold.controller.jobs.slot_allocator import Range


class JobStore(Protocol):
    """All but reads take place within a `change`, which is committed as a whole or not at all."""

    @property
    def primary(self) -> str: ...

    def change(self) -> AbstractContextManager[None]: ...

    def number(self, name: str) -> int: ...

    def set_number(self, name: str, value: int) -> None: ...

    def jobs(self) -> list[JobRecord]: ...

    def put(self, job: JobRecord) -> None: ...

    def put_member(self, job: str, member: Member) -> None: ...

    def worked(self) -> set[tuple[str, str]]: ...

    def have_worked(self, hops: Iterable[tuple[str, str]]) -> None: ...

    def epochs(self, switch: str) -> dict[int, int]: ...

    def use_slots(self, used: Mapping[str, Iterable[Range]], epoch: int) -> None: ...

    def registers_empty(self, switch: str, blocks: Iterable[int] | None = None) -> None: ...
