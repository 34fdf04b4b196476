# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The target `tofino` where the drivers themselves speak P4Runtime: what they are told, and what their line says."""

from __future__ import annotations

from pathlib import Path

import finsy as fy
import pytest
from finsy.proto import p4r

from netfold.controller.switches.devicefile import read_devices
from netfold.controller.switches.devices import Device, SwitchTarget, TofinoServer
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.entries import Codec
from netfold.controller.switches.server_forms import pad_packet_to_width, pad_to_width
from netfold.topologies.yaml_locations import SpecError
from tests.controller.deployment import PIPELINE, ready
from tests.controller.test_tofino import SPEC, _file, chips
from tests.dataplane.fixtures import SETTINGS


def _schema() -> fy.P4Schema:
    return fy.P4Schema(PIPELINE.p4info)


async def test_a_job_runs_over_a_switch_whose_drivers_speak(tmp_path: Path):
    device = Device(SwitchTarget.TOFINO, device_id=0, cpu_port=192, server=TofinoServer.DRIVERS)
    async with ready(chips(), tmp_path, devices={"leaf1": device}, probe_s=0.1) as deployment:
        await deployment.run(SPEC)
        deployment.assert_exact()
        leaf, failures = deployment.switches["leaf1"], deployment.controller.state.failures
        link = frozenset(("leaf1", "spine1"))
        deployment.cut.add(link)
        await deployment.until(lambda: link in failures.failed.links, "probes do not come")
        deployment.cut.remove(link)
        await deployment.until(lambda: link not in failures.failed.links, "probes come and go")
        assert not leaf.narrow
        await leaf.restart()
        await deployment.until(lambda: leaf.pushes == 2, "pushed again")
        await deployment.runs("job")
        await deployment.settled_exactly()
        assert deployment.controller.switches.fleet.health("leaf1").repaired == 0, (
            "padded numbers are what was written"
        )


def test_every_number_gets_the_width_of_its_field_and_keeps_its_value():
    schema = _schema()
    codec = Codec(schema)
    for entity in (e for setting in SETTINGS for e in setting.entities()):
        wide = pad_to_width(codec.encode(entity).encode(schema), schema)
        assert codec.decode(fy.p4entity.decode_entity(wide, schema)) == entity
        if not wide.HasField("table_entry"):
            continue
        table = schema.tables[wide.table_entry.table_id]
        for match in wide.table_entry.match:
            width = next(f.bitwidth for f in table.match_fields if f.id == match.field_id)
            kind = getattr(match, match.WhichOneof("field_match_type"))
            assert len(kind.value) == (width + 7) // 8
            assert len(getattr(kind, "mask", kind.value)) == (width + 7) // 8


def test_a_packet_s_port_gets_both_its_bytes():
    request = fy.P4PacketOut(b"frame", egress_port=3, padding=0).encode_update(_schema())
    assert isinstance(request, p4r.StreamMessageRequest)
    wide = pad_packet_to_width(request, _schema())
    assert [m.value for m in wide.packet.metadata] == [b"\0\3", b"\0"]
    assert wide.packet.payload == b"frame"


GOOD = """\
defaults: {target: tofino, server: drivers, p4info: p4info.txtpb, config: config.bin}
switches:
  leaf1: {address: "10.0.0.11:9559", cpu_port: 320}
  leaf2: {target: v1model, server: stratum}
  spine1: {target: v1model, server: stratum}
  spine2: {target: v1model, server: stratum}
"""


def test_one_word_says_that_the_drivers_speak(tmp_path: Path):
    text = GOOD.replace(", server: stratum", "").replace(" server: drivers,", "")
    text = text.replace("cpu_port: 320", "cpu_port: 320, server: drivers")
    leaf = read_devices(_file(tmp_path, text), chips(), lanes=32)["leaf1"]
    own = Pipeline(tmp_path / "p4info.txtpb", tmp_path / "config.bin")
    expected = Device(SwitchTarget.TOFINO, "10.0.0.11:9559", 0, own, 320, 3, server=TofinoServer.DRIVERS)
    assert leaf == expected, "their device is 0"
    assert leaf.one_shot
    assert leaf.full_width


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD, "'leaf2' has a 'server', which is for the target tofino"),
        (GOOD.replace("server: drivers, ", "device_id: 0, "), "the device_id of 'leaf1' must be 1 or more"),
        (GOOD.replace("server: drivers", "server: driver"), "'stratum' or 'drivers'"),
    ],
)
def test_what_is_wrong_with_the_line(tmp_path: Path, text: str, says: str):
    with pytest.raises(SpecError) as caught:
        read_devices(_file(tmp_path, text), chips(), lanes=32)
    assert says in str(caught.value)
