# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of frameworks on top of torch.distributed, with what docs/how-to/pytorch.md tells their users to write."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

from tests.torch.world import World, packets, world  # noqa: E402

STEPS = 4
SAMPLES = 64

pytestmark = pytest.mark.timeout(900)  # frameworks take their time to import

FRAMEWORKS = ("accelerate", "transformers", "lightning")


@pytest.fixture(scope="module", params=[1, 2], ids=["one rank a host", "two ranks a host"])
def ranks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Ranks of two hosts."""
    for name in FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"SKIPPED: {name} is not installed (make test-frameworks)")
    hosts = [host for host in ("h1", "h2") for _ in range(request.param)]
    environment = {"ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"}
    with world(hosts, tmp_path_factory.mktemp("world"), environment) as (ranks, _):
        yield ranks


class Line(nn.Module):
    """Its loss comes with its output, as Trainer expects. Every rank begins with other weights."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(7 + dist.get_rank())
        self.layer = nn.Linear(3, 2)

    def forward(self, inputs: Any, labels: Any) -> dict[str, Any]:
        found = self.layer(inputs)
        return {"loss": nn.functional.mse_loss(found, labels), "logits": found}


class Samples(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self) -> None:
        numbers = torch.Generator().manual_seed(3)
        self.inputs = torch.randn(SAMPLES, 3, generator=numbers)

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"inputs": self.inputs[index], "labels": self.inputs[index][:2]}


def weights(model: Any) -> list[bytes]:
    return [p.detach().cpu().numpy().tobytes() for p in model.parameters()]


def trained_by_trainer(folder: str) -> tuple[list[bytes], float, bool]:
    from transformers import Trainer, TrainingArguments  # noqa: PLC0415

    before = packets()
    arguments = TrainingArguments(
        folder, max_steps=STEPS, per_device_train_batch_size=8, report_to=[], use_cpu=True, save_strategy="no",
        disable_tqdm=True, remove_unused_columns=False, dataloader_pin_memory=False,
    )  # fmt: skip
    model = Line()
    done = Trainer(model=model, args=arguments, train_dataset=Samples()).train()
    assert dist.get_backend() == "netfold"
    return weights(model), done.training_loss, packets() > before


def trained_by_accelerate(folder: str) -> tuple[list[bytes], float, bool]:
    from accelerate import Accelerator  # noqa: PLC0415

    before = packets()
    accelerator = Accelerator(cpu=True)
    model = Line()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=8)
    wrapped, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    loss = torch.zeros(())
    for batch in loader:
        optimizer.zero_grad()
        loss = wrapped(**batch)["loss"]
        accelerator.backward(loss)
        optimizer.step()
    mean = accelerator.reduce(loss.detach(), "mean")
    gathered = accelerator.gather(loss.detach().reshape(1))
    assert len(gathered) == dist.get_world_size()
    torch.testing.assert_close(mean, gathered.mean())
    return weights(model), float(mean), packets() > before


def trained_by_lightning(folder: str) -> tuple[list[bytes], float, bool]:
    import lightning  # noqa: PLC0415
    from lightning.pytorch.strategies import DDPStrategy  # noqa: PLC0415

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.line = Line()
            self.losses: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            loss = self.line(**batch)["loss"]
            self.log("loss", loss, sync_dist=True)
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    os.environ["TORCHELASTIC_RUN_ID"] = "trial"
    before = packets()
    module = Module()
    strategy = DDPStrategy(process_group_backend="netfold")
    ranks_of_a_host = int(os.environ["LOCAL_WORLD_SIZE"])
    trainer = lightning.Trainer(
        accelerator="cpu", devices=ranks_of_a_host, num_nodes=2, strategy=strategy, max_steps=STEPS, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(Samples(), batch_size=8)
    trainer.fit(module, loader)
    mean = torch.tensor(module.losses[-1])
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    torch.testing.assert_close(trainer.callback_metrics["loss"], mean)
    return weights(module), float(mean), packets() > before


@pytest.mark.parametrize(
    "program", [trained_by_trainer, trained_by_accelerate, trained_by_lightning], ids=lambda f: f.__name__
)
def test_a_framework_trains_through_the_network(ranks: World, program: Any, tmp_path: Path) -> None:
    answers = ranks.run(program, str(tmp_path))
    first, *others = (weights for weights, _, _ in answers)
    assert others == [first] * len(others)
    assert all(0 < loss < 3 for _, loss, _ in answers)
    assert [went_through for _, _, went_through in answers] == [True, *[False] * (len(answers) // 2 - 1)] * 2
