# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The benchmark's transports of Gloo: PowerSGD's hook, whose buckets would start their reductions in any order, the
reduce-scatter of a ring, and groups in turn on one store."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.evaluation.speed.torch_ddp import rank  # noqa: E402
from netfold.evaluation.speed.torch_ddp.rank import (  # noqa: E402
    RingReduceScatter,
    distributed,
    measure,
    model_of,
    training_step,
)
from tests.torch.world import World  # noqa: E402

RANKS, PARAMETERS, LAYERS, STEPS = 3, 1_200_000, 2, 6
TIMEOUT_S = 30.0


def run_at_ranks(work: Any, argument: object) -> list[Any]:
    """Returns the results of all ranks of a group of Gloo."""
    ranks = World(["h1"] * RANKS, {}, "gloo", TIMEOUT_S)
    try:
        assert all(good for good, _ in ranks.answers())
        return list(ranks.run(work, argument))
    finally:
        ranks.close()


def powersgd(bucket_mb: float | None) -> tuple[int, bytes]:
    """Buckets of the model, and its parameters after some steps."""
    model: Any = distributed(model_of(PARAMETERS, LAYERS), "ddp", bucket_mb, "powersgd4")
    step = training_step(model, torch.distributed.get_rank())
    for _ in range(STEPS):
        step()
    buckets = str(model._get_ddp_logging_data()["rebuilt_bucket_sizes"]).split(",")
    return len(buckets), torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy().tobytes()


def test_powersgd_over_gloo_has_one_bucket_and_the_same_parameters_at_all_ranks():
    found = run_at_ranks(powersgd, None)
    assert {count for count, _ in found} == {1}
    assert len({parameters for _, parameters in found}) == 1


def ring_and_gloo(op_name: str) -> tuple[list[float], list[float]]:
    """A rank's block of a sum or average, by the ring and by Gloo."""
    group, op = dist.distributed_c10d._get_default_group(), getattr(dist.ReduceOp, op_name)
    values = torch.arange(RANKS * 5, dtype=torch.float64) * (group.rank() + 1)
    expected, got = torch.empty(5, dtype=torch.float64), torch.empty(5, dtype=torch.float64)
    dist.reduce_scatter_tensor(expected, values.clone(), op=op)
    RingReduceScatter()(got, values, group, op)
    return got.tolist(), expected.tolist()


@pytest.mark.parametrize("op_name", ["SUM", "AVG"])
def test_a_ring_s_reduce_scatter_gives_gloo_s_blocks(op_name: str):
    found = run_at_ranks(ring_and_gloo, op_name)
    assert all(got == expected for got, expected in found)
    assert len({tuple(got) for got, _ in found}) == RANKS


@pytest.mark.parametrize("after", [("gloo-fp16", 6000), ("gloo", 8000)], ids=["transport", "size"])
def test_groups_of_measurements_in_turn_share_no_keys(
    after: tuple[str, int], monkeypatch: pytest.MonkeyPatch
):
    """A rank that is early in a group reads a key of the group before it, if it has the same name."""
    store = dist.HashStore()
    monkeypatch.setattr(rank, "rendezvous", lambda url, timeout: iter([(store, 0, 1)]))
    keys = []
    for transport, parameters in (("gloo", 6000), after):
        measure(transport, parameters, LAYERS, 1, "ddp", None, 0.0, TIMEOUT_S)
        keys.append(set(store.list_keys()))
        for key in keys[-1]:
            store.delete_key(key)
    before, later = keys
    assert before
    assert later
    assert not before & later
