# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The TNA program on the register-accurate model of a Tofino chip, by the model's test harness.

The harness reads commands from stdin and appends every packet that leaves to an observation log. It has no word for
"done", but answers an unknown command at once, on stderr: that serves. It can neither take an entry out nor change
one, so a deleted admission entry is overwritten by one that nothing matches, and entries of other tables stay, where
nothing leads to them any more. As published it has no command for multicast groups; where a harness has one
(`mcgroup <group> [<port> ...]`: the group's packets are copied to these ports, once each), copies are seen too.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

from netfold.controller.switches.entries import Action, Entity, Field, MulticastGroup, TableEntry
from netfold.controller.switches.tables import CPU_PORT
from netfold.p4src.manifest import most_children
from tests.dataplane.device import VERDICTS, Device, Frames

HARNESSES = {"tofino": "tofino_test_harness", "tofino2": "jbay_test_harness"}
TREES = {"tofino": 1024, "tofino2": 512}
CHIP_CPU_PORT = 60  # any port may be it; what the models send to their own CPU ports is not observed
PATIENCE = float(os.environ.get("NETFOLD_CHIP_PATIENCE", "1"))
"""The factor by which a run on a model may take longer than usual, on a machine that does other things, too."""
TIMEOUT_S = 120.0 * PATIENCE
_BENIGN = ("No key value for", "WARNING: loading binary", "packet error")  # nothing was told to be expected
Match = tuple[tuple[str, Field], ...]
_PORTS = {"port", "ingress_port"}
_NO_SENDER: Match = (("ingress_port", 0x1FF), ("udp_port", 0), ("kind", 0xF), ("tree", 0))
_LPM_ROWS, _BAND = 32, 1024
_PROFILE, _SELECTOR = "SwitchIngress.forwarding.nexthops", "SwitchIngress.forwarding.nexthop_groups"
_MEMBERS, _SET = 2048, 64  # next hops that an entry can point to, and in a set of them


class HarnessError(Exception):
    """The harness refused a command."""


def missing(chip: str) -> str | None:
    """Why the model of a chip cannot run here; None if it can."""
    name = HARNESSES[chip]
    return None if shutil.which(name) else f"{name} is not on PATH"


@contextmanager
def model(chip: str, build: Path) -> Iterator[ChipDevice]:
    """A chip with the program in `build` (its context.json and binary)."""
    with TemporaryDirectory() as folder:
        device = ChipDevice(HARNESSES[chip], build, Path(folder), TREES[chip])
        try:
            device.clear()
            yield device
        finally:
            device.close()


class Layout:
    """Names and widths as the compiler's context.json has them."""

    def __init__(self, context: Path) -> None:
        tables = json.loads(context.read_text())["tables"]
        self._tables = {_bare(t["name"]): t for t in tables if t["table_type"] == "match"}

    def table(self, name: str) -> str:
        return str(self._tables[name]["name"])

    def action(self, table: str, name: str) -> str:
        names = [a["name"] for a in self._tables[table]["actions"]]
        return next(n for n in names if _bare(n) == name)

    def misread(self) -> Iterator[str]:
        """Commands that write constant entries again, over themselves, which the harness gets wrong: where a mask
        leaves out low bits, it says the value without leading zeros, and takes a wildcard that leads for all above."""
        for table in self._tables.values():
            rows = sum(stage["size"] for stage in table["match_attributes"]["stage_tables"])
            actions = {a["handle"]: a["name"] for a in table["actions"]}
            widths = {f["name"]: f["bit_width"] for f in table["match_key_fields"]}
            for entry in table.get("static_entries", ()):
                fields = entry["match_key_fields_values"]
                if any(_partial(int(f.get("mask", "0"), 0)) for f in fields):
                    keys = " ".join(_constant(f, widths[f["field_name"]]) for f in fields)
                    args = (f"{a['parameter_name']}:{a['value']}" for a in entry["action_parameters_values"])
                    call = f"{actions[entry['action_handle']]}({', '.join(args)})"
                    yield f"add {table['name']} {rows - 1 - entry['priority']} {keys} {call}"

    def keys(self, table: str, match: Match) -> Iterator[str]:
        """Return all keys, wildcards too, in the harness's notation: binary, with * for bits that do not matter."""
        given = dict(match)
        for field in self._tables[table]["match_key_fields"]:
            name, width = field["name"], field["bit_width"]
            short = _bare(name)
            value = given.get(short, (0, 0))
            if isinstance(value, int):
                yield f"{name}:{_port(value) if short in _PORTS else value}"
            else:
                number, mask = value
                if field["match_type"] == "lpm":
                    mask = (1 << width) - (1 << (width - mask))
                below = "*" * field["start_bit"]  # of the field that the key is a slice of
                yield f"{name}:{_ternary(number, mask, width)}{below}"


class ChipDevice(Device):
    least_bytes = 60  # as on a wire, where the frame check sequence comes on top
    parses_options = False
    children = most_children("tofino")

    def __init__(self, program: str, build: Path, folder: Path, trees: int) -> None:
        self.trees = trees
        self._program = program
        self._build = build
        self._log, self._said = folder / "observed", folder / "said"
        self._layout = Layout(build / "context.json")
        self._process: subprocess.Popen[str] | None = None
        self._marks = itertools.count()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def clear(self) -> None:
        """A new process: nothing is left of entries, registers and counters."""
        self.close()
        self._rows: dict[object, tuple[tuple[str, int], int]] = {}
        self._free: dict[tuple[str, int], list[int]] = {}
        self._exact: dict[object, TableEntry] = {}
        self._next_member = 0
        self._seen = self._heard = 0
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                ["stdbuf", "-oL", self._program, "--observation-log", str(self._log), "-"],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=subprocess.PIPE,
                text=True,
                cwd=self._log.parent,
            )
        self._do(f"load {self._build}")
        self._do(*self._layout.misread())
        self._commands = self._answer("help")

    def _do(self, *commands: str) -> None:
        """Give commands and wait until they are done. Raises HarnessError with what it says of them."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stderr is not None
        mark = f"done{next(self._marks)}"
        process.stdin.write("\n".join((*commands, mark, "")))
        process.stdin.flush()
        trouble: list[str] = []
        watch = Timer(TIMEOUT_S, process.kill)
        watch.start()
        try:
            for line in process.stderr:
                if line.rstrip().endswith(f"Unknown command {mark}"):
                    break
                if not any(text in line for text in _BENIGN):
                    trouble.append(line.rstrip())
            else:
                raise HarnessError(f"it ended after {commands}: {trouble}")
        finally:
            watch.cancel()
        if trouble:
            raise HarnessError(f"{commands}: {trouble}")

    @property
    def replicates(self) -> bool:
        """Return whether copies of a multicast are seen."""
        return "mcgroup" in self._commands

    def _answer(self, *commands: str) -> str:
        """Returns the text printed since the last answer, `commands` included."""
        self._do(*commands)
        with self._said.open() as said:
            said.seek(self._heard)
            text = said.read()
            self._heard = said.tell()
        return text

    def insert(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            if isinstance(entity, MulticastGroup):
                self._group(entity)
            elif _band(entity) is not None:
                self._write(entity, entity.match, f"{self._row(entity)}")
            elif entity.key not in self._exact:
                self._exact[entity.key] = entity
                self._write(entity, entity.match)
            elif self._exact[entity.key] != entity:
                raise HarnessError(f"{self._exact[entity.key]} cannot be changed to {entity}")

    def delete(self, entities: Iterable[Entity]) -> None:
        for entity in entities:
            if isinstance(entity, TableEntry) and entity.table == "admission":
                self._write(entity, _NO_SENDER, f"{self._row(entity)}")
                band, row = self._rows.pop(entity.key)
                self._free.setdefault(band, []).append(row)

    def _group(self, group: MulticastGroup) -> None:
        if self.replicates:
            self._do(f"mcgroup {group.group} {' '.join(map(str, group.ports))}")

    def _write(self, entity: TableEntry, match: Match, row: str = "") -> None:
        """If no row is given, the harness looks for a free one."""
        keys = " ".join(self._layout.keys(entity.table, match))
        call = self._layout.action(entity.table, entity.actions[0].name)
        args = self._args(entity.actions[0])
        if entity.table == "ipv4_routes":
            args = f"{self._members(call, entity.actions)} {args}"
        self._do(f"add {self._layout.table(entity.table)} {row} {keys} {call}({args})")

    def _members(self, call: str, ways: tuple[Action, ...]) -> str:
        """Writes next hops to the action profile; gives the first one's place there, and for several the word of the
        selector that has a bit for each: its choice is or-ed to that place. The harness has no word for such a pointer,
        but takes the fields that it is made of, shifted as the chip's addresses are."""
        if len(ways) > 1:
            self._next_member = -(-self._next_member // _SET) * _SET
        place = self._next_member
        self._next_member += len(ways)
        if self._next_member > _MEMBERS:
            raise HarnessError(f"{ways} find no room: there are {_MEMBERS} next hops")
        for number, way in enumerate(ways):
            self._do(f"add {_PROFILE} {place + number} {call}({self._args(way)})")
        if len(ways) == 1:
            return str(place)
        word = place // _SET
        self._do(f"selector {_SELECTOR}({word}) add {' '.join(map(str, range(len(ways))))}")
        return f"{place} meter_addr:{word << 7} meter_pfe:{1 << 23}"

    @staticmethod
    def _args(action: Action) -> str:
        return ", ".join(f"{k}:{_port(v) if k in _PORTS else hex(v)}" for k, v in action.args)

    def _row(self, entity: TableEntry) -> int:
        """The row of an entry of a ternary table. The higher row takes precedence."""
        if entity.key not in self._rows:
            band = _band(entity)
            assert band is not None
            free = self._free.setdefault(band, [])
            taken = sum(band == other for other, _ in self._rows.values())
            self._rows[entity.key] = band, free.pop() if free else band[1] + taken
        return self._rows[entity.key][1]

    def inject(self, port: int, frame: bytes) -> Frames:
        self._answer(f"packet {_port(port)} {frame.hex()}", "wait")
        with self._log.open() as log:
            log.seek(self._seen)
            lines = log.read().splitlines()
            self._seen = log.tell()
        return sorted(_left(line) for line in lines)

    def verdicts(self, tree_index: int) -> dict[int, int]:
        cells = range(tree_index * VERDICTS, (tree_index + 1) * VERDICTS)
        text = self._answer(*(f"check_counter SwitchIngress.verdicts({cell})" for cell in cells))
        counted = re.findall(r"\(physical (\d+)\):.* packets=(\d+)", text)  # cells that hold something
        return {int(cell) % VERDICTS: int(packets) for cell, packets in counted if packets != "0"}


def _band(entity: TableEntry) -> tuple[str, int] | None:
    """The table and the first row of those of the same precedence; None for an exact table."""
    if entity.table == "admission":
        return entity.table, entity.priority // 10 * _BAND
    prefixes = [value[1] for _, value in entity.match if isinstance(value, tuple)]
    return (entity.table, prefixes[0] * _LPM_ROWS) if prefixes else None


def _constant(field: dict[str, str], width: int) -> str:
    """A key of a constant entry."""
    mask = int(field["mask"], 0) if "mask" in field else (1 << width) - 1
    return f"{field['field_name']}:{_ternary(int(field['value'], 0), mask, width)}"


def _partial(mask: int) -> bool:
    """Return whether the mask has some bits, and not all lower ones."""
    return mask & (mask + 1) != 0


def _ternary(value: int, mask: int, width: int) -> str:
    """Return the value in the harness's notation, with all leading zeros."""
    bits = zip(f"{value:0{width}b}", f"{mask:0{width}b}", strict=True)
    return "0b" + "".join(v if m == "1" else "*" for v, m in bits)


def _left(line: str) -> tuple[int, bytes]:
    """A line of the observation log; the CPU port's number is the chip's, in the packet-in header too."""
    number, data = line.split()
    port, frame = int(number), bytes.fromhex(data)
    if port != CHIP_CPU_PORT:
        return port, frame
    header = int.from_bytes(frame[:2], "big")
    if header >> 7 == CHIP_CPU_PORT:
        header = CPU_PORT << 7 | header & 0x7F
    return CPU_PORT, header.to_bytes(2, "big") + frame[2:]


def _port(number: int) -> int:
    return CHIP_CPU_PORT if number == CPU_PORT else number


def _bare(name: str) -> str:
    return name.rsplit(".", 1)[-1]
