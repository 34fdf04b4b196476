# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The Python interface of the switch core: a `Pipeline` is one translated program with its state (tables, registers,
multicast groups, ...); a `Switch` (switch.py) is the ports and queues that a pipeline runs in.

    pipeline = Pipeline.load(Path("prog.json").read_bytes(), cache_dir)  # slow: translate, gcc, dlopen
    switch = Switch()
    switch.swap(pipeline)                                                # atomic, between two batches
    call = ActionCall("ingress.fwd", {"port": b"\\x02"})
    pipeline.table_insert("ingress.t", TableEntry({"hdr.h.f": Exact(b"\\x01")}, call))
    switch.inject(1, frame, now_ns=0)                                    # [(2, frame)]

Every method may be called from any thread. Each control operation is atomic with respect to packets (the fill of a
large array by pieces), and takes effect for the next packet. Names are those of P4Info (`preamble.name`), e.g.
"MyIngress.ipv4_lpm".
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from softswitch.build.compiler import Compile, compile_here
from softswitch.build.native import core_library
from softswitch.build.program import Program, load_program
from softswitch.errors import ControlError, InvalidArgumentError, PipelineError
from softswitch.state.arrays import Arrays
from softswitch.state.control_lock import ControlLock, serialized
from softswitch.state.encode import find
from softswitch.state.entities import (
    ActionInfo,
    ArrayInfo,
    CloneSession,
    CounterData,
    Group,
    Match,
    Member,
    MeterConfig,
    Replica,
    TableAction,
    TableEntry,
    TableInfo,
)
from softswitch.state.profiles import Actions, Profile, check
from softswitch.state.replication import Replication
from softswitch.state.tables import Table
from softswitch.translate.steering import Check, Steering


class Pipeline:
    """A loaded program and its forwarding state, initially the program's own (const entries, default actions).

    Errors of all control methods: NotFoundError (no such table, entry, ...), AlreadyExistsError, ResourceExhaustedError
    (full), InvalidArgumentError (bad value, kind, width, index, reference), PermissionDeniedError (const).
    """

    def __init__(self, core: ctypes.CDLL, handle: int, program: Program, threads: int) -> None:
        """Use `load`."""
        self.threads = threads
        self.control_lock = ControlLock()
        self._core, self._handle = core, handle
        self._lease = program.lease
        self._layout = layout = program.layout
        self.attached = False  # a switch runs it
        self._actions = Actions(layout["actions"])
        self._profiles = [
            Profile(core, handle, i, p, self._actions) for i, p in enumerate(layout["profiles"])
        ]
        self._profile_names = {p.name: p for p in self._profiles}
        self._tables: dict[str, Table] = {}
        for i, t in enumerate(layout["tables"]):
            profile = self._profiles[t["profile"]] if t["profile"] is not None else None
            self._tables[t["name"]] = Table(core, handle, i, t, self._actions, profile)
        self._table_names = list(self._tables)
        self._arrays = Arrays(core, handle, layout)
        self._replication = Replication(core, handle)

    @classmethod
    def load(
        cls,
        p4_json: bytes,
        cache_dir: Path,
        *,
        sanitize: bool = False,
        traced: bool = False,
        seed: int = 1,
        threads: int = 1,
        compile_c: Compile = compile_here,
    ) -> Pipeline:
        """Translates the output of p4c-bm2-ss, compiles it with gcc (or takes it from `cache_dir`, which is made if
        missing and may be shared by processes) and loads it. Does not touch any running switch.

        Raises UnsupportedConstructError (with construct, source file, line) or PipelineError. `sanitize` builds with
        -fsanitize=address,undefined for fuzzing; the process must have the sanitizer preloaded. With `traced` the
        program writes the packet trace (Switch.log_to). `seed` is for random(); `compile_c` runs gcc. `threads`: of the
        switch that will run it; PipelineError if the program needs one thread (translate/sharding.py).
        """
        program = load_program(p4_json, cache_dir, sanitize=sanitize, traced=traced, compile_c=compile_c)
        refusal = program.layout["sharding"]["refusal"]
        if threads > 1 and refusal is not None:
            program.lease.close()
            raise PipelineError(f"{threads} threads cannot share the program's registers: {refusal}")
        core = core_library(sanitize=sanitize)
        error = ctypes.create_string_buffer(1024)
        handle = core.ss_pipeline_open(str(program.path).encode(), seed, threads, error, len(error))
        if not handle:
            program.lease.close()
            raise PipelineError(f"cannot load {program.path.name}: {error.value.decode(errors='replace')}")
        try:
            return cls(core, handle, program, threads)
        except (ControlError, ValueError) as wrong:
            core.ss_pipeline_close(handle)
            program.lease.close()
            raise PipelineError(f"the program's own entries cannot be: {wrong}") from wrong

    @property
    def handle(self) -> int:
        """The `struct ss_pipeline *`; 0 when closed."""
        return 0 if self.control_lock.closed else self._handle

    def close(self) -> None:
        """Frees the state; InvalidArgumentError while it is in a switch. Idempotent."""
        with self.control_lock.mutex:
            if self.attached:
                raise InvalidArgumentError("the pipeline is in a switch; swap it out first")
            if not self.control_lock.closed:
                self.control_lock.closed = True
                self._core.ss_pipeline_close(self._handle)
                self._lease.close()

    @property
    def steering(self) -> Steering | None:
        """Place in frames of the field that selects their thread; None: no place is known."""
        found = self._layout["sharding"]["steering"]
        if found is None:
            return None
        return Steering(found["offset"], tuple(Check(**check) for check in found["checks"]))

    # ---- what the program has ----

    @property
    def tables(self) -> Mapping[str, TableInfo]:
        """All tables, the compiler's own keyless ones too."""
        return {name: t.info for name, t in self._tables.items()}

    @property
    def actions(self) -> Mapping[str, ActionInfo]:
        return {a.name: a for a in self._actions.infos}

    @property
    def profiles(self) -> Mapping[str, ArrayInfo]:
        """Action profiles and selectors; size is the bound on members."""
        return {p.name: ArrayInfo(p.name, p.size) for p in self._profiles}

    @property
    def counters(self) -> Mapping[str, ArrayInfo]:
        """Indirect counters. Direct ones belong to their table."""
        return self._arrays.counters

    @property
    def meters(self) -> Mapping[str, ArrayInfo]:
        return self._arrays.meters

    @property
    def registers(self) -> Mapping[str, ArrayInfo]:
        return self._arrays.registers

    @property
    def digests(self) -> Sequence[str]:
        return [d[0] for d in self._layout["digests"]]

    @property
    def value_sets(self) -> Mapping[str, ArrayInfo]:
        return self._arrays.value_sets

    # ---- tables ----

    def _table(self, name: str) -> Table:
        table: Table = find(self._tables, name, "table")
        return table

    @serialized
    def table_insert(self, table: str, entry: TableEntry) -> None:
        self._table(table).insert(entry)

    @serialized
    def table_modify(self, table: str, entry: TableEntry) -> None:
        """Replaces action, timeout and metadata of the entry with the same match and priority; its counter stays."""
        self._table(table).modify(entry)

    @serialized
    def table_delete(self, table: str, match: Mapping[str, Match], priority: int = 0) -> None:
        self._table(table).delete(match, priority)

    @serialized
    def table_entry(self, table: str, match: Mapping[str, Match], priority: int = 0) -> TableEntry:
        """The entry with exactly this match and priority."""
        return self._table(table).shadow(match, priority).entry

    @serialized
    def table_entries(self, table: str) -> Iterator[TableEntry]:
        """All entries, const ones too, in order of insertion; without the default entry."""
        return self._table(table).all()

    @serialized
    def table_handles(self, table: str) -> Mapping[int, TableEntry]:
        """All entries by the core's handle, which an entry keeps as long as it is there."""
        t = self._table(table)
        return {handle: t.entries[key].entry for handle, key in t.by_handle.items()}

    @serialized
    def table_default(self, table: str) -> TableAction | None:
        """The default action now; None if the table has none (a miss then does nothing)."""
        return self._table(table).default

    @serialized
    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """None restores the program's own default."""
        self._table(table).set_default(action)

    @serialized
    def table_idle_ns(self, table: str, match: Mapping[str, Match], priority: int = 0) -> int:
        """Nanoseconds since the last hit (or insertion) of an entry, by the clock the switch was last given."""
        return self._table(table).idle_ns(match, priority)

    def entry_by_handle(self, table_index: int, handle: int) -> tuple[str, TableEntry] | None:
        """Find the entry of an idle notice; None if the entry is gone."""
        with self.control_lock.mutex:
            name = self._table_names[table_index]
            key = self._tables[name].by_handle.get(handle)
            return None if key is None else (name, self._tables[name].entries[key].entry)

    def digest_by_list(self, list_id: int) -> tuple[str, list[int]] | None:
        """Name and field widths of a digest."""
        return next(((name, widths) for name, i, widths in self._layout["digests"] if i == list_id), None)

    # ---- direct counters and meters; match None means the default entry ----

    @serialized
    def direct_counter_read(
        self, table: str, match: Mapping[str, Match] | None, priority: int = 0
    ) -> CounterData:
        return self._table(table).read_counter(match, priority)

    @serialized
    def direct_counter_write(
        self, table: str, match: Mapping[str, Match] | None, data: CounterData, priority: int = 0
    ) -> None:
        self._table(table).write_counter(match, data, priority)

    @serialized
    def direct_meter_read(
        self, table: str, match: Mapping[str, Match] | None, priority: int = 0
    ) -> MeterConfig | None:
        """None = never configured: every packet is green."""
        return self._table(table).read_meter(match, priority)

    @serialized
    def direct_meter_write(
        self, table: str, match: Mapping[str, Match] | None, config: MeterConfig | None, priority: int = 0
    ) -> None:
        """None takes the configuration away."""
        self._table(table).write_meter(match, config, priority)

    # ---- action profiles and selectors ----

    def _profile(self, name: str) -> Profile:
        profile: Profile = find(self._profile_names, name, "action profile")
        return profile

    @serialized
    def member_insert(self, profile: str, member: Member) -> None:
        self._profile(profile).member_insert(member)

    @serialized
    def member_modify(self, profile: str, member: Member) -> None:
        self._profile(profile).member_modify(member)

    @serialized
    def member_delete(self, profile: str, member_id: int) -> None:
        """InvalidArgumentError while an entry or group uses it."""
        self._profile(profile).member_delete(member_id)

    @serialized
    def members(self, profile: str) -> Iterator[Member]:
        return iter([m for _, m in self._profile(profile).members.values()])

    @serialized
    def group_insert(self, profile: str, group: Group) -> None:
        self._profile(profile).group_insert(group)

    @serialized
    def group_modify(self, profile: str, group: Group) -> None:
        self._profile(profile).group_modify(group)

    @serialized
    def group_delete(self, profile: str, group_id: int) -> None:
        """InvalidArgumentError while an entry uses it."""
        self._profile(profile).group_delete(group_id)

    @serialized
    def groups(self, profile: str) -> Iterator[Group]:
        return iter([g for _, g in self._profile(profile).groups.values()])

    # ---- arrays; an index outside 0..size-1 is InvalidArgumentError ----

    @serialized
    def counter_read(self, counter: str, index: int) -> CounterData:
        return self._arrays.counter_read(counter, index, 1)[0]

    @serialized
    def counter_cells(self, counter: str, cells: range) -> list[CounterData]:
        """Several at once."""
        return self._arrays.counter_read(counter, cells.start, len(cells))

    def counter_write(self, counter: str, index: int, data: CounterData) -> None:
        self.control_lock.run_in_slices(self._arrays.counter_fill(counter, range(index, index + 1), data))

    def counter_fill(self, counter: str, cells: range, data: CounterData) -> None:
        """Set several cells of a counter to `data`."""
        self.control_lock.run_in_slices(self._arrays.counter_fill(counter, cells, data))

    @serialized
    def meter_read(self, meter: str, index: int) -> MeterConfig | None:
        return self._arrays.meter_read(meter, index)

    def meter_write(self, meter: str, index: int, config: MeterConfig | None) -> None:
        self.control_lock.run_in_slices(self._arrays.meter_fill(meter, range(index, index + 1), config))

    def meter_fill(self, meter: str, cells: range, config: MeterConfig | None) -> None:
        """Set several cells of a meter to `config`."""
        self.control_lock.run_in_slices(self._arrays.meter_fill(meter, cells, config))

    @serialized
    def register_read(self, register: str, index: int) -> int:
        """The cell's value, signed when the register holds int<>."""
        return self._arrays.register_read(register, index, 1)[0]

    @serialized
    def register_cells(self, register: str, cells: range) -> list[int]:
        """Several at once."""
        return self._arrays.register_read(register, cells.start, len(cells))

    def register_read_all(self, register: str) -> list[int]:
        """All cells."""
        return self.register_cells(register, range(self._size(register)))

    def register_write(self, register: str, index: int, value: int) -> None:
        """`value` must fit the register's type."""
        self.control_lock.run_in_slices(self._arrays.register_fill(register, range(index, index + 1), value))

    def register_fill(self, register: str, cells: range, value: int) -> None:
        """Set several cells of a register to `value`."""
        self.control_lock.run_in_slices(self._arrays.register_fill(register, cells, value))

    def register_reset(self, register: str) -> None:
        """All cells to zero."""
        self.register_fill(register, range(self._size(register)), 0)

    def _size(self, register: str) -> int:
        return self.registers[register].size if register in self.registers else 1

    # ---- packet replication: groups 1..65535, clone sessions 1..32767, ports and instances 0..65535 ----

    @serialized
    def multicast_insert(self, group_id: int, replicas: Sequence[Replica]) -> None:
        """Copies leave in the order given; a (port, instance) pair may appear once."""
        self._replication.group_insert(group_id, replicas)

    @serialized
    def multicast_modify(self, group_id: int, replicas: Sequence[Replica]) -> None:
        self._replication.group_modify(group_id, replicas)

    @serialized
    def multicast_delete(self, group_id: int) -> None:
        self._replication.group_delete(group_id)

    @serialized
    def multicast_groups(self) -> Mapping[int, Sequence[Replica]]:
        return dict(self._replication.groups)

    @serialized
    def clone_insert(self, session: CloneSession) -> None:
        self._replication.clone_insert(session)

    @serialized
    def clone_modify(self, session: CloneSession) -> None:
        self._replication.clone_modify(session)

    @serialized
    def clone_delete(self, session_id: int) -> None:
        self._replication.clone_delete(session_id)

    @serialized
    def clone_sessions(self) -> Mapping[int, CloneSession]:
        return dict(self._replication.clones)

    # ---- parser value sets: each member gives one Match per field, in the order of the P4 declaration ----

    @serialized
    def value_set_write(self, value_set: str, members: Sequence[Sequence[Match]]) -> None:
        """Replaces the whole set."""
        self._arrays.value_set_write(value_set, members)

    @serialized
    def value_set_read(self, value_set: str) -> Sequence[Sequence[Match]]:
        return self._arrays.value_set_read(value_set)

    @serialized
    def digest_enable(self, digest: str, enabled: bool) -> None:
        """Off until enabled: a digest() of a disabled one costs nothing and is not queued. Batching, time-outs and
        acknowledgements are the server's business."""
        ids = {name: i for name, i, _ in self._layout["digests"]}
        check(self._core.ss_digest_enable(self._handle, find(ids, digest, "digest"), int(enabled)), digest)
