# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A step of PyTorch's DistributedDataParallel over netfold, beside Gloo, on the same links in the same run. Needs root,
and PyTorch in .venv-torch.

    python -m benchmarks.torch_ddp [--workers 2 4 8] [--parameters 268000 5000000] [--rate 100]
        [--transports gloo netfold netfold-half] [--json FILE]

One leaf; torchrun in each host. step: median over steps of the slowest worker; exposed: of that, what computing does
not hide; bytes: of each worker and step, both ways, with all headers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.torchrun import Program, start_torchrun

_PORT = 29700
_STEP_BYTES = 80 << 20  # of gradients, for each row; at least four steps
_TRANSPORTS = ("gloo", "netfold", "netfold-half")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--parameters", type=int, nargs="+", default=[268_000, 5_000_000])
    parser.add_argument("--transports", nargs="+", default=_TRANSPORTS, choices=_TRANSPORTS)
    parser.add_argument("--rate", type=float, default=100.0, help="of each link, Mbit/s")
    parser.add_argument("--lanes", type=int, default=256, choices=(32, 64, 256))
    parser.add_argument(
        "--bucket-mb", type=float, help="MiB of gradients in a bucket; default: PyTorch's own choice"
    )
    parser.add_argument("--target", default="softswitch", help="softswitch or bmv2")
    parser.add_argument("--queue", type=int, default=64, help="of each port of the switch, packets")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def add(row: dict[str, Any]) -> None:
        rows.append(row)
        print(f"# {row['transport']}, {row['parameters']}: {row['step_ms_p50']} ms", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")

    for workers in options.workers:
        measure(workers, options, add)
    show(rows)


def measure(workers: int, options: argparse.Namespace, add: Callable[[dict[str, Any]], None]) -> None:
    """Calls `add` with each row when it is there."""
    counts = [min(30, max(4, _STEP_BYTES // (4 * n))) for n in options.parameters]
    arguments: list[object] = ["--parameters", *options.parameters, "--steps", *counts]
    arguments += ["--transports", *options.transports]
    if options.bucket_mb is not None:
        arguments += ["--bucket-mb", options.bucket_mb]
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "leaf.yaml"
        spec.write_text(
            f"name: leaf-of-{workers}\ngenerate:\n  single_switch: {{hosts: {workers}, parameter_servers: 0, "
            f"rate: {options.rate}, queue: {options.queue}}}\n"
        )
        setup = Setup(str(spec), options.target, options.lanes)
        with Deployment(setup, tell=lambda text: print("#", text, flush=True)) as system:
            hosts = system.workers
            print(f"# {workers} x torchrun", flush=True)
            program = Program(Path(__file__).with_name("rank.py"), arguments)
            written, told = system.directory / "ddp" / f"{hosts[0]}.json", 0

            def look() -> None:
                nonlocal told
                system.check()
                rows = json.loads(written.read_text())["rows"] if written.exists() else []
                for row in rows[told:]:
                    add(row | {"rate_mbps": options.rate, "lanes": options.lanes})
                told = len(rows)

            with start_torchrun(system, "ddp", hosts, program, _PORT) as group:
                group.wait(3600.0, look)
                look()


def show(rows: Sequence[dict[str, Any]]) -> None:
    print(
        f"\n# {'workers':>7} {'parameters':>10} {'transport':>13} {'step p50':>9} {'of Gloo':>8} {'computing':>9} "
        f"{'exposed':>8} {'MB/step':>8} {'identical':>9}"
    )
    gloo = {(r["workers"], r["parameters"]): r["step_ms_p50"] for r in rows if r["transport"] == "gloo"}
    for row in rows:
        peer = gloo.get((row["workers"], row["parameters"]))
        of_gloo = f"{row['step_ms_p50'] / peer:8.2f}" if peer else f"{'-':>8}"
        print(
            f"  {row['workers']:>7} {row['parameters']:>10} {row['transport']:>13} {row['step_ms_p50']:>9.1f} "
            f"{of_gloo} {row['compute_ms']:>9.1f} {row['exposed_ms']:>8.1f} {row['bytes_per_worker'] / 1e6:>8.2f} "
            f"{row['identical']!s:>9}",
            flush=True,
        )


if __name__ == "__main__":
    main()
