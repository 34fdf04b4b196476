# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests (pytorch_suite.py) over a real switch, with Gloo and then with netfold, and compares them.

    python -P -m netfold.testbed.network.isolated python -m tests.testbed.pytorch_comparison [--environment .venv-torch]
        [--ranks 8] [--sources FOLDER] [--sample N] [--seed N] [--out FILE] [FILE ...]

`FILE ...`: of `test/distributed` in the folder of PyTorch's sources; without any, the `distributed_test` of PyTorch's
package. `--out`: a table of docs/results/data. Exits with 1 if a test that Gloo passes has no reason to fail.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from netfold.testbed.testbed import Testbed

REPOSITORY = Path(__file__).parents[2]
PACKAGE = "distributed_test"
PASSED = "passed"

_ERROR = re.compile(r"[\w.]*(Error|Exception|SkipTest)\b.*: ")

_NAME = "it expects the name gloo"
_MONITORED = "PyTorch refuses monitored_barrier to all backends but the one of the name gloo"
_BITS = "it expects the same bits of equal sums, whose scale follows the elements beside them and the calls before"
NOT_APPLICABLE = {
    "test_get_backend": _NAME,
    "test_monitored_barrier_failure_order": _MONITORED,
    "test_monitored_barrier_gloo": _MONITORED,
    "test_monitored_barrier_gloo_rank_0_timeout": _MONITORED,
    "test_monitored_barrier_gloo_subgroup": _MONITORED,
    "test_monitored_barrier_wait_all_ranks": _MONITORED,
    "test_post_acc_grad_hook_optim_parity": _BITS,
    "test_reduce_dtype": _BITS,
}
"""Tests that Gloo passes and netfold cannot, with the reason."""

_HOLDER = "PyTorch asks a Work of a backend in Python only to wait: is_completed is false, and no sender has a number"
NOT_APPLICABLE_FROM_2_14 = {
    "test_ddp_logging_data_cpu": "PyTorch logs the name custom for all backends but its own",
    "test_irecv": _HOLDER,
    "test_isend": _HOLDER,
    "test_isend_autograd_profiler": _HOLDER,
    "test_isend_torch_profiler": _HOLDER,
    "test_send_recv_any_source": _HOLDER,
    "test_send_recv_any_source_autograd_profiler": _HOLDER,
    "test_send_recv_any_source_torch_profiler": _HOLDER,
}

NOT_APPLICABLE_BEFORE_2_14 = {
    "test_manual_reshard_with_reshard_after_forward_false": (
        "PyTorch counts calls as they pass its dispatcher, and those of a process group in Python pass by"
    ),
}


@dataclass(frozen=True)
class Comparison:
    """The outcomes of the tests of a file by name: passed, skipped and why, or what failed. `reasons`: of tests that do
    not apply to netfold."""

    gloo: Mapping[str, str]
    netfold: Mapping[str, str]
    reasons: Mapping[str, str]

    @property
    def passed_by_gloo(self) -> list[str]:
        return sorted(name for name, outcome in self.gloo.items() if outcome == PASSED)

    @property
    def failed(self) -> dict[str, str]:
        """The tests that Gloo passes and netfold does not, with netfold's outcome."""
        both = {name: self.netfold.get(name, "did not run") for name in self.passed_by_gloo}
        return {name: outcome for name, outcome in both.items() if outcome != PASSED}

    @property
    def unexplained(self) -> dict[str, str]:
        return {name: outcome for name, outcome in self.failed.items() if self._reason(name) is None}

    @property
    def explained(self) -> dict[str, str]:
        return {name: self._reason(name) or "" for name in self.failed if self._reason(name) is not None}

    def _reason(self, name: str) -> str | None:
        return self.reasons.get(name.rpartition(".")[2])


class Suite:
    """The suite runs over a network with a host for each rank."""

    def __init__(self, system: Testbed, environment: str, *options: object) -> None:
        self._system = system
        self._folder = REPOSITORY / environment
        self._options = options

    def compare(self) -> Comparison:
        """Netfold runs the tests that Gloo passes."""
        gloo = self._outcomes("gloo")
        passed = [name for name, outcome in gloo.items() if outcome == PASSED]
        ours = self._outcomes("netfold", *passed) if passed else {}
        is_backend = tuple(map(int, version(self._folder).split(".")[:2])) >= (2, 14)
        return Comparison(
            gloo,
            ours,
            {**NOT_APPLICABLE, **(NOT_APPLICABLE_FROM_2_14 if is_backend else NOT_APPLICABLE_BEFORE_2_14)},
        )

    def _outcomes(self, backend: str, *names: str) -> dict[str, str]:
        folder, hosts = self._system.directory, self._system.workers
        written = folder / f"{backend}.json"
        environment = {
            **os.environ, "NETFOLD_CONTROLLER": self._system.controller.address, "GLOO_SOCKET_IFNAME": "eth0",
            "PYTHONPATH": str(REPOSITORY), "TEMP_DIR": str(folder), "WORLD_SIZE": str(len(hosts)),
            "NETFOLD_LEASE_MS": "25000",  # below the 30 s of groups of the tests for fault tolerance
        }  # fmt: skip
        pids = ",".join(str(self._system.net.hosts[host].pid) for host in hosts)
        command: list[object] = [
            self._folder / "bin" / "python",
            Path(__file__).with_name("pytorch_suite.py"),
            "--backend",
            backend,
        ]
        command += ["--pids", pids, "--out", written, *self._options, *names]
        with (folder / f"{backend}.log").open("w") as log:
            subprocess.run(
                list(map(str, command)), env=environment, stdout=log, stderr=subprocess.STDOUT, check=True
            )
        found: dict[str, str] = json.loads(written.read_text()) if written.exists() else {}
        return found


def error_in(outcome: str) -> str:
    """The last line of an outcome that names an error."""
    return next((line for line in reversed(outcome.splitlines()) if _ERROR.match(line)), outcome[-200:])


def version(folder: Path) -> str:
    """The version of PyTorch in an environment."""
    (installed,) = folder.glob("lib/python*/site-packages/torch-*.dist-info")
    return installed.name.removeprefix("torch-").removesuffix(".dist-info")


@contextmanager
def network(folder: Path, hosts: int) -> Iterator[Testbed]:
    fabric = folder / "leaf.yaml"
    fabric.write_text(
        f"name: leaf\ngenerate:\n  single_switch: {{hosts: {hosts}, parameter_servers: 0, rate: 1000, queue: 256}}\n"
    )
    with Testbed(str(fabric), target="softswitch", lanes=256, name="suite", first_grpc_port=9920) as system:
        yield system


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--environment", default=".venv-torch")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--sources", type=Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--out", type=Path)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    if options.files and options.sources is None:
        parser.error("files need --sources, the folder of PyTorch's sources")
    drawn = ["--sample", options.sample, "--seed", options.seed] if options.sample else []
    rows, failed = [], False
    for file in options.files or [PACKAGE]:
        source = ["--source", options.sources / "test" / "distributed" / file] if options.files else []
        with tempfile.TemporaryDirectory() as folder, network(Path(folder), options.ranks) as system:
            found = Suite(system, options.environment, *map(str, (*source, *drawn))).compare()
        for name, outcome in found.failed.items():
            sys.stdout.write(f"{file} {name}: {found.explained.get(name) or error_in(outcome)}\n")
        failed |= bool(found.unexplained)
        ours = len(found.passed_by_gloo) - len(found.failed)
        numbers = (
            len(found.gloo),
            len(found.passed_by_gloo),
            ours,
            len(found.explained),
            len(found.unexplained),
        )
        rows.append([file, str(options.ranks), *map(str, numbers)])
        sys.stdout.write(f"{' '.join(rows[-1])}\n")
        sys.stdout.flush()
        if options.out is not None:
            options.out.write_text(json.dumps(table(rows, REPOSITORY / options.environment), indent=1) + "\n")
    sys.exit(failed)


def table(rows: list[list[str]], environment: Path) -> dict[str, object]:
    """As a table of docs/results/tables.py."""
    revision = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "title": f"PyTorch's own tests, PyTorch {version(environment)}",
        "command": shlex.join(["python", "-m", "tests.testbed.pytorch_comparison", *sys.argv[1:]]),
        "revision": revision,
        "machine": f"{os.cpu_count()} cores",
        "conditions": "Each rank on a host of its own on one leaf (softswitch). Gloo's first, then netfold's.",
        "columns": [
            "tests",
            "hosts",
            "in all",
            "Gloo passes",
            "of these netfold",
            "explained",
            "unexplained",
        ],
        "rows": rows,
    }


if __name__ == "__main__":
    main()
