# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the controller remembers of jobs."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobState
from netfold.controller.jobs.store import HISTORY, Store
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.topologies.addressing import addresses
from netfold.topologies.generators import single_switch

TEXT = "name: a\nworkers: [h1, h2]\nscheme: switchml\n"


def test_the_file_of_a_job_is_read_once_and_leaves_with_its_record(tmp_path: Path) -> None:
    fabric = single_switch(2)
    store = Store(tmp_path / "state.db", "fabric")
    registry = JobRegistry(FabricConfig(fabric, addresses(fabric), store.mark), PacketModel(32), store)
    with registry.change():
        registry.write(registry.new(resolve_job(TEXT, fabric, "a")))
    assert registry.resolved_job("a") is registry.resolved_job("a"), "a live job's is kept"
    resolved = weakref.ref(registry.resolved_job("a"))
    with registry.change():
        registry.write(registry.with_end_state(registry.get("a"), JobState.DONE, "every worker left"))
    assert registry.resolved_job("a") is resolved(), (
        "an ended job's is kept, too: a loss of each of its members reads it"
    )
    with registry.change():
        for n in range(HISTORY):
            registry.write(registry.new(resolve_job(TEXT.replace("name: a", f"name: b{n}"), fabric, f"b{n}")))
            registry.write(registry.with_end_state(registry.get(f"b{n}"), JobState.DONE, "every worker left"))
    gc.collect()
    assert resolved() is None
