# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.planning --seeds 0:200`: how near `auto` and the packing come to the bound on random asymmetric
fabrics."""

from __future__ import annotations

from typing import Annotated

import typer

from tests.planning.test_packing import Outcome, outcome

NEAR = 0.95


def main(seeds: Annotated[str, typer.Option(help="FIRST:END, without END.")] = "0:200") -> None:
    first, end = map(int, seeds.split(":"))
    found: list[Outcome] = []
    with typer.progressbar(range(first, end), label="fabrics") as numbers:
        found = [o for seed in numbers if (o := outcome(seed)) is not None]
    auto = [o.auto.rate / o.bound for o in found]
    packed = [o.packed.rate / o.bound for o in found]
    trees = max(len(o.auto.trees) for o in found)
    typer.echo(f"{len(found)} of {end - first} fabrics join the workers")
    typer.echo(
        f"auto, at most {trees} trees: {near(auto)} of {len(found)}, worst {min(auto):.2f} of the bound"
    )
    typer.echo(f"packing: {near(packed)} of {len(found)}, worst {min(packed):.2f} of the bound")


def near(parts: list[float]) -> int:
    return sum(part >= NEAR for part in parts)


typer.run(main)
