from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.jobspec import JobSpec, Mode, Role, RoleSpec, from_json, to_json
from paddlecloud.core.resources import Resources
from tests.unit.strategies import written_specs

templates = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(written_specs(), st.none() | st.dictionaries(st.text(), templates, max_size=3))
def test_reads_back_what_it_stored(spec: JobSpec, template: dict[str, object] | None) -> None:
    roles = tuple(dataclasses.replace(role, template=template) for role in spec.roles)
    spec = dataclasses.replace(spec, roles=roles)
    assert from_json(json.loads(json.dumps(to_json(spec)))) == spec


def test_is_rigid_unless_a_range_is_given() -> None:
    role = RoleSpec(Role.TRAINER, 4, Resources())
    assert (role.min_replicas, role.max_replicas) == (4, 4)
    role = RoleSpec(Role.TRAINER, 4, Resources(), min_replicas=2)
    assert (role.min_replicas, role.max_replicas) == (2, 4)


def _spec(*roles: RoleSpec) -> JobSpec:
    return JobSpec("j", Mode.PS, roles)


def test_counts_the_whole_job_at_a_size() -> None:
    spec = _spec(
        RoleSpec(Role.TRAINER, 4, Resources(2000, 10, 1), 1, 8),
        RoleSpec(Role.PSERVER, 2, Resources(500, 7)),
    )
    assert spec.resources_at(3) == Resources(3 * 2000 + 2 * 500, 3 * 10 + 2 * 7, 3)
    assert spec.replicas_at(3) == 5
    assert spec.resources_at(0) == Resources(1000, 14, 0)


def test_finds_a_role() -> None:
    trainer = RoleSpec(Role.TRAINER, 1, Resources())
    assert _spec(trainer).trainers is trainer
    assert _spec(trainer).role(Role.PSERVER) is None


def test_has_trainers_always() -> None:
    with pytest.raises(ValueError):
        _ = _spec(RoleSpec(Role.PSERVER, 1, Resources())).trainers


def test_reads_specs_stored_before_annotations_existed() -> None:
    stored = to_json(_spec(RoleSpec(Role.TRAINER, 1, Resources())))
    del stored["annotations"], stored["may_borrow"]
    spec = from_json(stored)
    assert (spec.annotations, spec.may_borrow) == ({}, False)
