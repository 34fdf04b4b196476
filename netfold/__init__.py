# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""In-network gradient aggregation, as a training program sees it.

    import netfold

    with netfold.join("digits") as worker:
        worker.all_reduce(gradient)  # a numpy array; in place: the sum over all workers, the same bits at each

What `__all__` names is the public face: it is typed, documented in docs/reference/workers.md, and changes only
with the version. Everything else below `netfold` is private and may change at any time. What the face consists
of is imported when it is first asked for, so `import netfold` costs a program next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netfold.protocol.connection import ConnectError
    from netfold.traffic.errors import (
        AllReduceTimeoutError,
        CollectiveMismatchError,
        ConcurrentUseError,
        ControllerUnreachableError,
        EngineUnavailableError,
        InvalidAssignmentError,
        JobFailedError,
        MembershipLostError,
        SequenceExhaustedError,
        StragglerError,
        SumOverflowError,
        TrafficError,
        UnknownHostError,
        UnsupportedDtypeError,
        WorkerClosedError,
        WorkersLeftError,
    )
    from netfold.traffic.join import join
    from netfold.traffic.numerics import ReduceOp
    from netfold.traffic.packets.transport import TransportError
    from netfold.traffic.pytorch.options import TorchOptions
    from netfold.traffic.worker.handle import Handle
    from netfold.traffic.worker.worker import Worker

    __version__: str

__all__ = [
    "AllReduceTimeoutError",
    "CollectiveMismatchError",
    "ConcurrentUseError",
    "ConnectError",
    "ControllerUnreachableError",
    "EngineUnavailableError",
    "Handle",
    "InvalidAssignmentError",
    "JobFailedError",
    "MembershipLostError",
    "ReduceOp",
    "SequenceExhaustedError",
    "StragglerError",
    "SumOverflowError",
    "TorchOptions",
    "TrafficError",
    "TransportError",
    "UnknownHostError",
    "UnsupportedDtypeError",
    "Worker",
    "WorkerClosedError",
    "WorkersLeftError",
    "__version__",
    "join",
]

_HOMES = {
    "ConnectError": "protocol.connection",
    "Handle": "traffic.worker.handle",
    "ReduceOp": "traffic.numerics",
    "TorchOptions": "traffic.pytorch.options",
    "TransportError": "traffic.packets.transport",
    "Worker": "traffic.worker.worker",
    "join": "traffic.join",
}
_ERRORS = "traffic.errors"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("netfold")
    elif name in __all__:
        value = getattr(import_module(f"netfold.{_HOMES.get(name, _ERRORS)}"), name)
    else:
        raise AttributeError(f"module 'netfold' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
