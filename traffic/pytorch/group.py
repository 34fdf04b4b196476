# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The door for PyTorch before 2.14, whose backends cannot be classes of Python: a process group of its own."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from netfold.traffic.pytorch.collectives import Collectives, register_backend


class NetfoldGroup(Collectives, dist.ProcessGroup):  # type: ignore[misc]
    """`parts`: of Collectives."""

    def __init__(self, options: Any, *parts: Any) -> None:
        dist.ProcessGroup.__init__(self, options.group_rank, options.group_size)
        Collectives.__init__(self, options, *parts)
        register_backend(self, dist.ProcessGroup.BackendType.GLOO, self._gloo_backend)
