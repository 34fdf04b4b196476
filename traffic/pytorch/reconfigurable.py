# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A group whose ranks c10d replaces in place: `init_process_group("netfold", enable_reconfigure=True)`, from PyTorch
2.14 on. Each set of ranks is a generation of the workers of one job, as long as it lasts.

It is a ProcessGroup because the rank and the size of a backend in Python cannot change
(docs/decisions/0077-reconfigure-needs-a-process-group.md). Gloo's can: it has the handles, the ranks and the size.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from netfold.traffic.membership.jobs import KeptJob
from netfold.traffic.pytorch.collectives import Collectives, register_backend
from netfold.traffic.pytorch.kept_job import Succession
from netfold.traffic.pytorch.session import Session
from netfold.traffic.pytorch.work import NetfoldWork


class ReconfigurableGroup(Collectives, dist.ProcessGroup):  # type: ignore[misc]
    """It has no ranks before the first `reconfigure`. `gloo`: its handles are the group's. `open_group`: joins a job,
    and returns the parts of Collectives."""

    def __init__(
        self, options: Any, program_options: Any, gloo: Any, open_group: Callable[..., tuple[Any, ...]]
    ) -> None:
        dist.ProcessGroup.__init__(self, options.store, options.group_rank, options.group_size)
        register_backend(self, dist.ProcessGroup.BackendType.GLOO, gloo)
        self._options = options
        self._program_options = program_options
        self._gloo_backend = gloo
        self._open_group = open_group
        self._session: Session | None = None
        self._job_before: KeptJob | None = None

    @property
    def session(self) -> Session:
        """The session of the present ranks. Raises DistBackendError."""
        if self._session is None:
            raise dist.DistBackendError(
                "netfold: the group has no ranks: call torch.distributed._reconfigure first"
            )
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        self._session = session

    @property
    def supports_reconfigure(self) -> bool:
        return True

    def get_reconfigure_handle(self) -> str:
        return str(self._gloo_backend.get_reconfigure_handle())

    def reconfigure(self, opts: Any) -> NetfoldWork:
        """Ends the calls in flight at all ranks before, and joins those whose handles these are, in the same job if
        they know it. Raises DistBackendError: then the group has no ranks."""
        self.abort()
        timeout = opts.timeout or self._options.timeout
        deadline = time.monotonic() + timeout.total_seconds()
        try:
            self._gloo_backend.reconfigure(opts)
        except RuntimeError as error:
            raise dist.DistBackendError(f"netfold: Gloo does not connect: {error}") from error
        options = dist.distributed_c10d._DistributedBackendOptions()
        options.store = dist.PrefixStore(f"reconfigure/{_name_of(opts)}", self._options.store)
        options.group_rank, options.group_size = self.rank(), self.size()
        options.timeout = timedelta(seconds=max(0.0, deadline - time.monotonic()))
        options.group_id = f"{self._options.group_id}-{opts.uuid}"
        succession = Succession(is_kept=True, known=self._job_before, on_job=self._remember)
        parts = self._open_group(options, self._program_options, succession, self._gloo_backend)
        Collectives.__init__(self, options, *parts)
        work = NetfoldWork([], f"rank {self.rank()}: reconfigure")
        work.finish(None)
        return work

    def _remember(self, job: KeptJob | None) -> None:
        self._job_before = job

    def abort(self) -> None:
        """Ends the calls in flight at all ranks. Their job waits for the next ones."""
        if self._session is not None:
            super().abort()

    def shutdown(self) -> None:
        if self._session is not None:
            super().shutdown()
            self._session = None


def _name_of(opts: Any) -> str:
    """Ranks that disagree on their number or order do not meet, where Gloo may connect some of them."""
    handles = sorted(opts.handles) if isinstance(opts.handles, set) else opts.handles
    return f"{opts.uuid}/{hashlib.sha256(json.dumps(handles).encode()).hexdigest()}"
