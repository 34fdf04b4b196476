# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the compiled programs of v1model in p4src/compiled that a fabric needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from importlib import resources
from pathlib import Path

from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.program_limits import max_children
from netfold.topologies.fabric import FabricError, Switch

PROGRAMS = Path(str(resources.files("netfold"))) / "p4src" / "compiled"
_SUFFIX = ".p4info.txtpb"


class ProgramForm(StrEnum):
    """Form of a program. BMv2 runs all programs of v1model, and those of its own form several times faster."""

    V1MODEL = "v1model"
    BMV2 = "bmv2"


def program_for(
    switches: Sequence[Switch],
    lanes: int,
    folder: Path = PROGRAMS,
    *,
    form: ProgramForm = ProgramForm.V1MODEL,
) -> Pipeline:
    """The program of `lanes` whose nodes have room for the children that the file of the fabric gives these switches,
    with the fewest spare ones, and of `form` if there is one. Raises FabricError, which names the switch with the most
    children and the available programs."""
    known = {max_children(path): path for path in _p4infos(folder, lanes)}
    known |= {
        children: path
        for path in _p4infos(folder, lanes, form)
        if (children := max_children(path)) >= _most_children(switches)
    }
    if not known:
        raise FabricError(
            f"no program has {lanes} lanes; there are programs for {_joined(_lanes(folder))} lanes"
        )
    children = _most_children(switches)
    fitting = [bits for bits in known if bits >= children]
    if not fitting:
        widest = next(s.name for s in switches if s.children == children)
        raise FabricError(
            f"switch '{widest}' is said to take {children} children, and programs of {lanes} lanes take "
            f"{_joined(known)}; expected 'children' of at most {max(known)}{_elsewhere(folder, lanes)}"
        )
    p4info = known[min(fitting)]
    return Pipeline(p4info, p4info.with_name(p4info.name.removesuffix(_SUFFIX) + ".json"))


def lanes_for(switches: Sequence[Switch], most: int, folder: Path = PROGRAMS) -> int:
    """The largest lane count of at most `most` with a program whose nodes have room for the children of these switches;
    `most` if there is none."""
    children = _most_children(switches)
    fitting = [
        lanes
        for lanes in _lanes(folder)
        if lanes <= most and any(max_children(path) >= children for path in _p4infos(folder, lanes))
    ]
    return max(fitting, default=most)


def _most_children(switches: Sequence[Switch]) -> int:
    return max((switch.children or 0 for switch in switches), default=0)


def _elsewhere(folder: Path, lanes: int) -> str:
    """A sentence about programs of other lanes that allow more children; empty if there are none."""
    here = max(map(max_children, _p4infos(folder, lanes)))
    wider = {n: max(map(max_children, _p4infos(folder, n))) for n in _lanes(folder)}
    return "".join(f", or --lanes {n} for at most {most}" for n, most in wider.items() if most > here)


def _p4infos(folder: Path, lanes: int, form: ProgramForm = ProgramForm.V1MODEL) -> list[Path]:
    return [path for path in sorted(folder.glob(f"*{_SUFFIX}")) if _lanes_of(path, form) == lanes]


def _lanes(folder: Path) -> list[int]:
    return sorted({n for path in folder.glob(f"*{_SUFFIX}") if (n := _lanes_of(path)) is not None})


def _lanes_of(p4info: Path, form: ProgramForm = ProgramForm.V1MODEL) -> int | None:
    """The lanes of a program of that form; None for other programs."""
    found = re.match(rf"netfold-{form}-(\d+)", p4info.name)
    return None if found is None else int(found[1])


def _joined(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
