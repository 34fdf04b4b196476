# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m netfold.evaluation.speed.torch_ddp`, also where PyTorch is and the packages of the testbed are not."""

from importlib import import_module

from netfold.missing_package import exit_if_missing

if __name__ == "__main__":
    with exit_if_missing("python -m netfold.evaluation.speed.torch_ddp", "testbed"):
        import_module("netfold.evaluation.speed.torch_ddp.steps").main()
