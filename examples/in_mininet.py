# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`make train`: examples/train.py on eight hosts of a leaf-spine in Mininet, over netfold and over Gloo on the same
links. Needs namespaces, and PyTorch in .venv-torch.

    python -m examples.in_mininet [--epochs 6] [--out out]

Writes train.json and train.png, a picture of step times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from netfold.protocol.runtime import default_name
from netfold.testbed.deployment import Deployment, Setup
from netfold.testbed.errors import RunError
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import run_isolated
from netfold.testbed.network.sudo_user import as_sudo_user
from netfold.testbed.torchrun import TorchProgram, start_torchrun, torch_python
from netfold.traffic.workloads.workloads import digits

_PORT = 29800
_SCRIPT = Path(__file__).with_name("train.py")
_BACKENDS = ("netfold", "gloo")
_COLORS = {"netfold": "tab:blue", "gloo": "tab:orange"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--fabric", default="leaf-spine-2x2", help="a fabric's YAML file, or the name of a spec"
    )
    parser.add_argument(
        "--target", default="auto", help="softswitch, bmv2, or auto: softswitch where it can run"
    )
    parser.add_argument(
        "--name", default=default_name(), help="of the network; default: $NETFOLD_NAME, or nf"
    )
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds, of each training")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    try:
        run_isolated(options.name)
        torch_python()
        reports = train(options)
        with as_sudo_user():
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "train.json").write_text(json.dumps(reports, indent=1) + "\n")
            draw(reports, options.out / "train.png")
    except (RunError, NetworkError, OSError) as error:
        print(f"netfold: {error}", file=sys.stderr)
        sys.exit(1)
    show(reports)
    print(f"{options.out / 'train.json'} and {options.out / 'train.png'} are written")


def train(options: argparse.Namespace) -> dict[str, Any]:
    """By backend, what the first host's rank reports."""
    found = {}
    with Deployment(
        Setup(options.fabric, options.target, name=options.name), on_step=report_progress
    ) as system:
        data = system.directory / "digits.npz"
        np.savez(data, **asdict(digits()))
        for number, backend in enumerate(_BACKENDS):
            report_progress(f"{len(system.workers)} hosts train over {backend}: torchrun on each")
            arguments = ["--data", data, "--backend", backend, "--epochs", options.epochs]
            program = TorchProgram(_SCRIPT, arguments)
            with start_torchrun(system, f"train-{backend}", system.workers, program, _PORT + number) as group:
                reports = group.wait(options.timeout, system.check)
            found[backend] = {**reports[system.workers[0]], "link_mbps": system.link_mbps}
    return found


def report_progress(text: str) -> None:
    print(f"# {text}", flush=True)


def show(reports: dict[str, Any]) -> None:
    print(f"\n{'':>10} {'accuracy':>9} {'step p50':>9} {'p90':>9}  weights of all ranks")
    for backend, report in reports.items():
        steps = sorted(report["step_ms"])
        p90 = steps[int(0.9 * (len(steps) - 1))]
        same = "identical" if report["identical"] else "DIFFER"
        median = statistics.median(steps)
        print(f"{backend:>10} {report['accuracy']:>9.1%} {median:>6.0f} ms {p90:>6.0f} ms  {same}")
    of_gloo = statistics.median(reports["netfold"]["step_ms"]) / statistics.median(reports["gloo"]["step_ms"])
    print(f"a step over netfold takes {of_gloo:.2f} of Gloo's time")


def draw(reports: dict[str, Any], file: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 4.5))
    for backend, report in reports.items():
        steps = report["step_ms"]
        axes.plot(range(1, len(steps) + 1), steps, ".", color=_COLORS[backend], alpha=0.5)
        median = statistics.median(steps)
        axes.axhline(median, color=_COLORS[backend], label=f"{backend}: median {median:.0f} ms")
    one = next(iter(reports.values()))
    axes.set_title(
        f"{one['parameters']:,} parameters, {one['ranks']} hosts, links of {one['link_mbps']:g} Mbit/s"
    )
    axes.set_xlabel("step")
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
