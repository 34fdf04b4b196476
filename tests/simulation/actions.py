# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The steps of scenarios: each is a method, which returns at once."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import replace

from netfold.controller.jobs.records import Transport
from netfold.controller.jobs.withdrawal import Intent
from netfold.protocol import netfold_pb2 as pb
from tests.simulation.cluster import Cluster, Replica
from tests.simulation.disk import CommitFault
from tests.simulation.loop import VirtualLoop
from tests.simulation.process import Process
from tests.simulation.program import JobSpec
from tests.simulation.scenario import Step
from tests.simulation.switch import Rogue
from tests.simulation.world import World

LAST_WORK_S = 5.0
"""The time of a program once all is well: a queue of long jobs comes to its end, too."""


class Actions:
    def __init__(self, world: World) -> None:
        self._world = world
        self._until: dict[object, int] = {}

    def do(self, step: Step) -> None:
        getattr(self, step.kind)(*step.arguments)

    # ---- operators ------------------------------------------------------------------------------------

    def submit(self, spec: JobSpec) -> None:
        self._world.submit(spec)

    def cancel(self, job: str) -> None:
        if job in self._world.programs:
            self._world.programs[job].is_canceled = True
        self._world.call(f"cancel {job}", "CancelJob", pb.CancelJobRequest(name=job))

    def replan(self) -> None:
        self._world.call("replan", "Replan", pb.ReplanRequest())

    # ---- members --------------------------------------------------------------------------------------

    def keep_away(self, job: str, host: str) -> None:
        """Its process does not start."""
        if program := self._world.programs.get(job):
            program.excuses.append(f"{host} did not start")
            program.absent.add(host)

    def kill_member(self, job: str, host: str) -> None:
        if (program := self._world.programs.get(job)) and (member := program.members.get(host)):
            program.excuses.append(f"{host} was killed")
            member.kill()

    def vanish_member(self, job: str, host: str) -> None:
        if (program := self._world.programs.get(job)) and (member := program.members.get(host)):
            program.excuses.append(f"{host} vanished")
            member.vanish()

    def leave_member(self, job: str, host: str) -> None:
        """Its program ends before the others' do."""
        if (program := self._world.programs.get(job)) and (member := program.members.get(host)):
            self._say(f"{host} leaves {job} early")
            program.early.add(host)
            if program.spec.transport is Transport.ROCE:
                program.excuses.append(f"{host} left, and another worker may be alone at its leaf")
            member.leave()

    def start_member(self, job: str, host: str) -> None:
        self._world.start_member(job, host)

    def start_second(self, job: str, host: str) -> None:
        """A process beside the first one, which an operator has forgotten."""
        if (program := self._world.programs.get(job)) and host in program.members:
            program.excuses.append(f"{host} was started twice")
            self._world.start_member(job, host, is_second=True)

    def break_stream(self, job: str, host: str, half_open: bool) -> None:
        if (program := self._world.programs.get(job)) and (member := program.members.get(host)):
            self._say(f"the stream of {job}/{host} breaks{', half open' if half_open else ''}")
            member.break_stream(half_open=half_open)

    def add_worker(self, job: str, host: str) -> None:
        if program := self._world.programs.get(job):
            program.added.add(host)  # also if its answer is lost
            request = pb.AddWorkersRequest(name=job, hosts=[host])
            self._world.call(f"add {host} to {job}", "AddWorkers", request)

    def request_epoch(self, job: str, host: str) -> None:
        if (program := self._world.programs.get(job)) and (member := program.members.get(host)):
            member.request_new_epoch()

    # ---- the controller -------------------------------------------------------------------------------

    def restart_controller(self, away_s: float) -> None:
        self._world.kill()
        self._later(away_s + 0.01, self._world.start)

    def kill_at_commit(self, number: int, is_after: bool, away_s: float) -> None:
        fault = CommitFault.KILLED_AFTER if is_after else CommitFault.KILLED_BEFORE

        def kill() -> None:
            self._world.kill()
            self._later(away_s + 0.01, self._world.start)

        self._world.disk.after(number, fault, kill)

    def back_up_store(self) -> None:
        self._world.back_up()

    def restore_store(self, away_s: float) -> None:
        """As it was when it was backed up last."""
        if self._world.has_backup:
            self._world.kill()
            self._world.restore()
            self._later(away_s + 0.01, self._world.start)

    def fill_disk(self, lasts_s: float) -> None:
        self._world.disk.is_full = True
        self._say("the disk is full")
        self._for("disk", lasts_s, self._empty_disk)

    def _empty_disk(self) -> None:
        self._world.disk.is_full = False
        self._say("the disk has room again")

    def crash_planner(self) -> None:
        self._world.plans.crashes += 1
        for program in self._world.programs.values():
            program.excuses.append("the planner crashed")

    # ---- switches and links ---------------------------------------------------------------------------

    def power_cut(self, switch: str, lasts_s: float) -> None:
        self._say(f"power cut at {switch}")
        self._world.switches[switch].stop()
        self._world.note_change(switch)
        self._for(switch, lasts_s, lambda: self._power_back(switch))

    def _power_back(self, switch: str) -> None:
        self._say(f"power is back at {switch}")
        self._world.switches[switch].start()
        self._world.note_change(switch)

    def drop_connections(self, switch: str) -> None:
        self._say(f"{switch} loses its connections")
        self._world.note_change(switch)
        self._world.switches[switch].drop_connections()

    def refuse_connections(self, switch: str, lasts_s: float) -> None:
        """The switch loses them, and takes no others for a while. Its jobs' packets get through."""
        self._say(f"{switch} refuses connections")
        self._world.switches[switch].is_refusing = True
        self._world.switches[switch].drop_connections()
        self._for(f"refusal {switch}", lasts_s, lambda: self._accept_connections(switch))

    def _accept_connections(self, switch: str) -> None:
        self._say(f"{switch} accepts connections")
        self._world.switches[switch].is_refusing = False

    def forget_elections(self, switch: str) -> None:
        self._say(f"{switch} forgets elections")
        self._world.note_change(switch)
        self._world.switches[switch].forget_elections()

    def hang(self, switch: str, lasts_s: float) -> None:
        """No excuse for the end of a job: what hangs may go on."""
        self._say(f"{switch} hangs")
        self._world.switches[switch].is_running.clear()
        self._for(f"hang {switch}", lasts_s, lambda: self._go_on(switch))

    def _go_on(self, switch: str) -> None:
        self._say(f"{switch} goes on")
        self._world.switches[switch].is_running.set()

    def slow(self, switch: str, delay_s: float, lasts_s: float) -> None:
        """Each way to and from the switch takes up to so long. No excuse, either."""
        self._say(f"{switch} is slow: up to {delay_s:g} s a way")
        self._world.note_busy(lasts_s)
        self._world.switches[switch].delay_s = delay_s
        self._for(f"slow {switch}", lasts_s, lambda: self._speed_up(switch))

    def _speed_up(self, switch: str) -> None:
        self._say(f"{switch} is as fast as before")
        self._world.switches[switch].delay_s = 0.0

    def slow_planner(self, lasts_s: float) -> None:
        """Plans take longer than they may."""
        self._say("the planner is slow")
        self._world.note_busy(lasts_s)
        self._world.plans.is_busy = True
        self._for("planner", lasts_s, self._speed_up_planner)

    def _speed_up_planner(self) -> None:
        self._say("the planner is as fast as before")
        self._world.plans.is_busy = False

    def stall(self, lasts_s: float) -> None:
        """The machine stands still, and with it the event loop: timers are due before answers have been read."""
        self._say(f"the machine stands still for {lasts_s:g} s")
        self._world.note_busy(lasts_s)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.suspend(lasts_s)

    def drift(self, switch: str, where: float) -> None:
        lost = self._world.switches[switch].drift(where)
        self._say(f"{switch} loses {lost}")
        self._world.note_change(switch)

    def rogue(self, switch: str, lasts_s: float) -> None:
        self._say(f"{switch} has another primary")
        self._world.note_change(switch)
        rogue = self._world.switches[switch].elect_rogue()
        self._later(lasts_s, lambda: self._dismiss(switch, rogue))

    def _dismiss(self, switch: str, rogue: Rogue) -> None:
        self._say(f"the other primary of {switch} is gone")
        self._world.note_change(switch)
        self._world.switches[switch].dismiss(rogue)

    def cut_link(self, a: str, b: str, lasts_s: float) -> None:
        self._say(f"link {a}-{b} is cut")
        link = frozenset((a, b))
        self.end_cross_traffic(a, b)
        self.end_cross_traffic(b, a)
        self._world.cut.add(link)
        self._world.note_change(link)
        self._for(link, lasts_s, lambda: self._mend(link))

    def _mend(self, link: frozenset[str]) -> None:
        self._say(f"link {'-'.join(sorted(link))} works again")
        self._world.cut.discard(link)
        self._world.note_change(link)

    def cross_traffic(self, a: str, b: str, share: float, lasts_s: float) -> None:
        """From `a` to `b`, which no job sends. A cut of the link ends it."""
        if frozenset((a, b)) not in self._world.cut:
            self._say(f"cross traffic takes {share:.0%} of {a}->{b}")
            self._world.set_cross_traffic(a, b, share)
            self._for(("cross traffic", a, b), lasts_s, lambda: self.end_cross_traffic(a, b))

    def end_cross_traffic(self, a: str, b: str) -> None:
        self._world.set_cross_traffic(a, b, 0.0)

    def change_fabric(self, kind: str, where: float | str) -> None:
        """See FabricFile."""
        self._world.change_fabric(kind, where)

    # ---- upgrades -------------------------------------------------------------------------------------

    def use_store_of_before(self) -> None:
        """The store is kept for the version before until `finalize`."""
        self._world.keep_for_before()

    def finalize(self) -> None:
        self._world.finalize()

    def change_version(self, away_s: float) -> None:
        """The next controller is of the version before, if the store is not final."""
        self._world.kill()
        self._world.starts_as_before = True
        self._later(away_s + 0.01, self._world.start)

    def roll_out(self, program: str) -> None:
        """See rolled_out.py."""
        self._world.rollouts.want(program)

    def cancel_rollout(self) -> None:
        self._world.rollouts.cancel()

    # ---- maintenance ----------------------------------------------------------------------------------

    def drain(self, element: str, lasts_s: float) -> None:
        """A switch, a link such as leaf1-spine1, or a host."""
        self._withdraw(element, Intent.DRAIN, lasts_s)

    def cordon(self, element: str, lasts_s: float) -> None:
        self._withdraw(element, Intent.CORDON, lasts_s)

    def hold(self, switch: str, hold_s: float) -> None:
        """It is given back when all is well."""
        self._world.operator.want(switch, Intent.HOLD, hold_s)

    def black_out(self, leaf: str, lasts_s: float) -> None:
        """A power cut of a leaf, over which its hosts reach the controller, too."""
        world = self._world
        self.power_cut(leaf, lasts_s)
        world.cut_off.add(leaf)
        for program in world.programs.values():
            for host, member in program.members.items():
                if world.fabric.attachment(host) == leaf:
                    program.excuses.append(f"{host} did not reach the controller")
                    member.break_stream(half_open=True)
        self._for(("cut off", leaf), lasts_s, lambda: world.cut_off.discard(leaf))

    def _withdraw(self, element: str, intent: Intent, lasts_s: float) -> None:
        if self._world.has_element(element):
            self._world.operator.want(element, intent)
            self._for(("withdrawn", element), lasts_s, lambda: self._give_back(element))

    def _give_back(self, element: str) -> None:
        if self._world.has_element(element):
            self._world.operator.want(element, None)

    # ---- the end --------------------------------------------------------------------------------------

    def heal(self) -> None:
        """From now on all is well."""
        world = self._world
        self._say("from now on all is well")
        self._until.clear()
        world.draws.is_calm = True
        world.disk.is_full = False
        world.disk.clear()
        world.plans.crashes = 0
        self._speed_up_planner()
        for link in list(world.cut):
            self._mend(link)
        for a, b in world.links():
            self.end_cross_traffic(a, b)
            self.end_cross_traffic(b, a)
        world.operator.want_all_back()
        world.rollouts.give_up()
        world.cut_off.clear()
        for program in world.programs.values():
            program.work_left_s = min(program.work_left_s, LAST_WORK_S)
        for name, switch in world.switches.items():
            if not switch.is_up:
                self._power_back(name)
            switch.is_running.set()
            switch.delay_s = 0.0
            switch.is_refusing = False
            for rogue in list(switch.rogues):
                self._dismiss(name, rogue)
        if world.cluster is not None:
            world.cluster.heal()
        world.start()

    # ---- several controllers --------------------------------------------------------------------------

    def kill_replica(self, number: int, away_s: float) -> None:
        """Number 0 is the leader, here and below."""
        replica = self._replica(number, away_s)
        replica.kill()
        self._later(away_s + 0.01, replica.start)

    def stop_replica(self, number: int, lasts_s: float) -> None:
        """Stop a controller as SIGSTOP does, and later as SIGCONT lets it go on."""
        if (process := self._replica(number, lasts_s).process) is not None:
            self._say(f"{process.name} is stopped")
            process.stop()
            self._for(process, lasts_s, lambda: self._resume(process))

    def hang_replica(self, number: int, lasts_s: float) -> None:
        """Its event loop stands still, and not its threads."""
        if (process := self._replica(number, lasts_s).process) is not None:
            self._say(f"{process.name} hangs")
            process.hang()
            self._for(process, lasts_s, lambda: self._resume(process))

    def _resume(self, process: Process) -> None:
        if process.is_alive:
            self._say(f"{process.name} goes on")
            process.resume()

    def cut_etcd(self, number: int, requests: bool, answers: bool, delay_s: float, lasts_s: float) -> None:
        """A machine's way to etcd: whether requests pass, and answers, and how late they are."""
        replica = self._replica(number, lasts_s)
        self._say(f"{replica.name} is cut off: requests {requests}, answers {answers}, late {delay_s:g} s")
        link = replica.link
        replica.link = replace(link, passes_requests=requests, passes_answers=answers, delay_s=delay_s)
        self._for(replica, lasts_s, lambda: self._join_etcd(replica))

    def _join_etcd(self, replica: Replica) -> None:
        self._say(f"{replica.name} reaches etcd again")
        replica.link = replica.link.heal()

    def lose_majority(self, lasts_s: float) -> None:
        self._say("etcd has no majority")
        self._world.note_busy(lasts_s)
        self._cluster.stores.etcd.has_majority = False
        self._for("majority", lasts_s, self._find_majority)

    def _find_majority(self) -> None:
        self._say("etcd has a majority again")
        self._cluster.stores.etcd.find_majority()

    def step_down(self) -> None:
        self._world.call("step down", "StepDown", pb.StepDownRequest())

    def forget_ids(self, switch: str) -> None:
        """Let a switch forget each election id with its connection, as BMv2 and softswitch do."""
        self._world.switches[switch].is_forgetful = True

    def _replica(self, number: int, lasts_s: float) -> Replica:
        self._world.note_busy(lasts_s)
        return self._cluster.replica(number)

    @property
    def _cluster(self) -> Cluster:
        assert self._world.cluster is not None
        return self._world.cluster

    def _for(self, what: object, seconds: float, end: Callable[[], None]) -> None:
        """`end` after so long, unless the same began again meanwhile."""
        mine = self._until[what] = self._until.get(what, 0) + 1
        self._later(seconds, lambda: end() if self._until.get(what) == mine else None)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        """In the world, also when a controller that dies at a commit has led here: its own timers die with it."""
        asyncio.get_running_loop().call_later(seconds, call, context=contextvars.Context())

    def _say(self, text: str) -> None:
        self._world.history.add("world", text)
