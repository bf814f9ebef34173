"""The repository obeys every rule of its architecture."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from tests.architecture import shape
from tests.architecture.rules import RULES
from tests.architecture.source_tree import Rule, SourceTree

REPOSITORY = SourceTree(Path(__file__).resolve().parents[2])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_obeys(rule: Rule) -> None:
    faults = list(rule(REPOSITORY))
    if faults:
        pytest.fail("\n".join(faults), pytrace=False)


def test_prints_an_alarm_for_long_files() -> None:
    for alarm in shape.long_files(REPOSITORY):
        warnings.warn(alarm, stacklevel=1)


def test_finds_the_source() -> None:
    """A rule over an empty tree would hold; make sure there is something to judge."""
    assert "paddlecloud" in REPOSITORY.module_names
