# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Entry point of the group `torch.backends`, which `import torch` calls: it registers the backend "netfold". With
TORCH_DEVICE_BACKEND_AUTOLOAD=0 a program calls `register` itself."""

from __future__ import annotations


def register() -> None:
    """Registers the backend. The first process group imports the rest."""
    import torch.distributed as dist  # noqa: PLC0415

    if dist.is_available() and "NETFOLD" not in dist.Backend._plugins:
        dist.Backend.register_backend("netfold", _create, extended_api=True, devices=["cpu", "cuda"])


# torch calls it with _DistributedBackendOptions and the program's pg_options.
def _create(options, program_options):  # type: ignore[no-untyped-def]
    from netfold.traffic.pytorch.create_group import create  # noqa: PLC0415

    return create(options, program_options)
