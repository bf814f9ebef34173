"""The guide to Kubernetes shows what really happens, from an empty cluster and back to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.kube import running
from tests.kube.running import ROOT, Cluster

sys.path.insert(0, str(ROOT / "tools"))

from transcripts import Document, differences

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

GUIDE = ROOT / "docs" / "guides" / "kubernetes.md"


def test_the_guide_shows_what_happens(bare_cluster: Cluster, tmp_path: Path) -> None:
    """The image it installs is nobody's: what its pods would do is done by an operator of ours."""
    document = Document.read(GUIDE)
    assert len(document.steps) > 10
    tools, config = [bare_cluster.state / "bin"], str(bare_cluster.kubeconfig)
    with running.operator(bare_cluster, tmp_path / "operator.log", "--no-lease"):
        found = differences(document, tools, KUBECONFIG=config)
    assert "\n".join(found) == ""
