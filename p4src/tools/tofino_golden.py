# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The committed files of the Tofino programs: their P4Info for the controller, and a report of the resources that each
takes of its chip, its hashes of flows and the hashes of its sources. `python -m netfold.p4src.tools.tofino_golden`
compiles and renews them; a test compiles again and compares.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from netfold.p4src.manifest import ordinary_program, read_manifest, sha256
from netfold.p4src.tools.p4build import COMPILED, REPOSITORY, P4BuildError, hashes
from netfold.p4src.tools.tofino import CHIPS, NAME, Build, TofinoChip, build
from netfold.p4src.tools.tofino_hashes import flow_hashes

SOURCE_DIRS = ("common", "quorum", "tna")


def p4info_path(chip: str) -> Path:
    return REPOSITORY / COMPILED / f"netfold-{chip}.p4info.txtpb"


def report_path(chip: str) -> Path:
    return REPOSITORY / COMPILED / f"netfold-{chip}.resources.json"


def outdated(chip: str) -> str | None:
    """Why the committed files of a chip's program are outdated; None if they were made of today's sources."""
    if json.loads(report_path(chip).read_text())["sources"] == hashes(SOURCE_DIRS):
        return None
    changed = f"the program of {chip} has changed since it was compiled"
    return f"{changed}: make p4-tofino, which needs p4c's Tofino back end"


def report(chip: TofinoChip, made: Build) -> dict[str, Any]:
    """Units in use, stage by stage and in all, PHV containers by gress and width, hashes of flows, and the sources'
    hashes: the same for every compilation of the same sources. Raises P4BuildError."""
    logs = made.context.parent / "logs"
    resources = json.loads((logs / "resources.json").read_text())["resources"]
    phv = json.loads((logs / "phv.json").read_text())
    stages = [_stage(stage) for stage in resources["mau"]["mau_stages"]]
    is_seeded = ordinary_program(chip.name, chip.lanes).seeded
    assembly = (made.context.parent / f"{NAME}.bfa").read_text()
    return {
        "chip": chip.name,
        "lanes": chip.lanes,
        "stages_of_the_chip": resources["mau"]["nStages"],
        "stages": sum(any(stage.values()) for stage in stages),
        "in_all": {kind: sum(stage[kind] for stage in stages) for kind in stages[0]},
        "by_stage": stages,
        "phv_containers": _containers(phv),
        "flow_hashes": flow_hashes(assembly) if is_seeded else {},
        "sources": hashes(SOURCE_DIRS),
    }


def _stage(stage: dict[str, Any]) -> dict[str, int]:
    return {
        "logical_tables": len(stage["logical_tables"]["ids"]),
        "sram": len(stage["rams"]["srams"]),
        "map_ram": len(stage["map_rams"]["maprams"]),
        "tcam": len(stage["tcams"]["tcams"]),
        "stateful_alus": len(stage["meter_alus"]["meters"]),
        "statistics_alus": len(stage["statistic_alus"]["stats"]),
        "gateways": len(stage["gateways"]["gateways"]),
    }


def _containers(phv: dict[str, Any]) -> dict[str, dict[str, int]]:
    used = Counter(
        (c["gress"], c["container_type"], c["bit_width"]) for c in phv["containers"] if c["slices"]
    )
    found: dict[str, dict[str, int]] = {}
    for (gress, kind, width), count in sorted(used.items()):
        found.setdefault(gress, {})[f"{kind} {width} bit"] = count
    return found


def renew(chip: TofinoChip, made: Build) -> dict[str, Any]:
    """Writes the committed files of a build; returns the report."""
    found = report(chip, made)
    path = p4info_path(chip.name)
    path.write_text(made.p4info.read_text())
    manifest = read_manifest(path.parent)
    artifacts = {**manifest.artifacts, path.name: sha256(path)}
    manifest.model_copy(update={"artifacts": artifacts}).write(path.parent)
    report_path(chip.name).write_text(json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    """Renew the committed P4Info and resource report of both chips (p4c with its Tofino back end on PATH)."""
    for chip in CHIPS.values():
        with tempfile.TemporaryDirectory() as folder:
            try:
                made = build(chip, Path(folder))
                found = renew(chip, made)
            except P4BuildError as error:
                typer.echo(str(error), err=True)
                raise typer.Exit(1) from error
        typer.echo(
            f"{chip.name}, {chip.lanes} lanes: {found['stages']} of {found['stages_of_the_chip']} stages, "
            f"{made.seconds:.0f} s of one processor"
        )


if __name__ == "__main__":
    typer.run(main)
