# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A process group that torchft's manager reconfigures: `torchft.Manager(pg=ProcessGroupNetfold(...))`.

All quorums are one job, as long as it lasts: each quorum is a generation of its workers, in an epoch of its own. The
manager aborts the group of the quorum before, which ends the calls in flight at all replicas, and not the job.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torchft.process_group import ProcessGroupWrapper

from netfold.traffic.membership.jobs import KeptJob
from netfold.traffic.pytorch.collectives import register_backend
from netfold.traffic.pytorch.create_group import create_with_job
from netfold.traffic.pytorch.kept_job import Succession
from netfold.traffic.pytorch.options import TorchOptions


class ProcessGroupNetfold(ProcessGroupWrapper):  # type: ignore[misc]
    """`timeout`: of `configure`, and of each collective. `options`: of the quorums' job; its name is drawn."""

    def __init__(
        self, timeout: timedelta = timedelta(seconds=60), options: TorchOptions | None = None
    ) -> None:
        super().__init__(timeout)
        self._options = options
        self._group: Any = None
        self._job_before: KeptJob | None = None

    def _create_pg(self, store: Any, rank: int, world_size: int) -> Any:
        """Called by `configure`. Raises DistBackendError."""
        options = dist.distributed_c10d._DistributedBackendOptions()
        options.store = store
        options.group_rank = rank
        options.group_size = world_size
        options.timeout = self._timeout
        options.group_id = f"torchft-{self._quorum_id}"
        succession = Succession(is_kept=True, known=self._job_before, on_job=self._remember)
        self._group = create_with_job(options, self._options, succession)
        if isinstance(self._group, dist.ProcessGroup):
            return self._group
        group = dist.ProcessGroup(store, rank, world_size)
        register_backend(group, dist.ProcessGroup.BackendType.CUSTOM, self._group)
        return group

    def _remember(self, job: KeptJob | None) -> None:
        self._job_before = job

    def errored(self) -> Exception | None:
        """Why the group cannot continue, which requires another quorum; None: it can."""
        failure: Exception | None = None if self._group is None else self._group.session.failure
        return failure

    def abort(self, errored: bool = True) -> None:
        """Ends the calls in flight at all replicas."""
        self._group = None
        super().abort(errored)

    def shutdown(self) -> None:
        """Leaves the job."""
        if self._group is not None:
            self._group.shutdown()
            self._group = None
        super().shutdown()

    def getBackendName(self) -> str:  # noqa: N802 (torchft's name)
        return "torchft-netfold"
