# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of upgrades and rollouts (mutant.py)."""

from __future__ import annotations

from tests.simulation.mutant import Mutant

ROLLOUTS = "health/rollouts.py"
STORE = "jobs/store.py"
SESSION = "switches/session.py"

UPGRADE_MUTANTS = (
    Mutant(
        "a switch with another program is not checked",
        ROLLOUTS,
        "        if fault := await self._fault(switch, record.down):",
        '        if fault := "":',
        "a program answers nothing",
    ),
    Mutant(
        "slots of a switch with another program are not read",
        ROLLOUTS,
        "        with registry.quarantine(switch, free):",
        '        return ""\n        with registry.quarantine(switch, free):',
        "a program answers nothing",
    ),
    Mutant(
        "a switch gets another program while jobs use it",
        ROLLOUTS,
        "            record = await self._free(record, switch)\n",
        "",
        "a program reaches all switches",
    ),
    Mutant(
        "a leaf with workers is not held for its program",
        ROLLOUTS,
        "        if is_bound or self._jobs_at(switch):",
        "        if False:",
        "a program reaches all switches",
    ),
    Mutant(
        "a leaf whose job waits is not held for its program",
        ROLLOUTS,
        "        if is_bound or self._jobs_at(switch):",
        "        if self._jobs_at(switch):",
        "a job waits when its leaf gets another program",
    ),
    Mutant(
        "an operator gives back a switch that gets another program",
        "service/servicer.py",
        "        self._rollouts.check_free(request.elements)\n        self._maintenance.give_back(",
        "        self._maintenance.give_back(",
        "an operator gives a switch back that fails its check",
    ),
    Mutant(
        "a switch that fails keeps the program",
        ROLLOUTS,
        "            self._assign(switch, before)\n",
        "            pass\n",
        "a program answers nothing",
    ),
    Mutant(
        "a rollout that fails does not stop",
        ROLLOUTS,
        '"reason": f"switch {switch}: {fault}"}))\n            return\n',
        '"reason": ""}))\n',
        "a program answers nothing",
    ),
    Mutant(
        "a switch stays withdrawn after its rollout",
        ROLLOUTS,
        "            self._maintenance.give_back([switch], is_for_rollout=True)\n",
        "            pass\n",
        "a program reaches all switches",
    ),
    Mutant(
        "a cancel lets the step under way go on",
        ROLLOUTS,
        "        if self._step is not None:\n            self._step.cancel()\n",
        "",
        "an operator cancels a rollout while jobs leave its switch",
    ),
    Mutant(
        "a cancel is not stored",
        ROLLOUTS,
        '        self._commit(record.model_copy(update={"reason": CANCELED, "is_canceled": True}))\n',
        '        self.record = record.model_copy(update={"reason": CANCELED, "is_canceled": True})\n',
        "an operator cancels a rollout whose switch has its program",
    ),
    Mutant(
        "a cancel gives back what an operator has drained",
        "scheduling/maintenance.py",
        " if w.is_for_rollout or not is_for_rollout\n",
        "\n",
        "an operator cancels a rollout that begins with a spine that is drained",
    ),
    Mutant(
        "the next controller forgets the rollout",
        ROLLOUTS,
        "        self.record = _without_removed(self._store.rollout, fleet.sessions)\n",
        "        self.record = None\n",
        "the controller restarts in a rollout",
    ),
    Mutant(
        "the program of a switch is not stored",
        ROLLOUTS,
        "            self._store.put_switch_program(switch, SwitchProgram(digest, was_rolled_out=True))\n",
        "            pass\n",
        "a program reaches all switches",
    ),
    Mutant(
        "what an operator has withdrawn is given back after a rollout",
        ROLLOUTS,
        "        if displaced is None:",
        "        if True:",
        "a spine that an operator has drained gets another program",
    ),
    Mutant(
        "a switch is not connected anew for its program",
        SESSION,
        '        self._reporter.set_failed("its program is replaced")\n        self._closing.set()\n',
        '        self._reporter.set_failed("its program is replaced")\n',
        "a program reaches all switches",
    ),
    Mutant(
        "a rollout begins while the version before may use the store",
        ROLLOUTS,
        '        self._store.expect_final("a rollout")\n',
        "",
        "a rollout waits for the end of an upgrade",
    ),
    Mutant(
        "a store of the version before is refused",
        STORE,
        "        if found not in (SCHEMA_BEFORE, SCHEMA):",
        "        if found != SCHEMA:",
        "two versions use one store",
    ),
    Mutant(
        "the program of a rollout is forgotten when it begins",
        ROLLOUTS,
        "            self._store.put_program(program)\n",
        "",
        "a program reaches all switches",
    ),
)
