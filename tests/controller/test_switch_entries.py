# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold network entries` reads what the controller wrote, in the names of the program, while the controller runs."""

from __future__ import annotations

import asyncio

import pytest

from netfold.testbed.network.errors import NetworkError, UnknownElementError
from netfold.testbed.network.switch_entries import DecodedEntry, read_entries
from netfold.topologies.generators import single_switch
from tests.controller.deployment import ready

SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\n"


async def test_entries_have_the_names_of_the_program(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.run(SPEC)
        switch = deployment.switches["s1"]

        async def read(table: str = "") -> list[DecodedEntry]:
            return await asyncio.to_thread(read_entries, "s1", switch.address, switch.device_id, table)

        admitted = [e for e in await read("admission") if e.action.startswith("add_at_root(")]
        assert [e.match.split()[0] for e in admitted] == ["ingress_port=0x1", "ingress_port=0x2"]
        assert all(e.priority == 30 for e in admitted)
        assert all("full_mask=0x3" in e.action for e in admitted)
        assert await read("SwitchIngress.admission.admission") == await read("admission")
        assert {"admission", "downlink", "neighbors"} <= {e.table for e in await read()}
        with pytest.raises(UnknownElementError, match=r"'nope' is no table of switch 's1'.*admission"):
            await read("nope")
        await switch.stop()
        with pytest.raises(NetworkError, match="switch 's1' at "):
            await read()
