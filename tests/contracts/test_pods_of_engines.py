"""What the engine for Kubernetes says of pods that cannot run: on a real node, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.core.phases import Phase
from tests.contracts.at_once import running
from tests.engine_bench import ON_CLUSTER, Bench


@pytest.fixture(params=[ON_CLUSTER])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with running(request, tmp_path) as made:
        yield made


def test_names_the_image_that_cannot_be_pulled(bench):
    job = bench.put("true", runtime="localhost/none:1")
    told = bench.until_told(job, "localhost/none:1 cannot be pulled")
    assert told.status.phase == Phase.STARTING
    warned = [c.event for c in bench.told if c.event and c.event.replica == "trainer-0"]
    assert {event.reason for event in warned} <= {"ErrImagePull", "ImagePullBackOff"}
    assert warned


def test_says_which_memory_limit_was_too_small(bench):
    job = bench.put("""python3 -c "x = b'x' * (1 << 28); print(len(x))" """)
    end = bench.end(job).status
    assert (end.phase, end.failure.exit.cause) == (Phase.FAILED, EndCause.OUT_OF_MEMORY)
    assert "64Mi" in end.failure.exit.message


def test_an_object_deleted_with_kubectl_ends_its_run_when_its_pods_are_gone(bench):
    job = bench.put("sleep 1000")
    bench.until(job, Phase.RUNNING)
    bench.delete_objects(job)
    end = bench.end(job)
    assert (end.status.phase, "was deleted from the cluster" in end.status.reason) == (
        Phase.KILLED,
        True,
    )
    assert all(not seen.alive for seen in end.replicas)
