# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine and the parameter server under sanitizers: random packets, epochs and times; threads."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest

from netfold.traffic.engine.recipe import CORE, FOLDER, SOURCES
from tests import c_programs

SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DNF_PLAIN")
ICMP_ERRORS = (
    *(errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENONET),
    *(errno.ENOPROTOOPT, errno.EPROTO, errno.EMSGSIZE, errno.EOPNOTSUPP),
)
STRICT = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Werror")


def built(name: str, engine: tuple[str, ...], *flags: str) -> Path:
    sources = [Path(__file__).with_name(f"{name}.c"), *(FOLDER / source for source in engine)]
    return c_programs.program(name, sources, [*STRICT, *flags, f"-I{FOLDER}"])


@pytest.fixture(scope="module")
def fuzzer() -> Path:
    return built("engine_fuzz", CORE, *SANITIZE)


@pytest.fixture(scope="module")
def bursts() -> Path:
    return built(
        "burst_trial",
        ("io/udp_batch.c", "io/link.c", "io/sockets.c"),
        *SANITIZE,
        "-Wl,--wrap=sendmmsg,--wrap=recvmmsg",
    )


def burst_trial(
    bursts: Path, refusal: int = 0, failure: int = 0, pending: int = 0, in_a_row: int = 0
) -> tuple[int, int]:
    """Number of messages sent, and the errno that failed the socket or 0."""
    arguments = map(str, (refusal, failure, pending, in_a_row))
    done = subprocess.run([bursts, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    messages, failed_by = map(int, done.stdout.replace("messages", "").split())
    return messages, failed_by


@pytest.mark.parametrize(
    ("refusal", "fewest", "most"), [(0, 1, 40), (errno.EIO, 450, 500), (errno.EINVAL, 450, 500)]
)
def test_packets_are_segmented_where_the_kernel_supports_it_and_else_sent_one_by_one(
    bursts: Path, refusal: int, fewest: int, most: int
):
    """450 packets arrive in order in every case; other datagrams never reach the core."""
    assert fewest <= burst_trial(bursts, refusal=refusal)[0] <= most


@pytest.mark.parametrize("in_a_row", [1, 16, 40])
@pytest.mark.parametrize("pending", ICMP_ERRORS)
def test_icmp_errors_are_counted_and_lose_packets_only_at_more_than_16_in_a_row(
    bursts: Path, pending: int, in_a_row: int
):
    burst_trial(bursts, pending=pending, in_a_row=in_a_row)


@pytest.mark.parametrize("failure", [errno.EINVAL, errno.EIO, errno.EBADF, errno.EACCES])
def test_what_no_icmp_error_can_be_is_a_failure_of_the_socket(bursts: Path, failure: int):
    assert burst_trial(bursts, failure=failure)[1] == failure


@pytest.mark.parametrize("loss", [errno.ENOBUFS, errno.EPERM, errno.ENETDOWN, *ICMP_ERRORS])
def test_a_packet_that_the_kernel_drops_is_lost_and_fails_no_socket(bursts: Path, loss: int):
    """However often: of a full queue, a packet filter, an interface that is down, a host without a route."""
    assert burst_trial(bursts, failure=loss)[1] == 0


def fuzz(fuzzer: Path, seed: int, steps: int) -> str:
    done = subprocess.run(
        [fuzzer, str(seed), str(steps)], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_random_packets_do_not_corrupt_the_core(fuzzer: Path, seed: int):
    assert "calls done" in fuzz(fuzzer, seed, 30_000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_millions_of_random_packets_do_not_corrupt_the_core(fuzzer: Path, seed: int):
    fuzz(fuzzer, seed, 1_000_000)


@pytest.fixture(scope="module")
def server() -> Path:
    return built(
        "root_fuzz",
        ("server/slot_pool.c", "io/udp_batch.c", "io/link.c", "server/shards.c", "server/root.c"),
        *SANITIZE,
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_packets_do_not_corrupt_the_parameter_server(server: Path, seed: int):
    assert "answers" in fuzz(server, seed, 30_000)


@pytest.mark.slow
def test_the_threads_of_workers_and_their_server_have_no_data_race():
    """Submitting, waiting, finishing and watching at once, and a new epoch in the middle. All sums are right."""
    program = built("engine_threads", SOURCES, "-fsanitize=thread", "-DNF_PLAIN", "-pthread")
    for arguments in (["100"], ["100", "unsteered"]):
        command = [
            "setarch",
            "-R",
            program,
            *arguments,
        ]  # the sanitizer's shadow memory wants its usual place
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        assert "105 calls at each of 2 workers" in done.stdout
