# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Which jobs may run, which have to wait, and what the answer says."""

from __future__ import annotations

import pytest

from netfold.controller.jobs.file import resolve_job
from netfold.controller.jobs.records import JobState
from netfold.controller.lifecycle.capacity import RefusedError
from netfold.controller.scheduling.job_planner import PlanRequest, plan_job
from netfold.controller.scheduling.placement_scheduler import JobExistsError
from netfold.controller.switches.failed_elements import FailedElements
from netfold.topologies.generators import leaf_spine, single_switch
from netfold.topologies.yaml_locations import SpecError
from tests.controller.deployment import ready


def _spec(name: str, workers: str, **more: object) -> str:
    lines = {"name": name, "workers": workers, "scheme": "switchml", "parameter_servers": 0, **more}
    return "".join(f"{k}: {v}\n" for k, v in lines.items())


async def test_a_refusal_names_the_resource_that_binds(tmp_path):
    async with ready(single_switch(4), tmp_path) as deployment:
        await deployment.controller.requests.submit(_spec("a", "[h1, h2]"), queue=False)
        with pytest.raises(RefusedError, match="link h1->s1 has nothing left of its 100 Mbit/s"):
            await deployment.controller.requests.submit(_spec("b", "[h1, h3]"), queue=False)
        assert [j.name for j in deployment.controller.state.registry.all()] == ["a"]


async def test_a_rate_below_the_least_is_refused_with_what_would_fit(tmp_path):
    async with ready(single_switch(4), tmp_path) as deployment:
        await deployment.controller.requests.submit(_spec("a", "[h1, h2]", rate=70), queue=False)
        with pytest.raises(RefusedError, match="a min_rate of at most 30 would fit"):
            await deployment.controller.requests.submit(_spec("b", "[h1, h3]", min_rate=50), queue=False)
        admitted = await deployment.controller.requests.submit(
            _spec("b", "[h1, h3]", min_rate=30), queue=False
        )
        assert admitted.placement.plan.rate == pytest.approx(30)


async def test_a_refusal_names_the_children_of_a_node_that_hold_the_rate_down(tmp_path):
    async with ready(leaf_spine(2, 2, 40), tmp_path) as deployment:
        with pytest.raises(RefusedError, match=r"leaf\d takes 32 children.*may be up to 256"):
            await deployment.controller.requests.submit(
                _spec("a", "36", min_rate=90, scheme="panama"), queue=False
            )


async def test_slots_run_out_with_an_answer_and_come_back_with_the_job(tmp_path):
    async with ready(single_switch(4, slots=64), tmp_path) as deployment:
        controller = deployment.controller
        for name in ("a", "b"):
            await controller.requests.submit(_spec(name, "[h1, h2]", rate=20, slots=32), queue=False)
        with pytest.raises(RefusedError, match="switch s1 has 64 of 64 slots in use"):
            await controller.requests.submit(_spec("c", "[h1, h2]", rate=20, slots=32), queue=False)
        controller.requests.cancel("a")
        admitted = await controller.requests.submit(_spec("c", "[h1, h2]", rate=20, slots=32), queue=False)
        assert admitted.placement.trees[0].bases == {"s1": 0}
        assert admitted.epoch == 2, "the slots have seen epoch 1"


async def test_fewer_slots_than_wished_are_taken_when_no_more_are_left(tmp_path):
    async with ready(single_switch(4, slots=64), tmp_path) as deployment:
        await deployment.controller.requests.submit(_spec("a", "[h1, h2]", rate=20, slots=32), queue=False)
        admitted = await deployment.controller.requests.submit(
            _spec("b", "[h1, h2]", rate=20, slots=64), queue=False
        )
        tree = admitted.placement.trees[0]
        assert (tree.slots, tree.window) == (32, 16)


async def test_the_trees_of_a_job_share_the_slots_of_a_switch(tmp_path):
    """A first tree that takes all slots of a leaf would leave none for the second, and the job could never run."""
    async with ready(leaf_spine(2, 2, 2, slots=256), tmp_path) as deployment:
        spec = _spec("a", "[h1, h2, h3, h4]", scheme="panama", slots=256)
        admitted = await deployment.controller.requests.submit(spec, queue=False)
        first, second = admitted.placement.trees
        assert set(first.bases) & set(second.bases), (first.bases, second.bases)
        assert (first.slots, second.slots) == (128, 128)


async def test_a_queued_job_can_be_canceled(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.controller.requests.submit(_spec("a", "[h1, h2]"), queue=False)
        await deployment.controller.requests.submit(_spec("b", "[h1, h2]"), queue=True)
        assert deployment.controller.requests.cancel("b").state is JobState.CANCELED
        deployment.controller.requests.cancel("a")
        await deployment.settled()
        assert deployment.state("b") is JobState.CANCELED


async def test_a_name_is_free_again_when_its_job_is_over(tmp_path):
    async with ready(single_switch(2), tmp_path) as deployment:
        await deployment.controller.requests.submit(_spec("a", "[h1, h2]"), queue=False)
        with pytest.raises(JobExistsError, match="cancel it or choose another name"):
            await deployment.controller.requests.submit(_spec("a", "[h1, h2]"), queue=False)
        deployment.controller.requests.cancel("a")
        again = await deployment.controller.requests.submit(_spec("a", "[h1, h2]"), queue=False)
        assert again.placement.trees[0].tree != 1, "numbers are used again as late as possible"
        assert again.state is JobState.INSTALLING


async def test_jobs_share_a_fabric_with_numbers_of_their_own(tmp_path):
    async with ready(leaf_spine(2, 2, 2), tmp_path) as deployment:
        jobs = [
            await deployment.controller.requests.submit(_spec(n, w, rate=10), queue=False)
            for n, w in (("a", "[h1, h3]"), ("b", "[h1, h3]"), ("c", "[h2, h4]"))
        ]
        assert len({j.udp_port for j in jobs}) == 3
        assert len({t.tree for j in jobs for t in j.placement.trees}) == 3
        await deployment.settled_exactly()


async def test_replan_moves_a_job_that_gains_and_only_that(tmp_path):
    """The second job got what the first left; when the first is gone it can have all."""
    async with ready(single_switch(2), tmp_path) as deployment:
        controller = deployment.controller
        await controller.requests.submit(_spec("a", "[h1, h2]", rate=80), queue=False)
        await deployment.run(_spec("b", "[h1, h2]"))
        assert await controller.requests.replan([]) == []
        controller.requests.cancel("a")
        old = controller.state.registry.get("b")
        assert await controller.requests.replan([]) == ["b"]
        await deployment.runs("b")
        new = controller.state.registry.get("b")
        assert new.placement.plan.rate == pytest.approx(100)
        assert new.epoch > old.epoch
        assert new.placement.trees[0].tree != old.placement.trees[0].tree
        await deployment.settled_exactly()


async def test_a_job_that_moves_is_made_before_it_is_broken(tmp_path):
    """Until every switch has the new entries, the old ones stay."""
    async with ready(single_switch(2), tmp_path) as deployment:
        controller = deployment.controller
        await controller.requests.submit(_spec("a", "[h1, h2]", rate=80), queue=False)
        await controller.requests.submit(_spec("b", "[h1, h2]"), queue=False)
        await deployment.settled()
        controller.requests.cancel("a")
        await deployment.settled()
        switch = deployment.switches["s1"]
        switch.log.clear()
        await controller.requests.replan(["b"])
        assert controller.state.registry.get("b").previous is not None
        await deployment.settled()
        kinds = [op for op, what in switch.log if what != "multicast"]
        assert kinds == sorted(kinds, key=["INSERT", "MODIFY", "DELETE"].index)
        assert switch.log[-1] == ("DELETE", "multicast"), "the old group goes last"
        assert controller.state.registry.get("b").previous is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "the file is empty"),
        ("- a\n", "a job is a mapping"),
        ("name: a\nworker: [h1]\n", r"job:2:1: unknown key 'worker'; did you mean 'workers'\?"),
        ("workers: [h1]\n", "'name' is missing"),
        (
            "name: a\nworkers: [h1, hh2]\n",
            r"job:2:\d+: 'hh2' is no host of fabric 'single-4'; did you mean 'h2'",
        ),
        ("name: a\nworkers: [x99]\n", r"'x99' is no host of fabric 'single-4'; known are h1, h2, h3, h4"),
        ("name: a\nnumerics: half\nscheme: gird\n", r"as in \{mode: half\}\njob:3:1: scheme 'gird'"),
        ("name: a\nsandbox: 1\n", "sandbox is 1; expected true or false"),
        ("name: a\nworkers: [h1, h1]\n", "'h1' is named twice"),
        ("name: a\nworkers: 9\n", "9 workers are wanted, fabric 'single-4' has 4"),
        ("name: a\nscheme: gird\n", "scheme 'gird' is unknown; there are none, lbmm"),
        ("name: a\nslots: 48\n", "slots is 48; it must be a power of two"),
        ("name: a\nelements: 0\n", "elements is 0; expected at least 1"),
        ("name: a\nrate: yes\n", "expected a number, not"),
        ("name: a\nrate: 5\nmin_rate: 9\n", "min_rate 9 is above rate 5"),
        ("name: a\nnumerics: {mod: fixed}\n", r"unknown key 'mod'; did you mean 'mode'\?"),
        ("name: a\non_worker_loss: panic\n", "on_worker_loss is 'panic'"),
        ("name: a\nname: b\n", "'name' is given twice"),
        ("#" * (300 << 10), "a job file has at most 262144"),
        ("name: " + "[" * 5000, "nested more than 64 deep"),
    ],
)
async def test_a_bad_job_file_names_line_and_field(spec, message, tmp_path):
    async with ready(single_switch(4), tmp_path) as deployment:
        with pytest.raises(SpecError, match=message):
            await deployment.controller.requests.submit(spec, queue=True)
        assert not deployment.controller.state.registry.all()


def test_a_refusal_explains_a_few_switches_that_are_down_and_names_the_others():
    fabric = leaf_spine(4, 2, 2)
    resolved = resolve_job(_spec("a", "[h1, h3]"), fabric)
    leaves = frozenset(f"leaf{n + 1}" for n in range(4))
    causes = {leaf: f"10.0.0.1:{leaf[-1]}: it did not answer" for leaf in leaves}
    with pytest.raises(RefusedError) as refused:
        plan_job(fabric, PlanRequest(resolved, failed=FailedElements(switches=leaves), causes=causes))
    down = [f"leaf{n} (10.0.0.1:{n}: it did not answer)" for n in (1, 2, 3)]
    assert str(refused.value).endswith(f"to h3: {', '.join(down)}, leaf4")


@pytest.mark.parametrize("depth", [70, 60_000])
@pytest.mark.parametrize("deep", ["[", "{a: ", "- "])
def test_a_deeply_nested_job_file_is_refused_and_ends_no_process(deep, depth):
    """libyaml composes values by recursion: its stack would end."""
    with pytest.raises(SpecError, match="nested more than 64 deep"):
        resolve_job(("name: " if deep != "- " else "") + deep * depth, single_switch(2))


@pytest.mark.parametrize(
    "line", ["seed: ", "rate: ", "options: {time_limit: ", "slots: ", "workers: ", "elements: 0x"]
)
def test_no_number_of_a_job_file_has_more_digits_than_python_reads_at_once(line):
    with pytest.raises(SpecError, match=r"a number of 1800\d\d characters; expected at most 64"):
        resolve_job(f"name: a\n{line}{'9' * 180_000}{'}' if '{' in line else ''}\n", single_switch(2))


def test_a_seed_and_a_texts_option_have_limits():
    with pytest.raises(SpecError, match="expected at most 1000000000000000000"):
        resolve_job(f"name: a\nseed: {10**18 + 1}\n", single_switch(2))
    with pytest.raises(SpecError, match="at most 256 characters"):
        resolve_job(f"name: a\noptions: {{split: '{'x' * 300}'}}\n", single_switch(2))
