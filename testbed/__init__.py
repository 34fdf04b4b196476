# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Emulated networks with their controller and jobs, on one machine.

    from netfold.testbed import Testbed, run_isolated

    run_isolated()  # this program again, in namespaces of its own
    with Testbed("leaf-spine-2x2") as testbed:
        print(testbed.host("h1").run(["ping", "-c1", testbed.address("h5")]).stdout)

The names of `__all__` are public, documented in docs/reference/testbed.md, and change only with the version. They are
imported when they are first used: a command that needs none of them starts without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netfold.testbed.capture import Capture
    from netfold.testbed.errors import ProcessFailedError, RunError, RunTimeoutError
    from netfold.testbed.network.errors import NetworkError
    from netfold.testbed.network.faults import Faults
    from netfold.testbed.network.isolation import run_isolated
    from netfold.testbed.processes import ProcessGroup
    from netfold.testbed.submitted_job import JobStatus, SubmittedJob
    from netfold.testbed.testbed import Testbed
    from netfold.topologies.fabric import Fabric

__all__ = [
    "Capture",
    "Fabric",
    "Faults",
    "JobStatus",
    "NetworkError",
    "ProcessFailedError",
    "ProcessGroup",
    "RunError",
    "RunTimeoutError",
    "SubmittedJob",
    "Testbed",
    "run_isolated",
]

_MODULES = {
    "Capture": "testbed.capture",
    "Fabric": "topologies.fabric",
    "Faults": "testbed.network.faults",
    "SubmittedJob": "testbed.submitted_job",
    "JobStatus": "testbed.submitted_job",
    "NetworkError": "testbed.network.errors",
    "ProcessGroup": "testbed.processes",
    "Testbed": "testbed.testbed",
    "run_isolated": "testbed.network.isolation",
}
_ERRORS = "testbed.errors"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'netfold.testbed' has no attribute '{name}'")
    value = getattr(import_module(f"netfold.{_MODULES.get(name, _ERRORS)}"), name)
    globals()[name] = value
    return value
