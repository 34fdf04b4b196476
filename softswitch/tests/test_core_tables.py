# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Tables against a model that scans a list, and every refusal of a control operation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cases import by, pack
from running import program, running
from softswitch.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from softswitch.state.entities import (
    ActionCall,
    CloneSession,
    CounterData,
    Exact,
    Lpm,
    Match,
    MemberRef,
    MeterConfig,
    Range,
    Replica,
    TableEntry,
    Ternary,
)
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

SEED = 11
IN = "MyIngress."


@pytest.fixture
def tables(cache_dir: Path) -> Iterator[tuple[Pipeline, Switch]]:
    with running(program("tables"), cache_dir) as both:
        yield both


def look(
    switch: Switch, *, sel: int = 99, ip: int = 0, port: int = 0, low: int = 0, opt: int = 0, wide: int = 0
) -> dict[str, int]:
    """Returns the changes that the tables made to a packet: the fields of out_t."""
    frame = pack((sel, 8), (ip, 32), (port, 16), (low, 16), (opt, 8), (wide, 100), (0, 4))
    ((_, out),) = switch.inject(1, frame, 0)
    return {
        "a": out[0],
        "b": out[1],
        "c": out[2],
        "d": int.from_bytes(out[3:5], "big"),
        "e": int.from_bytes(out[5:9], "big"),
    }


def set_a(v: int) -> ActionCall:
    return ActionCall(IN + "set_a", {"v": by(v, 8)})


def set_b(v: int) -> ActionCall:
    return ActionCall(IN + "set_b", {"v": by(v, 8)})


# ---- lookups against a model ----


def matches(m: Match | None, value: int, width: int) -> bool:
    if m is None:
        return True
    if isinstance(m, Exact):
        return value == int.from_bytes(m.value, "big")
    if isinstance(m, Lpm):
        return value >> (width - m.prefix_len) == int.from_bytes(m.value, "big") >> (width - m.prefix_len)
    if isinstance(m, Ternary):
        return value & int.from_bytes(m.mask, "big") == int.from_bytes(m.value, "big")
    return int.from_bytes(m.low, "big") <= value <= int.from_bytes(m.high, "big")


def random_ternary(rng: random.Random) -> dict[str, Match]:
    out: dict[str, Match] = {}
    if rng.random() < 0.7:
        mask = rng.choice([0xFFFFFFFF, 0xFFFF0000, 0xF, 0xFF])
        out["hdr.key.ip"] = Ternary(by(rng.randrange(6) * 0x10001 & mask, 32), by(mask, 32))
    if rng.random() < 0.5:
        mask = rng.choice([0xFFFF, 3])
        out["hdr.key.port"] = Ternary(by(rng.randrange(6) & mask, 16), by(mask, 16))
    if rng.random() < 0.3:
        out["hdr.key.opt"] = Exact(by(rng.randrange(3), 8))
    return out


def test_ternary_follows_the_model(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    rng = random.Random(SEED)
    entries: list[TableEntry] = []
    for step in range(400):
        if rng.random() < 0.6 and len(entries) < 60:
            e = TableEntry(random_ternary(rng), set_a(step % 256), rng.randrange(1, 12))
            if any((x.match, x.priority) == (e.match, e.priority) for x in entries):
                with pytest.raises(AlreadyExistsError):
                    pipeline.table_insert(IN + "ternary_t", e)
            else:
                pipeline.table_insert(IN + "ternary_t", e)
                entries.append(e)
        elif entries:
            gone = entries.pop(rng.randrange(len(entries)))
            pipeline.table_delete(IN + "ternary_t", gone.match, gone.priority)
        ip, port, opt = rng.randrange(6) * 0x10001, rng.randrange(6), rng.randrange(4)
        hits = [
            e
            for e in entries
            if matches(e.match.get("hdr.key.ip"), ip, 32)
            and matches(e.match.get("hdr.key.port"), port, 16)
            and matches(e.match.get("hdr.key.opt"), opt, 8)
        ]
        got = look(switch, ip=ip, port=port, opt=opt)
        best = max((e.priority for e in hits), default=None)
        allowed = {
            e.action.params["v"][0] for e in hits if e.priority == best and isinstance(e.action, ActionCall)
        }
        if hits:
            assert got["a"] in allowed, f"seed {SEED}, step {step}"
        assert bool(got["e"] & 0x10000) == (not hits), f"seed {SEED}, step {step}"
    assert sorted((e.priority, str(e.match)) for e in pipeline.table_entries(IN + "ternary_t")) == sorted(
        (e.priority, str(e.match)) for e in entries
    )


def test_packets_in_a_row_get_entries_of_their_own_keys(tables: tuple[Pipeline, Switch]) -> None:
    """The entry of the packet before is that of the next one only if no better one may match."""
    pipeline, switch = tables
    rng = random.Random(SEED)
    keys = [(0xFFFFFFFF, 3, 9), (0xFFFF0000, 2, 8), (0xF, 1, 7), (0, 0, 1)]
    for mask, v, priority in keys:
        match: dict[str, Match] = (
            {"hdr.key.ip": Ternary(by(0x50003 & mask, 32), by(mask, 32))} if mask else {}
        )
        pipeline.table_insert(IN + "ternary_t", TableEntry(match, set_a(v), priority))
    for step in range(200):
        ip = rng.choice([0x50003, 0x50004, 0x60003, 0x60004])
        expected = next(v for mask, v, _ in keys if ip & mask == 0x50003 & mask)
        assert look(switch, ip=ip)["a"] == expected, f"seed {SEED}, step {step}"


def test_a_change_of_a_table_counts_for_the_next_packet(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    broad: dict[str, Match] = {"hdr.key.ip": Ternary(by(5, 32), by(0xFF, 32))}
    narrow: dict[str, Match] = {"hdr.key.ip": Ternary(by(5, 32), by(0xFFFF, 32))}
    assert look(switch, ip=5)["e"] & 0x10000
    pipeline.table_insert(IN + "ternary_t", TableEntry(broad, set_a(1), 1))
    assert [look(switch, ip=5)["a"] for _ in range(2)] == [1, 1]
    pipeline.table_insert(IN + "ternary_t", TableEntry(narrow, set_a(2), 2))
    assert [look(switch, ip=5)["a"] for _ in range(2)] == [2, 2]
    pipeline.table_modify(IN + "ternary_t", TableEntry(narrow, set_a(3), 2))
    assert look(switch, ip=5)["a"] == 3
    pipeline.table_delete(IN + "ternary_t", narrow, 2)
    assert [look(switch, ip=5)["a"] for _ in range(2)] == [1, 1]
    pipeline.table_delete(IN + "ternary_t", broad, 1)
    assert look(switch, ip=5)["e"] & 0x10000


def test_equal_priorities_go_to_the_older_entry(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    for v, mask in ((1, 0xFF), (2, 0xFFFF), (3, 0xF)):
        match: dict[str, Match] = {"hdr.key.ip": Ternary(by(5 & mask, 32), by(mask, 32))}
        pipeline.table_insert(IN + "ternary_t", TableEntry(match, set_a(v), 7))
    assert look(switch, ip=5)["a"] == 1


def test_longest_prefix_wins(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    rng = random.Random(SEED)
    have: dict[tuple[int, int], int] = {}
    for step in range(50):
        length = rng.randrange(33)
        value = (0x0A000000 | rng.randrange(64)) >> (32 - length) << (32 - length)
        if (value, length) in have:
            continue
        have[(value, length)] = step
        match: dict[str, Match] = {"hdr.key.ip": Lpm(by(value, 32), length)} if length else {}
        pipeline.table_insert(IN + "lpm_t", TableEntry(match, set_b(step)))
    for _ in range(200):
        ip = 0x0A000000 | rng.randrange(128)
        hits = {
            length: v for (value, length), v in have.items() if ip >> (32 - length) == value >> (32 - length)
        }
        assert look(switch, ip=ip)["b"] == (hits[max(hits)] if hits else 0), f"seed {SEED}"


def test_const_entries_keep_their_order(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    assert [look(switch, sel=1, port=p)["b"] for p in (1, 2, 8)] == [1, 2, 3]
    entries = list(pipeline.table_entries(IN + "const_t"))
    assert len(entries) == 4
    assert all(e.is_const for e in entries)
    with pytest.raises(PermissionDeniedError):
        pipeline.table_insert(IN + "const_t", replace(entries[0], priority=50))


def test_thousands_of_entries(cache_dir: Path) -> None:
    with running(program("router"), cache_dir) as (pipeline, switch):
        call = ActionCall(IN + "route", {"nexthop": by(1, 8), "count": by(1, 8)})
        for i in range(1024):
            pipeline.table_insert(IN + "routes", TableEntry({"hdr.ip.dst": Lpm(by(i << 8, 32), 24)}, call))
        with pytest.raises(ResourceExhaustedError, match="full: 1024"):
            pipeline.table_insert(IN + "routes", TableEntry({"hdr.ip.dst": Lpm(by(1 << 30, 32), 24)}, call))
        for i in range(0, 1024, 2):
            pipeline.table_delete(IN + "routes", {"hdr.ip.dst": Lpm(by(i << 8, 32), 24)})
        assert len(list(pipeline.table_entries(IN + "routes"))) == 512
        assert switch.inject(1, bytes(14), 0) == []


# ---- defaults ----


def test_default_action_is_set_and_restored(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    assert look(switch)["a"] == 0xAA
    pipeline.table_set_default(IN + "exact_t", set_a(5))
    assert look(switch)["a"] == 5
    pipeline.table_set_default(IN + "exact_t", None)
    assert look(switch)["a"] == 0xAA
    assert pipeline.table_default(IN + "exact_t") == set_a(0xAA)


def test_modify_keeps_the_entry_and_changes_its_action(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    entry = TableEntry({"hdr.key.sel": Exact(b"\x04"), "hdr.key.wide": Exact(b"\0")}, set_a(1), metadata=b"m")
    pipeline.table_insert(IN + "exact_t", entry)
    pipeline.table_modify(IN + "exact_t", replace(entry, action=set_a(2)))
    assert look(switch, sel=4)["a"] == 2
    assert pipeline.table_entry(IN + "exact_t", entry.match).metadata == b"m"


# ---- refusals ----

EXACT = {"hdr.key.sel": Exact(b"\1"), "hdr.key.wide": Exact(b"\1")}
BAD_ENTRIES: list[tuple[str, TableEntry, str]] = [
    ("exact_t", TableEntry({**EXACT, "x": Exact(b"\1")}, set_a(1)), "no key field 'x'"),
    ("exact_t", TableEntry({"hdr.key.sel": Exact(b"\1")}, set_a(1)), "must be given"),
    ("exact_t", TableEntry({**EXACT, "hdr.key.sel": Exact(b"\1\0")}, set_a(1)), "does not fit 8 bits"),
    ("exact_t", TableEntry({**EXACT, "hdr.key.sel": Exact(b"")}, set_a(1)), "empty byte string"),
    ("exact_t", TableEntry({**EXACT, "hdr.key.sel": Lpm(b"\1", 8)}, set_a(1)), "match kind is exact"),
    ("exact_t", TableEntry(EXACT, set_a(1), priority=3), "takes no priority"),
    ("exact_t", TableEntry(EXACT, ActionCall(IN + "leave")), "has no action"),
    ("exact_t", TableEntry(EXACT, ActionCall(IN + "set_a")), "needs parameter 'v'"),
    ("exact_t", TableEntry(EXACT, ActionCall(IN + "set_a", {"v": b"\1", "w": b"\1"})), "no parameter 'w'"),
    ("exact_t", TableEntry(EXACT, ActionCall(IN + "set_a", {"v": b"\1\1"})), "does not fit 8 bits"),
    ("exact_t", TableEntry(EXACT, MemberRef(1)), "no action profile"),
    ("lpm_t", TableEntry({"hdr.key.ip": Lpm(b"\1", 33)}, set_b(1)), "not in 0..32"),
    ("lpm_t", TableEntry({"hdr.key.ip": Lpm(b"\1", 8)}, set_b(1)), "beyond the prefix"),
    ("ternary_t", TableEntry({}, set_a(1)), "needs a priority"),
    ("ternary_t", TableEntry({"hdr.key.ip": Ternary(b"\3", b"\1")}, set_a(1), 1), "outside the mask"),
    ("range_t", TableEntry({"hdr.key.low": Range(b"\3", b"\1")}, set_a(1), 1), "is empty"),
]


@pytest.mark.parametrize(("table", "entry", "says"), BAD_ENTRIES)
def test_bad_entries_are_refused(
    tables: tuple[Pipeline, Switch], table: str, entry: TableEntry, says: str
) -> None:
    pipeline, _ = tables
    with pytest.raises(InvalidArgumentError, match=says):
        pipeline.table_insert(IN + table, entry)
    assert all(not list(pipeline.table_entries(t)) for t in pipeline.tables if t != IN + "const_t")


def test_a_table_that_is_not_there_is_named(tables: tuple[Pipeline, Switch]) -> None:
    with pytest.raises(NotFoundError, match="no table 'nope'"):
        tables[0].table_insert("nope", TableEntry({}, set_a(1)))


REFUSALS: list[tuple[Callable[[Pipeline], object], type[Exception]]] = [
    (lambda p: p.table_delete(IN + "exact_t", EXACT), NotFoundError),
    (lambda p: p.table_modify(IN + "exact_t", TableEntry(EXACT, set_a(1))), NotFoundError),
    (lambda p: p.direct_counter_read(IN + "exact_t", None), InvalidArgumentError),
    (lambda p: p.direct_meter_read(IN + "exact_t", None), InvalidArgumentError),
    (lambda p: p.counter_read("c", 0), NotFoundError),
    (lambda p: p.register_read("r", 0), NotFoundError),
    (lambda p: p.meter_write("m", 0, MeterConfig(1, 1, 1, 1)), NotFoundError),
    (lambda p: p.counter_write("c", 0, CounterData()), NotFoundError),
    (lambda p: p.multicast_insert(0, []), InvalidArgumentError),
    (lambda p: p.multicast_insert(1, [Replica(70000)]), InvalidArgumentError),
    (lambda p: p.multicast_insert(1, [Replica(1), Replica(1)]), InvalidArgumentError),
    (lambda p: p.multicast_delete(3), NotFoundError),
    (lambda p: p.clone_insert(CloneSession(40000, [Replica(1)])), InvalidArgumentError),
    (lambda p: p.clone_modify(CloneSession(1, [Replica(1)])), NotFoundError),
    (lambda p: p.digest_enable("d", True), NotFoundError),
    (lambda p: p.value_set_write("v", []), NotFoundError),
]


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_operations_on_what_is_not_there(tables: tuple[Pipeline, Switch], number: int) -> None:
    operation, error = REFUSALS[number]
    with pytest.raises(error):
        operation(tables[0])


# ---- ranges against a model ----


def test_ranges_follow_the_model_as_they_come_and_go(tables: tuple[Pipeline, Switch]) -> None:
    pipeline, switch = tables
    rng = random.Random(SEED)
    kept: dict[
        tuple[int, int, int, int], int
    ] = {}  # low, high, sel or -1, priority -> value; in order of insertion
    for step in range(600):
        if kept and (rng.random() < 0.4 or len(kept) == 60):
            low, high, sel, priority = rng.choice(list(kept))
            pipeline.table_delete(IN + "range_t", ranged(low, high, sel), priority)
            del kept[low, high, sel, priority]
        else:
            low = rng.randrange(200)
            key = (low, rng.randrange(low, 201), rng.choice([-1, -1, 1]), rng.randrange(1, 9))
            if key in kept:
                continue
            call = ActionCall(IN + "set_c", {"v": by(0, 8), "w": by(step, 16)})
            pipeline.table_insert(IN + "range_t", TableEntry(ranged(*key[:3]), call, key[3]))
            kept[key] = step
        value = rng.randrange(205)
        found = [k for k in kept if k[0] <= value <= k[1] and k[2] in (-1, 1)]
        best = max(found, key=lambda k: (k[3], -kept[k]), default=None)
        frame = pack((1, 8), (0, 32), (0, 16), (value, 16), (0, 8), (0, 100), (0, 4))
        ((_, out),) = switch.inject(1, frame, step)
        assert int.from_bytes(out[3:5], "big") == (0 if best is None else kept[best]), (value, best)


def ranged(low: int, high: int, sel: int) -> dict[str, Match]:
    match: dict[str, Match] = {"hdr.key.low": Range(by(low, 16), by(high, 16))}
    return match if sel < 0 else match | {"hdr.key.sel": Ternary(by(sel, 8), b"\xff")}
