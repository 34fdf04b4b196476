# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Every test with a `bench` runs on each target that is here: softswitch always, BMv2 where it is installed
(`test_targets.py` says so where it is not), the model of Tofino where it is, in `make test-long`, and the switch that
NETFOLD_SWITCH describes (`remote.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from netfold.p4src.manifest import Form
from netfold.p4src.tools.p4build import CHILDREN, Profile
from tests.dataplane import bmv2, chip, remote, stack
from tests.dataplane.bench import Bench, Tally
from tests.dataplane.chip_builds import ChipBuilds, why_not
from tests.dataplane.device import Device, SoftDevice, compiled
from tests.dataplane.frames import LANES

BMV2 = pytest.param("bmv2", marks=[pytest.mark.bmv2, pytest.mark.root, pytest.mark.slow])
CHIP = pytest.param(
    "tofino", marks=[pytest.mark.p4c, pytest.mark.long, pytest.mark.timeout(900 * chip.PATIENCE)]
)
WIDE = "softswitch-wide"
"""softswitch with BMv2's form of the programs: what they add up is tested without BMv2, too."""
V1MODEL_TARGETS = ("softswitch", WIDE, "bmv2")
TARGETS = [
    "softswitch",
    pytest.param(WIDE, marks=pytest.mark.slow),
    *([] if bmv2.missing() else [BMV2]),
    *([] if why_not("tofino") else [CHIP]),
    *(["remote"] if remote.described() else []),
]
THREADED = "softswitch-threads"
"""softswitch with two threads, for test_threads.py."""
PACKETS = "packets"  # of a test's report: target, sent, of RoCE, compared
BUILDS = pytest.StashKey[ChipBuilds]()

Devices = Callable[..., Device]
Fresh = Callable[..., Bench]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Programs for the chips' models are compiled while other tests run."""
    config = session.config
    if config.option.collectonly or config.stash.get(BUILDS, None) is not None:
        return
    builds = config.stash[BUILDS] = ChipBuilds()
    config.add_cleanup(builds.stop)
    if hasattr(config, "workerinput"):  # one of pytest-xdist's processes: another one may have those tests
        return
    with_model = [
        item
        for item in session.items
        if "chips" in getattr(item, "fixturenames", ()) and item.get_closest_marker("skip") is None
    ]
    for name in dict.fromkeys(item.callspec.params["name"] for item in with_model):
        builds.start(name)


@pytest.fixture(scope="session")
def chip_builds(request: pytest.FixtureRequest) -> ChipBuilds:
    return request.config.stash[BUILDS]


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Iterator[Tally]:
    """Counts a test's packets; the run's end tells the sums."""
    tally = Tally()
    yield tally
    for target, sent in tally.sent.items():
        record_property(PACKETS, (target, sent, tally.roce[target], tally.compared[target]))


@pytest.fixture(scope="session")
def devices(chip_builds: ChipBuilds) -> Iterator[Devices]:
    """Switches by target, lanes, number and children, started when first asked for and kept for the session."""
    running: dict[tuple[str, Profile, int], Device] = {}
    with ExitStack() as stack:

        def get(target: str, lanes: int, number: int = 0, children: int = CHILDREN) -> Device:
            profile = Profile(lanes, children)
            if target in ("remote", "tofino") and (number, profile) != (0, Profile(LANES)):
                pytest.skip(
                    f"there is one {target} switch, with {LANES} lanes and nodes of {CHILDREN} children"
                )
            if target == WIDE and bmv2.own_form(profile) == profile:
                pytest.skip("BMv2 has no form of its own of this program: softswitch has run it")
            key = target, profile, number
            if key not in running:
                running[key] = stack.enter_context(_start(target, profile, chip_builds))
            return running[key]

        yield get


def _start(target: str, profile: Profile, chip_builds: ChipBuilds):
    if target in ("softswitch", THREADED):
        threads = 2 if target == THREADED else 1
        return SoftDevice(compiled(profile)[0], children=profile.children, threads=threads)
    if target == WIDE:
        own = bmv2.own_form(profile)
        return SoftDevice(compiled(own)[0], children=own.children, wraps=own.form is Form.BMV2)
    if target == "tofino":
        return chip.model(target, chip_builds.result(target))
    if target == "remote":
        here = stack.STACKS.get(str(remote.described()))
        return remote.remote() if here is None else stack.running(here)
    return bmv2.bmv2(bmv2.own_form(profile))


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def last_bench() -> dict[int, Bench]:
    """The bench of the test before, by the device's id, for a switch whose program is pushed once."""
    return {}


@pytest.fixture
def fresh(devices: Devices, tally: Tally, last_bench: dict[int, Bench]) -> Fresh:
    """Switches that hold nothing, by target, lanes, number and children; of the `new` ones no register was ever
    used."""

    def bench(
        target: str, lanes: int, number: int = 0, *, children: int = CHILDREN, new: bool = False
    ) -> Bench:
        device = devices(target, lanes, number, children)
        shared = isinstance(device, remote.RemoteDevice) and device.shared_push
        made = last_bench.pop(id(device), None)
        if new or made is None or not made.start_over(device):
            device.clear()
            made = Bench(device, lanes, tally, target)
        made.tally = tally
        if shared:
            last_bench[id(device)] = made
        return made

    return bench


@pytest.fixture
def bench(target: str, fresh: Fresh) -> Bench:
    """A fresh switch of 32 lanes."""
    return fresh(target, LANES)


@pytest.fixture
def new_bench(target: str, fresh: Fresh) -> Bench:
    """One whose registers were never used."""
    return fresh(target, LANES, new=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally = Tally()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) != "teardown":
                continue
            for name, value in report.user_properties:
                if name == PACKETS:
                    target, sent, roce, compared = value
                    tally.sent[target] += sent
                    tally.roce[target] += roce
                    tally.compared[target] += compared
    for target, sent in sorted(tally.sent.items()):
        left, roce = tally.compared[target], tally.roce[target]
        terminalreporter.write_line(
            f"data plane on {target}: {sent:,} packets sent ({roce:,} of RoCE), {left:,} that left compared"
        )
