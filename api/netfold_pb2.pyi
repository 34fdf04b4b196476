from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    QUEUED: _ClassVar[JobState]
    INSTALLING: _ClassVar[JobState]
    RUNNING: _ClassVar[JobState]
    FAILED: _ClassVar[JobState]
    DONE: _ClassVar[JobState]
    CANCELED: _ClassVar[JobState]
JOB_STATE_UNSPECIFIED: JobState
QUEUED: JobState
INSTALLING: JobState
RUNNING: JobState
FAILED: JobState
DONE: JobState
CANCELED: JobState

class SubmitJobRequest(_message.Message):
    __slots__ = ("spec_yaml", "queue")
    SPEC_YAML_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    spec_yaml: str
    queue: bool
    def __init__(self, spec_yaml: _Optional[str] = ..., queue: _Optional[bool] = ...) -> None: ...

class JobName(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class AddWorkersRequest(_message.Message):
    __slots__ = ("name", "hosts")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    hosts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., hosts: _Optional[_Iterable[str]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ("all",)
    ALL_FIELD_NUMBER: _ClassVar[int]
    all: bool
    def __init__(self, all: _Optional[bool] = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs", "standby_of")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_OF_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    standby_of: str
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ..., standby_of: _Optional[str] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ("name", "state", "reason", "spec_yaml", "plan_json", "epoch", "members", "standby_of")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SPEC_YAML_FIELD_NUMBER: _ClassVar[int]
    PLAN_JSON_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    STANDBY_OF_FIELD_NUMBER: _ClassVar[int]
    name: str
    state: JobState
    reason: str
    spec_yaml: str
    plan_json: str
    epoch: int
    members: _containers.RepeatedCompositeFieldContainer[Member]
    standby_of: str
    def __init__(self, name: _Optional[str] = ..., state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ..., spec_yaml: _Optional[str] = ..., plan_json: _Optional[str] = ..., epoch: _Optional[int] = ..., members: _Optional[_Iterable[_Union[Member, _Mapping]]] = ..., standby_of: _Optional[str] = ...) -> None: ...

class Member(_message.Message):
    __slots__ = ("host", "parameter_server", "attending", "report")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVER_FIELD_NUMBER: _ClassVar[int]
    ATTENDING_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    parameter_server: bool
    attending: bool
    report: Report
    def __init__(self, host: _Optional[str] = ..., parameter_server: _Optional[bool] = ..., attending: _Optional[bool] = ..., report: _Optional[_Union[Report, _Mapping]] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("steps",)
    STEPS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, steps: _Optional[_Iterable[str]] = ...) -> None: ...

class ReplanRequest(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class ReplanResponse(_message.Message):
    __slots__ = ("moved",)
    MOVED_FIELD_NUMBER: _ClassVar[int]
    moved: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, moved: _Optional[_Iterable[str]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Status(_message.Message):
    __slots__ = ("version", "primary", "switches", "trees", "broken", "primary_address", "links")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_FIELD_NUMBER: _ClassVar[int]
    SWITCHES_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    version: str
    primary: bool
    switches: _containers.RepeatedCompositeFieldContainer[SwitchStatus]
    trees: _containers.RepeatedCompositeFieldContainer[TreeCounters]
    broken: _containers.RepeatedScalarFieldContainer[str]
    primary_address: str
    links: _containers.RepeatedCompositeFieldContainer[LinkLoad]
    def __init__(self, version: _Optional[str] = ..., primary: _Optional[bool] = ..., switches: _Optional[_Iterable[_Union[SwitchStatus, _Mapping]]] = ..., trees: _Optional[_Iterable[_Union[TreeCounters, _Mapping]]] = ..., broken: _Optional[_Iterable[str]] = ..., primary_address: _Optional[str] = ..., links: _Optional[_Iterable[_Union[LinkLoad, _Mapping]]] = ...) -> None: ...

class LinkLoad(_message.Message):
    __slots__ = ("sender", "receiver", "foreign", "jobs", "capacity")
    SENDER_FIELD_NUMBER: _ClassVar[int]
    RECEIVER_FIELD_NUMBER: _ClassVar[int]
    FOREIGN_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    sender: str
    receiver: str
    foreign: float
    jobs: float
    capacity: float
    def __init__(self, sender: _Optional[str] = ..., receiver: _Optional[str] = ..., foreign: _Optional[float] = ..., jobs: _Optional[float] = ..., capacity: _Optional[float] = ...) -> None: ...

class TreeCounters(_message.Message):
    __slots__ = ("switch", "job", "tree", "packets")
    class PacketsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    SWITCH_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    TREE_FIELD_NUMBER: _ClassVar[int]
    PACKETS_FIELD_NUMBER: _ClassVar[int]
    switch: str
    job: str
    tree: int
    packets: _containers.ScalarMap[str, int]
    def __init__(self, switch: _Optional[str] = ..., job: _Optional[str] = ..., tree: _Optional[int] = ..., packets: _Optional[_Mapping[str, int]] = ...) -> None: ...

class SwitchStatus(_message.Message):
    __slots__ = ("name", "address", "ready", "slots_in_use", "slots", "repaired_entries")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    SLOTS_IN_USE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    REPAIRED_ENTRIES_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    ready: bool
    slots_in_use: int
    slots: int
    repaired_entries: int
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., ready: _Optional[bool] = ..., slots_in_use: _Optional[int] = ..., slots: _Optional[int] = ..., repaired_entries: _Optional[int] = ...) -> None: ...

class ListHostsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListHostsResponse(_message.Message):
    __slots__ = ("hosts",)
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[Host]
    def __init__(self, hosts: _Optional[_Iterable[_Union[Host, _Mapping]]] = ...) -> None: ...

class Host(_message.Message):
    __slots__ = ("name", "address", "parameter_server")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVER_FIELD_NUMBER: _ClassVar[int]
    name: str
    address: str
    parameter_server: bool
    def __init__(self, name: _Optional[str] = ..., address: _Optional[str] = ..., parameter_server: _Optional[bool] = ...) -> None: ...

class Attendance(_message.Message):
    __slots__ = ("job", "host", "leave", "report", "worn_epoch", "ends", "epoch")
    JOB_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    WORN_EPOCH_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    job: str
    host: str
    leave: bool
    report: Report
    worn_epoch: int
    ends: RoceEnds
    epoch: int
    def __init__(self, job: _Optional[str] = ..., host: _Optional[str] = ..., leave: _Optional[bool] = ..., report: _Optional[_Union[Report, _Mapping]] = ..., worn_epoch: _Optional[int] = ..., ends: _Optional[_Union[RoceEnds, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class RoceEnds(_message.Message):
    __slots__ = ("epoch", "calls", "connections")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    calls: int
    connections: _containers.RepeatedCompositeFieldContainer[RoceConnection]
    def __init__(self, epoch: _Optional[int] = ..., calls: _Optional[int] = ..., connections: _Optional[_Iterable[_Union[RoceConnection, _Mapping]]] = ...) -> None: ...

class RoceConnection(_message.Message):
    __slots__ = ("tree", "out_qpn", "in_qpn", "first_psn")
    TREE_FIELD_NUMBER: _ClassVar[int]
    OUT_QPN_FIELD_NUMBER: _ClassVar[int]
    IN_QPN_FIELD_NUMBER: _ClassVar[int]
    FIRST_PSN_FIELD_NUMBER: _ClassVar[int]
    tree: int
    out_qpn: int
    in_qpn: int
    first_psn: int
    def __init__(self, tree: _Optional[int] = ..., out_qpn: _Optional[int] = ..., in_qpn: _Optional[int] = ..., first_psn: _Optional[int] = ...) -> None: ...

class RoceRing(_message.Message):
    __slots__ = ("epoch", "least_calls", "most_calls", "giver", "trees")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEAST_CALLS_FIELD_NUMBER: _ClassVar[int]
    MOST_CALLS_FIELD_NUMBER: _ClassVar[int]
    GIVER_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    least_calls: int
    most_calls: int
    giver: int
    trees: _containers.RepeatedCompositeFieldContainer[RoceNeighbors]
    def __init__(self, epoch: _Optional[int] = ..., least_calls: _Optional[int] = ..., most_calls: _Optional[int] = ..., giver: _Optional[int] = ..., trees: _Optional[_Iterable[_Union[RoceNeighbors, _Mapping]]] = ...) -> None: ...

class RoceNeighbors(_message.Message):
    __slots__ = ("tree", "next", "next_qpn", "before", "before_qpn", "before_psn")
    TREE_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    NEXT_QPN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    BEFORE_QPN_FIELD_NUMBER: _ClassVar[int]
    BEFORE_PSN_FIELD_NUMBER: _ClassVar[int]
    tree: int
    next: str
    next_qpn: int
    before: str
    before_qpn: int
    before_psn: int
    def __init__(self, tree: _Optional[int] = ..., next: _Optional[str] = ..., next_qpn: _Optional[int] = ..., before: _Optional[str] = ..., before_qpn: _Optional[int] = ..., before_psn: _Optional[int] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("chunks", "retransmits", "overflows", "goodput_mbps", "trees")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    RETRANSMITS_FIELD_NUMBER: _ClassVar[int]
    OVERFLOWS_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_MBPS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    chunks: int
    retransmits: int
    overflows: int
    goodput_mbps: float
    trees: _containers.RepeatedCompositeFieldContainer[TreeReport]
    def __init__(self, chunks: _Optional[int] = ..., retransmits: _Optional[int] = ..., overflows: _Optional[int] = ..., goodput_mbps: _Optional[float] = ..., trees: _Optional[_Iterable[_Union[TreeReport, _Mapping]]] = ...) -> None: ...

class TreeReport(_message.Message):
    __slots__ = ("tree", "results", "marked", "retransmits", "rtt_ms", "rtt_least_ms")
    TREE_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    MARKED_FIELD_NUMBER: _ClassVar[int]
    RETRANSMITS_FIELD_NUMBER: _ClassVar[int]
    RTT_MS_FIELD_NUMBER: _ClassVar[int]
    RTT_LEAST_MS_FIELD_NUMBER: _ClassVar[int]
    tree: int
    results: int
    marked: int
    retransmits: int
    rtt_ms: float
    rtt_least_ms: float
    def __init__(self, tree: _Optional[int] = ..., results: _Optional[int] = ..., marked: _Optional[int] = ..., retransmits: _Optional[int] = ..., rtt_ms: _Optional[float] = ..., rtt_least_ms: _Optional[float] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("assignment", "over", "ring", "lease_ms")
    ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    RING_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    assignment: Assignment
    over: JobOver
    ring: RoceRing
    lease_ms: int
    def __init__(self, assignment: _Optional[_Union[Assignment, _Mapping]] = ..., over: _Optional[_Union[JobOver, _Mapping]] = ..., ring: _Optional[_Union[RoceRing, _Mapping]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class JobOver(_message.Message):
    __slots__ = ("state", "reason")
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    state: JobState
    reason: str
    def __init__(self, state: _Optional[_Union[JobState, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class Assignment(_message.Message):
    __slots__ = ("job", "epoch", "udp_port", "lanes", "rank", "workers", "elements", "rate_mbps", "trees", "numerics", "transport", "address", "quorum", "quorum_deadline_s", "timing", "newcomers")
    JOB_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    UDP_PORT_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    RATE_MBPS_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    QUORUM_DEADLINE_S_FIELD_NUMBER: _ClassVar[int]
    TIMING_FIELD_NUMBER: _ClassVar[int]
    NEWCOMERS_FIELD_NUMBER: _ClassVar[int]
    job: str
    epoch: int
    udp_port: int
    lanes: int
    rank: int
    workers: int
    elements: int
    rate_mbps: float
    trees: _containers.RepeatedCompositeFieldContainer[TreePart]
    numerics: Numerics
    transport: str
    address: str
    quorum: int
    quorum_deadline_s: float
    timing: Timing
    newcomers: bool
    def __init__(self, job: _Optional[str] = ..., epoch: _Optional[int] = ..., udp_port: _Optional[int] = ..., lanes: _Optional[int] = ..., rank: _Optional[int] = ..., workers: _Optional[int] = ..., elements: _Optional[int] = ..., rate_mbps: _Optional[float] = ..., trees: _Optional[_Iterable[_Union[TreePart, _Mapping]]] = ..., numerics: _Optional[_Union[Numerics, _Mapping]] = ..., transport: _Optional[str] = ..., address: _Optional[str] = ..., quorum: _Optional[int] = ..., quorum_deadline_s: _Optional[float] = ..., timing: _Optional[_Union[Timing, _Mapping]] = ..., newcomers: _Optional[bool] = ...) -> None: ...

class Timing(_message.Message):
    __slots__ = ("first_timeout", "least_variance", "longest_timeout", "least_reordering", "late", "burst", "gather")
    FIRST_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEAST_VARIANCE_FIELD_NUMBER: _ClassVar[int]
    LONGEST_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEAST_REORDERING_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    BURST_FIELD_NUMBER: _ClassVar[int]
    GATHER_FIELD_NUMBER: _ClassVar[int]
    first_timeout: float
    least_variance: float
    longest_timeout: float
    least_reordering: float
    late: float
    burst: float
    gather: float
    def __init__(self, first_timeout: _Optional[float] = ..., least_variance: _Optional[float] = ..., longest_timeout: _Optional[float] = ..., least_reordering: _Optional[float] = ..., late: _Optional[float] = ..., burst: _Optional[float] = ..., gather: _Optional[float] = ...) -> None: ...

class Numerics(_message.Message):
    __slots__ = ("mode", "fraction_bits")
    MODE_FIELD_NUMBER: _ClassVar[int]
    FRACTION_BITS_FIELD_NUMBER: _ClassVar[int]
    mode: str
    fraction_bits: int
    def __init__(self, mode: _Optional[str] = ..., fraction_bits: _Optional[int] = ...) -> None: ...

class TreePart(_message.Message):
    __slots__ = ("tree", "share", "slots", "window", "child", "destination", "children", "sources", "own_children")
    TREE_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    OWN_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    tree: int
    share: float
    slots: int
    window: int
    child: int
    destination: str
    children: _containers.RepeatedScalarFieldContainer[int]
    sources: _containers.RepeatedCompositeFieldContainer[Sources]
    own_children: int
    def __init__(self, tree: _Optional[int] = ..., share: _Optional[float] = ..., slots: _Optional[int] = ..., window: _Optional[int] = ..., child: _Optional[int] = ..., destination: _Optional[str] = ..., children: _Optional[_Iterable[int]] = ..., sources: _Optional[_Iterable[_Union[Sources, _Mapping]]] = ..., own_children: _Optional[int] = ...) -> None: ...

class Sources(_message.Message):
    __slots__ = ("addresses",)
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, addresses: _Optional[_Iterable[str]] = ...) -> None: ...
