"""Hypothesis strategies for the values of the core, shared by the unit tests."""

from __future__ import annotations

from hypothesis import strategies as st

from paddlecloud.core.jobspec import (
    CleanPolicy,
    JobSpec,
    Mode,
    Priority,
    RestartRule,
    Role,
    RoleSpec,
)
from paddlecloud.core.resources import Resources

ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40
)
job_names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", fullmatch=True)
words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/:-]{0,30}", fullmatch=True)
clusters = st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True)
env_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
label_texts = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?", fullmatch=True)
path_parts = st.from_regex(r"[a-z0-9_é.-]{1,12}", fullmatch=True).filter(
    lambda part: part not in (".", "..")
)


@st.composite
def resources(draw: st.DrawFn, *, gpu: bool = True) -> Resources:
    return Resources(
        cpu_milli=draw(st.integers(1, 128_000)),
        memory_bytes=draw(st.integers(2**20, 2**40)),
        gpu=draw(st.integers(0, 16)) if gpu else 0,
    )


@st.composite
def written_specs(draw: st.DrawFn) -> JobSpec:
    """Specs that flags and REST bodies can express."""
    mode = draw(st.sampled_from([Mode.SINGLE, Mode.COLLECTIVE, Mode.PS]))
    wish = 1 if mode == Mode.SINGLE else draw(st.integers(1, 10_000))
    low = draw(st.integers(1, wish))
    high = wish if mode == Mode.SINGLE else draw(st.integers(wish, 10_000))
    # A range of 1..1 beside a larger wish is no spec at all, so nothing is lost by this.
    roles = [RoleSpec(Role.TRAINER, wish, draw(resources()), low, high)]
    if mode == Mode.PS:
        count = draw(st.integers(1, 10_000))
        roles.append(RoleSpec(Role.PSERVER, count, draw(resources(gpu=False))))
    cluster = draw(clusters)
    parts = draw(st.lists(path_parts, min_size=1, max_size=4))
    package = draw(st.sampled_from(["", "/".join(["/pfs", cluster, "home", "alice", *parts])]))
    entry, topology = draw(
        st.sampled_from([("python train.py", ""), ("", "conf/a.py"), ("paddle train", "b.py")])
        | texts.filter(str.strip).map(lambda text: (text, ""))
    )
    return JobSpec(
        name=draw(job_names),
        mode=mode,
        roles=tuple(roles),
        entry=entry,
        topology=topology,
        package=package,
        package_digest=draw(st.sampled_from(["", "0f" * 32])),
        cluster=cluster,
        runtime=draw(st.just("") | words),
        registry=draw(st.just("") | words),
        env=draw(st.dictionaries(env_names, st.just("") | texts, max_size=4)),
        passes=draw(st.integers(1, 1000)),
        priority=draw(st.sampled_from(Priority)),
        wall_time_s=draw(st.integers(0, 10**7)),
        restart=RestartRule(
            draw(st.integers(0, 1000)), frozenset(draw(st.sets(st.integers(1, 255), max_size=4)))
        ),
        clean=draw(st.sampled_from(CleanPolicy)),
        fault_tolerant=draw(st.booleans()),
        grace_s=draw(st.integers(0, 86_400_000)) / 1000,
        labels=draw(st.dictionaries(label_texts, st.just("") | label_texts, max_size=4)),
        annotations=draw(st.dictionaries(label_texts, st.just("") | texts, max_size=4)),
        may_borrow=draw(st.booleans()),
        group=draw(st.just("") | words),
    )


@st.composite
def train_specs(draw: st.DrawFn) -> JobSpec:
    """Specs that the flags of `job train` and the job body of the service can express."""
    mode = draw(st.sampled_from([Mode.SINGLE, Mode.COLLECTIVE, Mode.PS]))

    def needs(gpu: int) -> Resources:
        cores, kib = draw(st.integers(1, 500)), draw(st.integers(1024, 2**30))
        return Resources(cores * 1000, kib * 1024, gpu)

    count = 1 if mode == Mode.SINGLE else draw(st.integers(1, 10_000))
    roles = [RoleSpec(Role.TRAINER, count, needs(draw(st.integers(0, 16))))]
    if mode == Mode.PS:
        roles.append(RoleSpec(Role.PSERVER, draw(st.integers(1, 100)), needs(0)))
    note = texts.filter(str.strip)
    notes = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "permission": st.just("group"),
                "algo-id": st.just("algo-1f"),
                "tags": note,
                "remark": note,
                "gpu-type": st.just("baidu/gpu_v100"),
                "code-uri": st.just("/pfs/c/home/a/x.tar.gz"),
                "launcher": st.sampled_from(["mpi", "slurm"]),
                "job-version": st.just("custom-framework"),
            },
        )
    )
    is_custom = "job-version" in notes
    runtime = draw(st.just("reg/i:1") if is_custom else st.sampled_from(["", "paddle-v2.4.1"]))
    names = env_names.filter(lambda name: "ugi" not in name.lower())
    return JobSpec(
        name=draw(st.text("ab_:. é-", min_size=1, max_size=20).filter(lambda t: t == t.strip())),
        mode=mode,
        roles=tuple(roles),
        entry=draw(texts.filter(str.strip)),
        cluster=draw(st.just("") | clusters),
        runtime=runtime,
        env=draw(st.dictionaries(names, st.just("") | texts, max_size=3)),
        priority=draw(st.sampled_from(Priority)),
        wall_time_s=draw(st.integers(0, 10**9)),
        annotations=notes,
        may_borrow=draw(st.booleans()),
        group=draw(st.just("") | clusters),
    )
