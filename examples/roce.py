# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual machines with Linux's own RDMA endpoints as workers: leaves add up RoCE packets. Takes minutes without KVM.

Run `python examples/roce.py`. It needs QEMU, and downloads Debian's packages at the first use.
"""

from netfold.testbed import RunError, run_isolated
from netfold.testbed.roce.lab import Lab


def main() -> None:
    run_isolated()
    try:
        with Lab(per_leaf=2, on_step=lambda text: print(f"# {text}", flush=True)) as lab:
            lab.submit("rdma")
            for machine, calls in lab.reduce(
                "rdma", "--sizes 65536 --iterations 2 --timeout 600", timeout_s=600
            ).items():
                print(f"{machine}: {len(calls)} all-reduces, {sum(c.wrong for c in calls)} wrong elements")
    except RunError as error:
        print(f"skipped: {error}")


if __name__ == "__main__":
    main()
