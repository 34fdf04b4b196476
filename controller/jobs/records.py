# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the records of a job, as frozen values: the store keeps them, everything else derives from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from netfold.controller.planning.document import plan_document, plan_from_document
from netfold.controller.planning.plan import Plan
from netfold.protocol.target import Targets

LAST_EPOCH = 4095


class JobState(StrEnum):
    """State of a job, as in protocol/netfold.proto."""

    QUEUED = "queued"
    INSTALLING = "installing"
    RUNNING = "running"
    FAILED = "failed"
    DONE = "done"
    CANCELED = "canceled"

    @property
    def is_terminal(self) -> bool:
        return self in (JobState.FAILED, JobState.DONE, JobState.CANCELED)

    @property
    def is_installed(self) -> bool:
        """Whether switches hold entries for the job."""
        return self in (JobState.INSTALLING, JobState.RUNNING)


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    return plan_document(None, plan)


def _plan_from_json(value: Any) -> Any:
    return plan_from_document(value) if isinstance(value, dict) else value


PlanField = Annotated[Plan, BeforeValidator(_plan_from_json), PlainSerializer(_plan_to_json)]


def links_of(plan: Plan) -> set[frozenset[str]]:
    """All links that a plan's packets take, in either direction."""
    used: set[frozenset[str]] = set()
    for tree in plan.trees:
        used.update(frozenset(pair) for pair in tree.result_links)
        for edge in tree.edges:
            used.update(frozenset(pair) for pair in pairwise(edge.path))
    return used


class Record(BaseModel):
    """A stored record. Fields that this version does not know are kept and written again, because another version may
    use the store afterwards."""

    model_config = ConfigDict(frozen=True, extra="allow")


class AllocatedTree(Record):
    """A netfold.controller.planning.plan.Tree with the numbers that its installation chose.

    tree   number, 1 ... 1023, which no other tree has on its switches; also its tree_index and multicast group there
    slots  A; bases are the first slots of the tree's ranges, by switch that adds up
    window W
    quorum contributions of a chunk that are enough after a deadline; 0: all are needed
    targets whether its packets may be targeted
    """

    tree: int
    slots: int
    window: int
    bases: dict[str, int]
    quorum: int = 0
    targets: Targets = Targets.OFF


class Placement(Record):
    """A plan with all numbers chosen: `trees` are in the order of `plan.trees`. `no_targets_because`: why its packets
    have no targets; "": they have. Records of earlier versions do not say it."""

    plan: PlanField
    trees: tuple[AllocatedTree, ...]
    epoch: int
    no_targets_because: str = "it was placed by an earlier version"

    @property
    def links(self) -> set[frozenset[str]]:
        """All links that the placement's packets take."""
        return links_of(self.plan)

    @property
    def roots(self) -> set[str]:
        return {t.root for t in self.plan.trees}

    @property
    def quorum(self) -> int:
        """The quorum, which is the same for all trees."""
        return max((t.quorum for t in self.trees), default=0)

    @property
    def targets(self) -> Targets:
        """Whether its packets may be targeted, which is the same for all trees."""
        return self.trees[0].targets if self.trees else Targets.OFF

    def without_targets(self, targets: Targets, because: str) -> Placement:
        """The placement where no packet is targeted, for a reason."""
        trees = tuple(t.model_copy(update={"targets": targets}) for t in self.trees)
        return self.model_copy(update={"trees": trees, "no_targets_because": because})


class Transport(StrEnum):
    """Transport between workers and their leaf: netfold's own packets in UDP, or RC connections of RoCE v2."""

    UDP = "udp"
    ROCE = "roce"


class ConnectionRecord(Record):
    """The ends of a RoCE worker in one tree: the queue pairs that it sends from and receives at, and its first PSN."""

    tree: int
    send_qpn: int
    recv_qpn: int
    first_psn: int


MISMATCHED = 1 << 62
"""Value in place of a number of calls (NA_CALLS_MISMATCH of traffic/agent/messages.h): the worker found that others
made the call with other arrays."""


class QueuePairs(Record):
    """The last registration of a RoCE worker: its connections of an epoch, and the number of calls that it has
    completed."""

    host: str
    epoch: int
    calls: int
    connections: tuple[ConnectionRecord, ...]

    @property
    def pairs(self) -> set[int]:
        """The numbers of all its queue pairs."""
        return {q for c in self.connections for q in (c.send_qpn, c.recv_qpn)}

    def of(self, tree: int) -> ConnectionRecord | None:
        return next((c for c in self.connections if c.tree == tree), None)


class Member(Record):
    """A worker or parameter server of a job. `joined`: it has joined at least once; `left`: it has left after `calls`
    calls of the job. `process`: the number of the process that joined last; 0: unknown. `supports_targets`: whether it
    takes targeted packets; true until a process joins that does not."""

    host: str
    parameter_server: bool = False
    joined: bool = False
    left: bool = False
    calls: int = 0
    process: int = 0
    supports_targets: bool = True

    def is_of_other_process(self, process: int) -> bool:
        """Whether another process than this one is known to have joined."""
        return 0 not in (process, self.process) and process != self.process


_PLACES = "_known_places"


class JobRecord(Record):
    """A job.

    seq        order of submission
    previous   while the job migrates: the placement that stays installed until the new one is
    excluded   members without which the job continues: lost, or added and not yet part of an epoch
    rejoining  those of `excluded` that have joined and take part from the next epoch
    added      workers that the job file does not name
    newcomers  a worker without call state has joined since the job started
    has_run    members may have received an assignment
    ran_since  time of its first run, from which members have `join_s` to join; 0: it has not run, or unknown
    queue_pairs           of a RoCE job's workers, as registered last
    roce_installed_epoch  last epoch whose connections all leaves had
    floats     switches add float32
    sandbox    packets are made by hand: no worker joins
    submitted_by, tenant  of the caller that submitted it; "": it has no name, or no tenant
    generation   of its workers: how often all of them were replaced at once
    interrupted  the part of its workers has ended; the job waits for the next generation
    request_id   of the request that submitted the job, or started a later generation; "": it had none
    random     tells it from a later job of its name and seq, which a restored store may give again; "": an earlier
               version accepted it
    """

    name: str
    seq: int
    spec_yaml: str
    state: JobState
    reason: str = ""
    udp_port: int = 0
    placement: Placement | None = None
    previous: Placement | None = None
    members: tuple[Member, ...] = ()
    excluded: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rejoining: tuple[str, ...] = ()
    newcomers: bool = False
    has_run: bool = False
    ran_since: float = 0.0
    transport: Transport = Transport.UDP
    floats: bool = False
    sandbox: bool = False
    queue_pairs: tuple[QueuePairs, ...] = ()
    roce_installed_epoch: int = 0
    submitted: float = 0.0
    submitted_by: str = ""
    tenant: str = ""
    generation: int = 0
    interrupted: bool = False
    request_id: str = ""
    random: str = ""
    ended: float = 0.0

    @property
    def serial(self) -> str:
        """The text that the tokens of its members are bound to, besides its name."""
        return self.random or str(self.seq)

    @property
    def epoch(self) -> int:
        return 0 if self.placement is None else self.placement.epoch

    @property
    def placements(self) -> tuple[Placement, ...]:
        """All placements that switches hold for the job, if it is installed."""
        if not self.state.is_installed:
            return ()
        return tuple(p for p in (self.placement, self.previous) if p is not None)

    def has_no_use_for(self, member: Member) -> bool:
        """Whether the member is a parameter server that is no root in any installed placement."""
        installed = self.placements
        return (
            bool(installed) and member.parameter_server and not any(member.host in p.roots for p in installed)
        )

    @property
    def nodes(self) -> set[str]:
        """Hosts and switches that the job's packets pass, in any installed placement."""
        return {n for p in self.placements for link in p.links for n in link}

    @property
    def all_workers(self) -> tuple[str, ...]:
        """Workers by rank, also those that the job continues without."""
        return tuple(m.host for m in self.members if not m.parameter_server)

    @property
    def workers(self) -> tuple[str, ...]:
        """Workers that are not lost, by rank."""
        return tuple(host for host in self.all_workers if host not in self.excluded)

    @property
    def departed(self) -> tuple[Member, ...]:
        """Workers that have left and take part in the present epoch."""
        return tuple(
            m for m in self.members if m.left and not m.parameter_server and m.host not in self.excluded
        )

    @property
    def roce(self) -> frozenset[str]:
        """The workers that use RoCE."""
        return frozenset(self.workers) if self.transport is Transport.ROCE else frozenset()

    @property
    def registered(self) -> dict[str, QueuePairs]:
        """The connections of the job's newest epoch by RoCE worker, as far as they are known."""
        return {e.host: e for e in self.queue_pairs if e.epoch == self.epoch and e.host not in self.excluded}

    def no_longer_rejoining(self, hosts: Iterable[str]) -> JobRecord:
        """The job without these hosts in `rejoining`: they take part, have left again, or fit in no plan."""
        removed = frozenset(hosts)
        return self.model_copy(update={"rejoining": tuple(h for h in self.rejoining if h not in removed)})

    def interrupt(self, why: str) -> JobRecord:
        """The job without its workers, whose part ends. It keeps its placement."""
        return self.model_copy(update={"interrupted": True, "reason": why, "rejoining": ()})

    def is_of_request(self, request_id: str, spec_yaml: str, submitted_by: str, tenant: str) -> bool:
        """Whether this request, whose answer was lost, submitted the job. Another caller may guess its identifier."""
        first = (self.generation, self.request_id, self.spec_yaml, self.submitted_by, self.tenant)
        return request_id != "" and first == (0, request_id, spec_yaml, submitted_by, tenant)

    def next_generation(self, workers: Iterable[str], request_id: str) -> JobRecord:
        """The job with these workers, none of which has joined yet. Processes of an earlier generation are no members
        any more."""
        present = frozenset(workers)
        changes: dict[str, object] = {
            "members": tuple(
                m if m.parameter_server else Member(host=m.host, parameter_server=False) for m in self.members
            ),
            "excluded": tuple(host for host in self.all_workers if host not in present),
            "rejoining": (),
            "newcomers": False,
            "generation": self.generation + 1,
            "interrupted": False,
            "request_id": request_id,
        }
        return self.model_copy(update=changes)

    def has_replaced(self, host: str, generation: int) -> bool:
        """Whether the part of the worker of `host` in this generation has ended."""
        member = self.member(host)
        is_worker = member is not None and not member.parameter_server
        return is_worker and (self.interrupted or generation != self.generation)

    def member(self, host: str) -> Member | None:
        place = self._places.get(host)
        return None if place is None else self.members[place]

    def with_member(self, host: str, **changes: bool | int) -> JobRecord:
        """A copy of the record with one of its members changed."""
        place = self._places[host]
        changed = self.members[place].model_copy(update=changes)
        return self.model_copy(
            update={"members": (*self.members[:place], changed, *self.members[place + 1 :])}
        )

    @property
    def _places(self) -> dict[str, int]:
        """The index of each host in `members`, because each heartbeat of a thousand members looks its member up. A copy
        of the record has the same indices until its members change."""
        known: tuple[tuple[Member, ...], dict[str, int]] | None = self.__dict__.get(_PLACES)
        if known is None or known[0] is not self.members:
            known = self.members, {m.host: place for place, m in enumerate(self.members)}
            self.__dict__[_PLACES] = known  # as functools.cached_property; pydantic's fields stay as they are
        return known[1]
