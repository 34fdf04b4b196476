# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What `import torch` calls, by the entry point group `torch.backends`: afterwards `init_process_group("netfold")` is
known. TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps torch from it; then a program calls `register` itself."""

from __future__ import annotations


def register() -> None:
    """Tells torch.distributed of the backend. Nothing else is imported before a process group is made."""
    import torch.distributed as dist  # noqa: PLC0415

    if dist.is_available() and "NETFOLD" not in dist.Backend._plugins:
        dist.Backend.register_backend("netfold", _create, extended_api=True, devices=["cpu", "cuda"])


# torch calls it with _DistributedBackendOptions and what the program gave as pg_options.
def _create(common, chosen):  # type: ignore[no-untyped-def]
    from netfold.traffic.pytorch.group import create  # noqa: PLC0415

    return create(common, chosen)
