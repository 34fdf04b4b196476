# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Counters, meters and registers: their values on the wire, and the arrays of them."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4i, p4r

from softswitch.p4runtime.change import Change
from softswitch.p4runtime.p4data import P4DataCodec
from softswitch.p4runtime.schema import Array, Index, Schema, cells
from softswitch.p4runtime.status import Code, StatusError, invalid
from softswitch.state.entities import CounterData, MeterConfig
from softswitch.state.pipeline import Pipeline

READ_AT_ONCE = 1024


def decode_counter(message: p4r.CounterData) -> CounterData:
    """A counter's value. StatusError when it is negative."""
    if message.packet_count < 0 or message.byte_count < 0:
        raise invalid(f"counter data {message.packet_count} packets, {message.byte_count} bytes: negative")
    return CounterData(message.packet_count, message.byte_count)


def encode_counter(data: CounterData) -> p4r.CounterData:
    """A counter's value as P4Runtime sends it: int64, so a count beyond 2^63 starts again at 0."""
    limit = (1 << 63) - 1
    return p4r.CounterData(packet_count=data.packets & limit, byte_count=data.bytes & limit)


def decode_meter(message: p4r.MeterConfig, meter_type: int | None, what: str) -> MeterConfig:
    """A meter's configuration, checked against its type (specification, MeterEntry)."""
    config = MeterConfig(message.cir, message.cburst, message.pir, message.pburst)
    if min(config.cir, config.cburst, config.pir, config.pburst, message.eburst) < 0:
        raise invalid(f"{what}: a meter's rates and bursts cannot be negative")
    if meter_type in (p4i.MeterSpec.SINGLE_RATE_THREE_COLOR, p4i.MeterSpec.SINGLE_RATE_TWO_COLOR) and (
        config.pir != config.cir or config.pburst != config.cburst
    ):
        raise invalid(f"{what}: a single-rate meter needs pir = cir and pburst = cburst")
    if message.eburst and meter_type == p4i.MeterSpec.SINGLE_RATE_THREE_COLOR:
        raise StatusError(Code.UNIMPLEMENTED, f"{what}: an excess burst is not supported; set eburst to 0")
    if message.eburst:
        raise invalid(f"{what}: eburst is for single-rate three-color meters")
    return config


def encode_meter(config: MeterConfig) -> p4r.MeterConfig:
    """A meter's configuration as P4Runtime sends it."""
    return p4r.MeterConfig(cir=config.cir, cburst=config.cburst, pir=config.pir, pburst=config.pburst)


def fills_array(entity: p4r.Entity) -> bool:
    """An update of it writes all cells of an array, which may take seconds."""
    kind = entity.WhichOneof("entity")
    return kind in ("counter_entry", "meter_entry", "register_entry") and not getattr(entity, kind).HasField(
        "index"
    )


def _require_modify(kind: Change, what: str) -> None:
    if kind is not Change.MODIFY:
        raise invalid(f"{what} can only be modified: its cells are always there")


class ArrayMessages:
    """Write and Read of CounterEntry, MeterEntry and RegisterEntry."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schema = schema
        self._pipeline = pipeline
        self._codec = P4DataCodec(schema.types)

    def write_counter(self, kind: Change, entry: p4r.CounterEntry) -> None:
        """CounterEntry; without an index it sets every cell."""
        counter = self._schema.counters[entry.counter_id]
        _require_modify(kind, f"counter {counter.name}")
        selected = cells(_index(entry), counter.size, f"counter {counter.name}")
        if not entry.HasField("data"):
            return
        data = decode_counter(entry.data)
        self._pipeline.counter_fill(counter.name, selected, data)

    def read_counter(self, query: p4r.CounterEntry) -> Iterator[p4r.Entity]:
        """The cells that a query selects."""
        for counter in self._schema.counters.select(query.counter_id):
            for part in _parts(cells(_index(query), counter.size, f"counter {counter.name}")):
                contents = self._pipeline.counter_cells(counter.name, part)
                for index, data in zip(part, contents, strict=True):
                    message = p4r.CounterEntry(counter_id=counter.id, index=p4r.Index(index=index))
                    message.data.CopyFrom(encode_counter(data))
                    yield p4r.Entity(counter_entry=message)

    def write_meter(self, kind: Change, entry: p4r.MeterEntry) -> None:
        """MeterEntry; without an index it sets every cell, without a configuration it resets."""
        meter = self._schema.meters[entry.meter_id]
        what = f"meter {meter.name}"
        _require_modify(kind, what)
        if entry.HasField("counter_data"):
            raise StatusError(Code.UNIMPLEMENTED, f"{what}: meters have no counters per color here")
        selected = cells(_index(entry), meter.size, what)
        config = decode_meter(entry.config, meter.meter_type, what) if entry.HasField("config") else None
        self._pipeline.meter_fill(meter.name, selected, config)

    def read_meter(self, query: p4r.MeterEntry) -> Iterator[p4r.Entity]:
        """The cells that a query selects; one that was never configured has no configuration."""
        if query.HasField("counter_data"):
            raise StatusError(Code.UNIMPLEMENTED, "meters have no counters per color here")
        for meter in self._schema.meters.select(query.meter_id):
            for index in cells(_index(query), meter.size, f"meter {meter.name}"):
                message = p4r.MeterEntry(meter_id=meter.id, index=p4r.Index(index=index))
                if (config := self._pipeline.meter_read(meter.name, index)) is not None:
                    message.config.CopyFrom(encode_meter(config))
                yield p4r.Entity(meter_entry=message)

    def write_register(self, kind: Change, entry: p4r.RegisterEntry) -> None:
        """RegisterEntry; without an index it sets every cell."""
        register = self._schema.registers[entry.register_id]
        what = f"register {register.name}"
        _require_modify(kind, what)
        selected = cells(_index(entry), register.size, what)
        if not entry.HasField("data"):
            raise invalid(f"{what}: a register's update needs data")
        assert register.type_spec is not None
        value = self._codec.decode_int(register.type_spec, entry.data, what)
        self._pipeline.register_fill(register.name, selected, value)

    def read_register(self, query: p4r.RegisterEntry) -> Iterator[p4r.Entity]:
        """The cells that a query selects."""
        for register in self._schema.registers.select(query.register_id):
            assert register.type_spec is not None
            for part in _parts(cells(_index(query), register.size, f"register {register.name}")):
                contents = self._pipeline.register_cells(register.name, part)
                for index, value in zip(part, contents, strict=True):
                    message = p4r.RegisterEntry(register_id=register.id, index=p4r.Index(index=index))
                    message.data.CopyFrom(self._codec.encode_int(register.type_spec, value))
                    yield p4r.Entity(register_entry=message)

    def copy_to(self, new: ArrayMessages) -> None:
        """Carries over what still has its place: arrays of the same id, as far as the new one reaches."""
        for counter in self._schema.counters.select(0):
            size = _common_size(new._schema.counters, counter)
            name = new._schema.counters[counter.id].name if size else ""
            for index, data in enumerate(
                self._pipeline.counter_cells(counter.name, range(size)) if size else []
            ):
                if data != CounterData():
                    new._pipeline.counter_write(name, index, data)
        for meter in self._schema.meters.select(0):
            for index in range(_common_size(new._schema.meters, meter)):
                if (config := self._pipeline.meter_read(meter.name, index)) is not None:
                    new._pipeline.meter_write(new._schema.meters[meter.id].name, index, config)
        for register in self._schema.registers.select(0):
            size = _common_size(new._schema.registers, register)
            contents = self._pipeline.register_read_all(register.name) if size else []
            for index, value in enumerate(contents[:size]):
                if value:
                    new._pipeline.register_write(new._schema.registers[register.id].name, index, value)


def _parts(selected: range) -> Iterator[range]:
    """Cells in slices, between which other requests run."""
    for at in range(0, len(selected), READ_AT_ONCE):
        yield selected[at : at + READ_AT_ONCE]


def _common_size(index: Index[Array], old: Array) -> int:
    return min(old.size, index[old.id].size) if old.id in index else 0


def _index(entry: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry) -> p4r.Index | None:
    return entry.index if entry.HasField("index") else None
