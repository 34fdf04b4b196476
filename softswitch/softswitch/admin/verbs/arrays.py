# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands about registers, counters and meters. A direct counter has the name of its table, and entry handles as
indexes."""

from __future__ import annotations

from softswitch.admin.verbs import arguments as args
from softswitch.admin.verbs.arguments import CommandError, Target
from softswitch.state.entities import ArrayInfo, CounterData, MeterConfig, TableEntry


def _register(target: Target, name: str) -> ArrayInfo:
    return args.find(target.pipeline.registers, name, "register")


def _index(text: str) -> int:
    return args.number(text, "index")


def register_read(target: Target, register: str, index: str | None = None) -> str:
    """Read a register's cell, or all: register_read <name> [index]"""
    name = _register(target, register).name
    if index is None:
        return f"{name}= {', '.join(map(str, target.pipeline.register_read_all(name)))}"
    return f"{name}[{_index(index)}]= {target.pipeline.register_read(name, _index(index))}"


def register_write(target: Target, register: str, index: str, value: str) -> str:
    """Write a register's cell: register_write <name> <index> <value>"""
    info = _register(target, register)
    negative = value.startswith("-")
    written = args.number(value.removeprefix("-"), "value", (1 << info.width) - 1)
    target.pipeline.register_write(info.name, _index(index), -written if negative else written)
    return ""


def register_reset(target: Target, register: str) -> str:
    """Set all cells of a register to 0: register_reset <name>"""
    target.pipeline.register_reset(_register(target, register).name)
    return ""


def _counter(target: Target, name: str) -> tuple[str, bool]:
    """Its full name, and whether it is the direct counter of the table of that name."""
    direct = {n: n for n, t in target.pipeline.tables.items() if t.has_counter}
    known = {n: n for n in target.pipeline.counters} | direct
    full = args.find(known, name, "counter")
    return full, full in direct


def _counted(target: Target, table: str, handle: str) -> TableEntry:
    entries = target.pipeline.table_handles(table)
    wanted = args.number(handle, "entry handle")
    if wanted not in entries:
        raise CommandError(f"table {table} has no entry with handle {wanted}")
    return entries[wanted]


def counter_read(target: Target, counter: str, index: str) -> str:
    """Read a counter: counter_read <name> <index>"""
    name, direct = _counter(target, counter)
    if direct:
        entry = _counted(target, name, index)
        data = target.pipeline.direct_counter_read(name, entry.match, entry.priority)
    else:
        data = target.pipeline.counter_read(name, _index(index))
    return f"{name}[{_index(index)}]= ({data.bytes} bytes, {data.packets} packets)"


def counter_write(target: Target, counter: str, index: str, packets: str, octets: str) -> str:
    """Write a counter: counter_write <name> <index> <packets> <bytes>"""
    name, direct = _counter(target, counter)
    data = CounterData(args.number(packets, "packets"), args.number(octets, "bytes"))
    if direct:
        entry = _counted(target, name, index)
        target.pipeline.direct_counter_write(name, entry.match, data, entry.priority)
    else:
        target.pipeline.counter_write(name, _index(index), data)
    return f"{name}[{_index(index)}] has been updated"


def counter_reset(target: Target, counter: str) -> str:
    """Set all of a counter to 0: counter_reset <name>"""
    name, direct = _counter(target, counter)
    if direct:
        for entry in target.pipeline.table_handles(name).values():
            target.pipeline.direct_counter_write(name, entry.match, CounterData(), entry.priority)
    else:
        for index in range(target.pipeline.counters[name].size):
            target.pipeline.counter_write(name, index, CounterData())
    return ""


def meter_set_rates(target: Target, meter: str, index: str, committed: str, peak: str) -> str:
    """Configure a meter: meter_set_rates <name> <index> <rate_1>:<burst_1> <rate_2>:<burst_2>

    Rates are units per microsecond and bursts are units, where a unit is a byte or a packet.
    """
    name = args.find(target.pipeline.meters, meter, "meter").name
    (cir, cburst), (pir, pburst) = _rate(committed), _rate(peak)
    target.pipeline.meter_write(name, _index(index), MeterConfig(cir, cburst, pir, pburst))
    return ""


def _rate(text: str) -> tuple[int, int]:
    rate, colon, burst = text.partition(":")
    try:
        per_second = round(float(rate) * 1_000_000)
    except (ValueError, OverflowError):
        per_second = -1
    if not colon or not 0 <= per_second < 1 << 63:
        raise CommandError(f"{text!r}: write a rate as UNITS_PER_MICROSECOND:BURST, like 0.01:1500")
    return per_second, args.number(burst, "burst")


def meter_get_rates(target: Target, meter: str, index: str) -> str:
    """Show a meter's rates: meter_get_rates <name> <index>"""
    name = args.find(target.pipeline.meters, meter, "meter").name
    config = target.pipeline.meter_read(name, _index(index))
    if config is None:
        return "not configured: every packet is green"
    rates = ((config.cir, config.cburst), (config.pir, config.pburst))
    return args.listed(
        f"{i}: info rate = {r / 1_000_000:g}, burst size = {b}" for i, (r, b) in enumerate(rates)
    )


VERBS = (
    register_read,
    register_write,
    register_reset,
    counter_read,
    counter_write,
    counter_reset,
    meter_set_rates,
    meter_get_rates,
)
