from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.controller.acting import merge_patch

values = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


def merged(target: Any, patch: Any) -> Any:
    """As RFC 7396 says."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(objects, objects)
def test_patches_the_old_into_the_new(old, new):
    assert merged(old, merge_patch(old, new)) == new


@given(objects)
def test_has_nothing_to_say_when_nothing_changed(status):
    assert merge_patch(status, status) == {}
