# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A spine dies under a training. The controller plans other trees, and no sum is lost or counted twice.

Run `python examples/failure.py`.
"""

from netfold.testbed import Testbed, run_isolated


def main() -> None:
    run_isolated()
    with Testbed("leaf-spine-2x2", controller_options=["--switch-restart-timeout", "2"]) as testbed:
        job = testbed.submit("training", ["--workload", "digits", "--epochs", 6], scheme="panama")
        roots = sorted(tree.root for tree in job.plan.trees)
        killed: list[str] = []

        def kill_in_the_middle() -> None:
            if not killed and job.progress.exists() and len(job.progress.read_text().splitlines()) >= 2:
                testbed.kill(roots[0])
                killed.append(roots[0])

        results = job.result(meanwhile=kill_in_the_middle)
        first, status = results["h1"], job.status()
        print(f"{', '.join(roots)} added up; {killed[0]} was killed after two training epochs")
        wrong = sum(result["wrong_elements"] for result in results.values())
        print(f"the job ended in job epoch {status.epoch}, {wrong} wrong elements")
        print(f"accuracy {first['accuracy']:.3f}, on one machine {first['reference_accuracy']:.3f}")


if __name__ == "__main__":
    main()
