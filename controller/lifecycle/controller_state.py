# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The state that the parts of the controller share."""

from __future__ import annotations

import asyncio

from netfold.controller.lifecycle.background_tasks import BackgroundTasks
from netfold.controller.lifecycle.clock import Clock
from netfold.controller.lifecycle.events import ChangeNotifier, EventBus
from netfold.controller.lifecycle.failure_state import FailureState
from netfold.controller.lifecycle.job_registry import JobRegistry
from netfold.controller.lifecycle.job_store import JobStore
from netfold.controller.lifecycle.member_status import MemberStatus
from netfold.controller.lifecycle.packet_model import PacketModel
from netfold.controller.lifecycle.timeouts import ControllerTimeouts
from netfold.controller.switches.fabric_config import FabricConfig
from netfold.topologies.fabric import Fabric


class ControllerState:
    """Jobs, failures and reports of members; events and changes by which parts hear of each other; tasks and timers.
    `config`, `packet_model` and `timeouts` never change."""

    def __init__(
        self,
        config: FabricConfig,
        packet_model: PacketModel,
        timeouts: ControllerTimeouts,
        store: JobStore,
        clock: Clock,
    ) -> None:
        self.config = config
        self.packet_model = packet_model
        self.timeouts = timeouts
        self.clock = clock
        self.registry = JobRegistry(config, packet_model, store, clock)
        self.failures = FailureState(clock)
        self.member_status = MemberStatus()
        self.events = EventBus()
        self.changes = ChangeNotifier()
        self.tasks = BackgroundTasks()
        self.steps_down = asyncio.Event()
        """Set once another controller is to lead."""

    @property
    def fabric(self) -> Fabric:
        return self.config.fabric
