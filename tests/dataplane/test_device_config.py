# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The device configs for Stratum and for the drivers' own server on Tofino, read back by the rules of their formats
alone, and how they are built."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.p4src.tools import tofino
from netfold.p4src.tools.p4build import P4BuildError
from netfold.p4src.tools.tofino_configs import TofinoProgram, drivers_config, stratum_config
from netfold.p4src.tools.tofino_parsers import check_parsers, share_with_checksums

# ---- the message, read by hand (protobuf.dev/programming-guides/encoding) ----------------------------


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of a message: wire types 0 (varint) and 2 (bytes)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data)
            yield key >> 3, data[at : at + value]
            at += value
        else:
            assert key & 7 == 0, f"wire type {key & 7}"
            yield key >> 3, value


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found


def test_stratum_finds_every_part_where_it_looks_for_it():
    context, binary, bfrt = b"c" * 300, bytes(range(256)) * 100, b"{}"
    program = TofinoProgram("netfold", bfrt, "pipe", context, binary)
    config = list(fields(stratum_config(program, [0, 1, 300])))
    assert [number for number, _ in config] == [1, 2, 3], "p4_name, bfruntime_info, one of profiles"
    assert config[:2] == [(1, b"netfold"), (2, bfrt)]
    profile = list(fields(config[2][1]))
    assert profile[:3] == [(1, b"pipe"), (2, context), (3, binary)]
    assert [number for number, _ in profile[3:]] == [4]
    assert varints(profile[3][1]) == [0, 1, 300]


def test_a_program_goes_into_all_pipes_unless_told_otherwise():
    (*_, (_, profile)) = fields(stratum_config(TofinoProgram("p", b"", "pipe", b"x", b"y")))
    (*_, (_, pipes)) = fields(profile)
    assert varints(pipes) == [0, 1, 2, 3]


def test_the_drivers_find_every_part_by_the_lengths_before_it():
    context, binary, bfrt = b'{"tables": []}', bytes(range(256)) * 300, b"{}"
    config = drivers_config(TofinoProgram("netfold", bfrt, "pipe", context, binary))
    assert config[:11] == b"\x07\0\0\0netfold"
    assert chunks(config) == [b"netfold", binary, context, b"pipe", bfrt]


def key(name: str, start: int, width: int, full: int) -> dict[str, object]:
    return {"name": name, "start_bit": start, "bit_width": width, "bit_width_full": full}


def table(kind: str) -> dict[str, object]:
    """One that matches the top 12 bits of a field of 32, in two pieces, and a field of 16 behind it."""
    placed = [
        {
            "field_name": "epoch",
            "source": "spec",
            "start_bit": 24,
            "field_width": 8,
            "lsb_mem_word_offset": 25,
        },
        {
            "field_name": "epoch",
            "source": "spec",
            "start_bit": 20,
            "field_width": 4,
            "lsb_mem_word_offset": 5,
        },
        {"field_name": "slot", "source": "spec", "start_bit": 8, "field_width": 8, "lsb_mem_word_offset": 9},
        {"field_name": "--version--", "source": "version", "start_bit": 0, "field_width": 2},
    ]
    stage = {"stage_table_type": kind, "pack_format": [{"entries": [{"fields": placed}]}]}
    keys = [key("epoch", 20, 12, 32), key("slot", 0, 16, 16)]
    return {"name": "admission", "match_key_fields": keys, "match_attributes": {"stage_tables": [stage]}}


def drivers_context(*tables: dict[str, object]) -> dict[str, object]:
    context = json.dumps({"chip": "t", "tables": tables}).encode()
    found = chunks(drivers_config(TofinoProgram("netfold", b"{}", "pipe", context, b"")))[2]
    return dict(json.loads(found))


def test_a_key_that_is_part_of_a_field_counts_for_itself_with_the_drivers():
    """PI gives it 12 bits of a key: the driver that expects 32 takes what follows for the rest of it."""
    expected = table("ternary_match")
    expected["match_key_fields"] = [key("epoch", 0, 12, 12), key("slot", 0, 16, 16)]
    places = expected["match_attributes"]["stage_tables"][0]["pack_format"][0]["entries"][0]["fields"]  # type: ignore[index]
    places[0]["start_bit"], places[1]["start_bit"] = 4, 0
    action = {"name": "admission$action"}
    assert drivers_context(table("ternary_match"), action) == {"chip": "t", "tables": [expected, action]}


def test_an_exact_key_that_is_part_of_a_field_is_refused():
    with pytest.raises(P4BuildError, match="table admission: epoch is a part of a field"):
        drivers_context(table("hash_match"))


def chunks(data: bytes) -> list[bytes]:
    """Read chunks as the drivers do: a length, as a little-endian number of 32 bits, and that many bytes."""
    found, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        found.append(data[at + 4 : end])
        at = end
    return found


# ---- the build, with compilers that only leave the files -----------------------------------------------

PARSERS = """version:
  target: Tofino
parser ingress:
  states:
    start:
{ingress}      0x003c:
        next: parse_packet_out
parser egress:
  states:
    start:
{egress}      0x0800:
        next: end
stage 0 ingress:
  match: [ of a gateway ]
"""
MATCH = "      match: [ half ]\n"
ASSEMBLY = PARSERS.format(ingress=MATCH, egress=MATCH)
COMPILER = """#!/bin/sh
echo "$@" >> {log}
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out="$2" ;;
    --p4runtime-files) echo "pkg_info {{ }}" > "$2" ;;
    --bf-rt-schema) echo '{{"tables": []}}' > "$2" ;;
  esac
  shift
done
mkdir -p "$out/pipe/logs" && cat > "$out/pipe/netfold.bfa" <<'END'
{assembly}
END
cat > "$out/pipe/logs/resources.json" <<'END'
{resources}
END
"""
RESOURCES = """{"resources": {"mau": {"nStages": 12, "mau_stages": [
  {"stage_number": 11, "logical_tables": {"ids": [{"table_name": "verdict"}]}},
  {"stage_number": %d, "logical_tables": {"ids": [{"table_name": "shifted_port"}]}}
]}}}"""
ASSEMBLER = """#!/bin/sh
echo "$@" >> {log}
chip="$2"; out="$4"
echo '{{"context": 1}}' > "$out/context.json"; printf 'bits' > "$out/$chip.bin"
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the two; gives the log of their arguments."""
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    for name, script in (("p4c-barefoot", COMPILER), ("bfas", ASSEMBLER)):
        (folder / name).write_text(script.format(log=log, resources=RESOURCES % 11, assembly=ASSEMBLY))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return log


@pytest.mark.parametrize(
    ("chip", "words"),
    [
        ("tofino", ["--target tofino --arch tna", "-D__TARGET_TOFINO__=1", "-DLANES=32"]),
        ("tofino2", ["--target tofino2 --arch t2na", "-D__TARGET_TOFINO__=2", "-DLANES=64"]),
    ],
)
def test_each_chip_is_compiled_with_its_own_lanes_and_wrapped(
    tools: Path, tmp_path: Path, chip: str, words: list[str]
):
    found = tofino.build(tofino.CHIPS[chip], tmp_path / "out" / chip)
    told = tools.read_text()
    assert all(word in told for word in (*words, "--p4runtime-force-std-externs", "p4src/tna/netfold.p4"))
    assert "CPU_PORT_NUMBER" not in told
    config = dict(fields(found.config.read_bytes()))
    assert config[1] == b"netfold"
    assert json.loads(config[2]) == {"tables": []}
    profile = dict(fields(config[3]))
    assert (profile[1], json.loads(profile[2]), profile[3]) == (b"pipe", {"context": 1}, b"bits")
    assert chunks(found.drivers.read_bytes())[:2] == [b"netfold", b"bits"]
    assert found.p4info == tmp_path / "out" / chip / "netfold.p4info.txtpb"


def test_the_controller_s_port_can_be_another(tools: Path, tmp_path: Path):
    tofino.build(tofino.CHIPS["tofino"], tmp_path, cpu_port=320)
    assert "-DCPU_PORT_NUMBER=320" in tools.read_text()


def test_a_build_that_fails_leaves_nothing_and_says_why(tools: Path, tmp_path: Path):
    (tools.parent / "bin" / "bfas").write_text("#!/bin/sh\necho 'no such stage' >&2; exit 1\n")
    with pytest.raises(P4BuildError, match="no such stage"):
        tofino.build(tofino.CHIPS["tofino"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tools.parent / "bin" / "bfas").write_text("#!/bin/sh\n")
    with pytest.raises(P4BuildError, match=r"one context \(context.json\) should be in"):
        tofino.build(tofino.CHIPS["tofino"], tmp_path / "out")


def test_a_program_that_takes_more_stages_than_there_are_fails_by_the_table(tools: Path, tmp_path: Path):
    compiler = tools.parent / "bin" / "p4c-barefoot"
    compiler.write_text(COMPILER.format(log=tools, resources=RESOURCES % 12, assembly=ASSEMBLY))
    with pytest.raises(P4BuildError, match="not fit into the 12 stages of tofino: shifted_port left over"):
        tofino.build(tofino.CHIPS["tofino"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_missing_tools_are_named(tools: Path, tmp_path: Path):
    (tools.parent / "bin" / "bfas").unlink()
    with pytest.raises(P4BuildError, match="bfas is neither on PATH nor beside"):
        tofino.find_tools()
    (tools.parent / "bin" / "p4c-barefoot").unlink()
    with pytest.raises(P4BuildError, match="p4c-barefoot is not on PATH"):
        tofino.find_tools()


def test_the_command_builds_what_it_is_asked_for(tools: Path, tmp_path: Path):
    app = tofino.typer.Typer()
    app.command()(tofino.main)
    done = CliRunner().invoke(app, ["tofino2", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "tofino2" / "netfold.pb.bin").is_file()
    assert not (tmp_path / "tofino").exists()
    assert CliRunner().invoke(app, ["tofino3"]).exit_code == 2


def test_the_middle_of_three_tiers_has_a_program_with_another_hash_of_flows(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tofino, "OUT", tmp_path / "tofino")
    app = tofino.typer.Typer()
    app.command()(tofino.main)
    for given, folder in (([], "tofino"), (["--flow-hash", "crc32"], "tofino-crc32")):
        done = CliRunner().invoke(app, ["tofino2", *given])
        assert done.exit_code == 0, done.output
        assert (tmp_path / folder / "tofino2" / "netfold.pb.bin").is_file()
    assert tools.read_text().count("-DFLOW_HASH=CRC32") == 1
    arch = (tofino.REPOSITORY / "p4src" / "tna" / "arch.p4").read_text()
    assert "#ifndef FLOW_HASH\n#define FLOW_HASH      CRC16" in arch
    assert CliRunner().invoke(app, ["tofino", "--flow-hash", "crc32"]).exit_code == 2


def test_a_program_whose_parsers_branch_is_taken():
    check_parsers(ASSEMBLY)


@pytest.mark.parametrize(("ingress", "egress", "named"), [("", MATCH, "ingress"), (MATCH, "", "egress")])
def test_a_program_whose_parser_lost_what_it_branches_on_is_refused(ingress: str, egress: str, named: str):
    with pytest.raises(P4BuildError, match=f"{named} parser"):
        check_parsers(PARSERS.format(ingress=ingress, egress=egress))


def test_a_parser_that_lost_what_one_state_branches_on_is_refused():
    """Tofino 2's keeps what goes by way of its scratch registers."""
    blind = f"{MATCH}      0x****:\n        next: parse_ipv4\n    parse_ipv4:\n      *:\n        next: end\n      *:\n"
    with pytest.raises(P4BuildError, match=r"the ingress parser .*\(state parse_ipv4"):
        check_parsers(PARSERS.format(ingress=blind, egress=MATCH))


CHECKSUM = """\
    verify_ipv4:
      *:
        checksum 0:
          type: VERIFY
          dest: MH2(0)
        next: parse_udp
    parse_udp:
      *:
        H0: 64
        {written}
        next: end
"""


def test_a_container_that_a_checksum_shares_with_a_state_is_written_bit_by_bit():
    """p4c 1.2.5.16 lists only those that states share."""
    text = PARSERS.format(ingress=MATCH + CHECKSUM.format(written="MH2: 2"), egress=MATCH)
    some = text.replace("parser ingress:\n", "parser ingress:\n  bitwise_or: [ B8, H0 ]\n")
    all_ = text.replace("parser ingress:\n", "parser ingress:\n  bitwise_or: [ B8, H0, MH2 ]\n")
    assert share_with_checksums(some) == all_
    assert share_with_checksums(all_) == all_
    assert "bitwise_or: [ MH2 ]\n" in share_with_checksums(text)


def test_a_verdict_that_a_state_writes_too_and_a_container_of_its_own_stay_as_they_are():
    for written in ("MH2: 1", "MH3: 2"):
        text = PARSERS.format(ingress=MATCH + CHECKSUM.format(written=written), egress=MATCH)
        assert share_with_checksums(text) == text
