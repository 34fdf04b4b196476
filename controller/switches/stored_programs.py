# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The programs that switches have to run, as the store has them. A controller that comes with other programs leaves
those of switches as they are while jobs run: a push empties a switch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.program_records import RolloutRecord, StoredProgram, SwitchProgram
from netfold.controller.switches.devices import Device
from netfold.controller.switches.endpoint import Pipeline
from netfold.p4src.manifest import P4INFO_SUFFIX, Manifest, ManifestError, program_of, sha256
from netfold.protocol.wire import VERSION
from netfold.topologies.fabric import Fabric, FabricError


class ProgramStore(Protocol):
    """A store, as far as it has programs of switches, and their rollouts."""

    def expect_final(self, what: str) -> None: ...

    @property
    def has_live_jobs(self) -> bool: ...

    def switch_programs(self) -> dict[str, SwitchProgram]: ...

    def program(self, digest: str) -> StoredProgram: ...

    def put_program(self, program: StoredProgram) -> None: ...

    def put_switch_program(self, switch: str, program: SwitchProgram) -> None: ...

    def forget_unused_programs(self) -> None: ...

    @property
    def rollout(self) -> RolloutRecord | None: ...

    def put_rollout(self, rollout: RolloutRecord) -> None: ...


def read_pipeline(pipeline: Pipeline) -> StoredProgram:
    """The program in the files of a pipeline. Raises FabricError."""
    try:
        abilities = program_of(pipeline.p4info)
        name = pipeline.p4info.name.removesuffix(P4INFO_SUFFIX)
        return StoredProgram(name, pipeline.p4info.read_bytes(), pipeline.blob.read_bytes(), abilities)
    except (OSError, ManifestError) as error:
        raise FabricError(f"the program of switches: {error}") from error


class ProgramFiles:
    """Writes stored programs to a folder, as sessions and planners read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pipeline(self, program: StoredProgram) -> Pipeline:
        """The files of a program. Raises StoreError."""
        folder = self._folder / program.digest[:32]
        pipeline = Pipeline(folder / f"{program.name}{P4INFO_SUFFIX}", folder / f"{program.name}.bin")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for file, content in ((pipeline.p4info, program.p4info), (pipeline.blob, program.blob)):
                # A leader may read the files that its standby has written: equal ones stay as they are.
                if not file.is_file() or file.read_bytes() != content:
                    part = file.with_name(f"{file.name}.{os.getpid()}")
                    part.write_bytes(content)
                    part.replace(file)
            artifacts = {pipeline.p4info.name: sha256(pipeline.p4info)}
            Manifest(programs={program.name: program.abilities}, artifacts=artifacts).write(folder)
        except OSError as error:
            raise StoreError(f"the programs of switches cannot be written: {error}") from error
        return pipeline


def with_stored_programs(
    store: ProgramStore,
    fabric: Fabric,
    default: Pipeline,
    devices: Mapping[str, Device],
    files: ProgramFiles,
) -> dict[str, Device]:
    """The devices with the programs that their switches have to run: what a rollout chose, and while jobs run what
    they run on; else the ones of the options. Raises FabricError, StoreError."""
    chosen, keeps_all = dict(devices), store.has_live_jobs
    switches = {s.name for s in fabric.switches}
    configured: dict[Pipeline, StoredProgram] = {}
    stored: dict[str, tuple[StoredProgram, Pipeline]] = {}
    for name, known in store.switch_programs().items():
        if name not in switches or not (known.was_rolled_out or keeps_all):
            continue
        device = devices.get(name, Device())
        pipeline = device.pipeline or default
        if pipeline not in configured:
            configured[pipeline] = read_pipeline(pipeline)
        if known.digest == configured[pipeline].digest:
            continue
        if known.digest not in stored:
            program = store.program(known.digest)
            stored[known.digest] = program, files.pipeline(program)
        program, own = stored[known.digest]
        has, wanted = program.abilities, configured[pipeline].abilities
        if has.chip != wanted.chip:
            continue  # another box has taken the place of the switch
        if not keeps_all and (has.lanes, has.wire) != (wanted.lanes, VERSION):
            continue  # a rollout chose it for packets that no job has any more
        if program.abilities.wire != VERSION:
            raise FabricError(
                f"switch '{name}' runs program {program.name} for packets of version {program.abilities.wire}, and "
                f"this version sends {VERSION}; run the version before until its jobs have ended"
            )
        chosen[name] = replace(device, pipeline=own)
    return chosen


def note_programs(store: ProgramStore, pipelines: Mapping[str, Pipeline]) -> None:
    """Note the programs that switches get, as far as the store has others, within a change. Raises FabricError."""
    programs = {pipeline: read_pipeline(pipeline) for pipeline in set(pipelines.values())}
    known = store.switch_programs()
    for switch, pipeline in pipelines.items():
        program = programs[pipeline]
        if switch not in known or known[switch].digest != program.digest:
            store.put_program(program)
            store.put_switch_program(switch, SwitchProgram(program.digest, was_rolled_out=False))
