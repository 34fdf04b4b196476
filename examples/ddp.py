# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`make train`: examples/train.py on eight hosts of a leaf-spine in Mininet, over netfold, with numerics `half`, and
over Gloo on the same links. Needs namespaces, and PyTorch in .venv-torch.

    python -m examples.ddp [--epochs 6] [--out out] [--python .venv-torch-2.13.0/bin/python]

Writes train.json, and train.png and train.svg, a picture of step times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from netfold.controller.drawing.chart import legend, series
from netfold.controller.drawing.plot import Plot, save
from netfold.protocol.runtime import default_name
from netfold.testbed.errors import RunError
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import run_isolated
from netfold.testbed.network.sudo_user import as_sudo_user
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import torch_python
from netfold.traffic.workloads.workloads import digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PORT = 29800
_SCRIPT = Path(__file__).with_name("train.py")
_TRANSPORTS: dict[str, dict[str, str]] = {"netfold": {}, "half": {"NETFOLD_NUMERICS": "half"}, "gloo": {}}
"""Environment of the ranks, by the transport's name."""
PICTURES = ("train.png", "train.svg")


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
    parser.add_argument("--python", type=Path, help="the interpreter with PyTorch; default: .venv-torch's")
    options = parser.parse_args()
    try:
        run_isolated(options.name)
        options.python = options.python.absolute() if options.python else torch_python()
        reports = train(options)
        with as_sudo_user():
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "train.json").write_text(json.dumps(reports, indent=1) + "\n")
            for name in PICTURES:
                save(step_plot(reports), options.out / name)
    except (RunError, NetworkError, OSError) as error:
        print(f"netfold: {error}", file=sys.stderr)
        sys.exit(1)
    show(reports)
    print(f"written: {', '.join(str(options.out / name) for name in ('train.json', *PICTURES))}")


def train(options: argparse.Namespace) -> dict[str, Any]:
    """Return the report of the first host's rank for each transport."""
    found = {}
    with Testbed(options.fabric, target=options.target, name=options.name, on_step=report_progress) as system:
        data = system.directory / "digits.npz"
        np.savez(data, **asdict(digits()))
        for number, (transport, environment) in enumerate(_TRANSPORTS.items()):
            report_progress(f"{len(system.workers)} hosts train over {transport}: torchrun on each")
            backend = "gloo" if transport == "gloo" else "netfold"
            with system.torchrun(
                _SCRIPT,
                ["--data", data, "--backend", backend, "--epochs", options.epochs],
                name=transport,
                port=_PORT + number,
                environment=environment,
                result_option="--out",
                python=options.python,
            ) as group:
                reports = group.wait(options.timeout, system.check)
            found[transport] = {**reports[system.workers[0]], "link_mbps": system.link_mbps}
    return found


def report_progress(text: str) -> None:
    print(f"# {text}", flush=True)


def show(reports: dict[str, Any]) -> None:
    print(f"\n{'':>10} {'accuracy':>9} {'step p50':>9} {'p90':>9}  weights of all ranks")
    for transport, report in reports.items():
        steps = sorted(report["step_ms"])
        p90 = steps[int(0.9 * (len(steps) - 1))]
        same = "identical" if report["identical"] else "DIFFER"
        median = statistics.median(steps)
        print(f"{transport:>10} {report['accuracy']:>9.1%} {median:>6.0f} ms {p90:>6.0f} ms  {same}")
    of_gloo = statistics.median(reports["netfold"]["step_ms"]) / statistics.median(reports["gloo"]["step_ms"])
    print(f"a step over netfold takes {of_gloo:.2f} of Gloo's time")


def step_plot(reports: dict[str, Any]) -> Plot:
    """Duration of each step by transport, with its median."""

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for number, (transport, report) in enumerate(reports.items()):
            steps, style = report["step_ms"], series(number)
            dots = {"linestyle": "none", "alpha": 0.45, "markersize": 4.0}
            axes.plot(range(1, len(steps) + 1), steps, **style | dots, label=f"{transport}, each step")
            median = statistics.median(steps)
            axes.axhline(
                median, color=style["color"], linewidth=2, label=f"{transport}, median: {median:.0f} ms"
            )
        one = next(iter(reports.values()))
        axes.set_title(
            f"{one['parameters']:,} parameters, {one['ranks']} hosts, links of {one['link_mbps']:g} Mbit/s"
        )
        axes.set(xlabel="step", ylabel="duration of a step, ms")
        axes.set_ylim(bottom=0)
        legend(figure, [axes])

    return Plot(draw, (9.0, 4.4))


if __name__ == "__main__":
    main()
