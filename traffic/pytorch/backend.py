# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The door for PyTorch from 2.14 on: a backend of c10d, one for each device type of a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import Backend

from netfold.traffic.pytorch.collectives import Collectives


class NetfoldBackend(Collectives, Backend):  # type: ignore[misc]
    """`create_part`: creates a group of some of its ranks, by torch's options of that group. `parts`: of
    Collectives."""

    def __init__(self, create_part: Callable[[Any, Collectives], Any], options: Any, *parts: Any) -> None:
        Backend.__init__(self, options.group_rank, options.group_size)
        Collectives.__init__(self, options, *parts)
        self._create_part = create_part
        self.session.backends.add(self)

    def shutdown(self) -> None:
        self.session.backends.discard(self)
        super().shutdown()

    @property
    def options(self) -> Any:
        """Gloo's, where torch sets the group's timeout: it bounds both."""
        return self._gloo_backend.options

    def set_timeout(self, timeout: timedelta) -> None:
        self._gloo_backend.set_timeout(timeout)

    def _set_sequence_number_for_group(self) -> None:
        """Starts the count of calls that PyTorch's checks (TORCH_DISTRIBUTED_DEBUG=DETAIL) compare among ranks."""
        self._gloo_backend._set_sequence_number_for_group()

    def _get_sequence_number_for_group(self) -> int:
        return int(self._gloo_backend._get_sequence_number_for_group())

    @property
    def supports_splitting(self) -> bool:
        return True

    # torch reads these of a backend in Python without end, unless it has them

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def supports_time_estimate(self) -> bool:
        return False

    @property
    def supports_shrinking(self) -> bool:
        return False

    @property
    def supports_reconfigure(self) -> bool:
        return False

    @property
    def supports_window(self) -> bool:
        return False

    def split(self, store: Any, ranks: Sequence[int], options: Any) -> Any:
        """Called by `split_group` at all ranks of the group; `ranks` of it are to be a group. Raises
        DistBackendError."""
        if self.rank() not in ranks:  # torch reads the attributes of what it gets
            raise dist.DistBackendError(
                f"netfold: rank {self.rank()} is in none of the groups of split_group; put each rank in one, or use "
                "new_group"
            )
        found = dist.distributed_c10d._DistributedBackendOptions()
        found.store, found.timeout, found.group_id = store, options._timeout, options.group_name
        found.group_rank, found.group_size = list(ranks).index(self.rank()), len(ranks)
        return self._create_part(found, self)
