"""Every guide shows what really happens: its commands are typed, its output compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from transcripts import Document, Reader, any_account, differences, kinds_of  # noqa: E402

from paddlecloud.core.names import check_account_name  # noqa: E402

ON_A_CLUSTER = [ROOT / "docs" / "guides" / "kubernetes.md"]  # by tests/kube/test_guide.py
GUIDES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if "```console" in path.read_text() and path not in ON_A_CLUSTER
]


@pytest.mark.slow
@pytest.mark.paddle
@pytest.mark.needs("bubblewrap", "cgroup")  # `up` says what it lacks, which no guide shows
@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_shows_what_happens(guide):
    assert "\n".join(differences(Document.read(guide))) == ""


def test_there_are_guides_to_check():
    assert "quickstart" in [guide.stem for guide in GUIDES]


def test_a_wrong_word_is_a_difference():
    shown = kinds_of("job-0123456789abcdef Running 3s")
    assert shown == kinds_of("job-fedcba9876543210   Running   12s")
    assert shown != kinds_of("job-0123456789abcdef Failed 3s")


def test_a_document_is_written_as_it_was_read(tmp_path):
    text = "# T\n\n```console\n$ echo a \\\n  b\na b\n$ true\n```\n\n```\n$ not run\n```\n"
    path = tmp_path / "d.md"
    path.write_text(text)
    document = Document.read(path)
    assert [step.command for step in document.steps] == ["echo a \\\n  b", "true"]
    document.write()
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("one", "another"),
    [
        ('  "cpu": "8",', '  "cpu": "64",'),
        ("free  8 of 8 cpu, 23Gi of 23Gi", "free  16 of 32 cpu, 5.5Gi of 64Gi"),
        ('"at": "2026-11-16T00:54:54.616Z"', '"at": "2027-01-01T10:00:00.001Z"'),
        ("revision: 16", "revision: 7"),
        ("2 needed, 0 free. greedy (alice) holds 8.", "2 needed, 0 free. greedy (alice) holds 64."),
    ],
)
def test_what_differs_from_run_to_run_is_no_difference(one, another):
    assert kinds_of(one) == kinds_of(another)


def test_a_reader_has_another_name_each_time_and_the_document_knows_one(tmp_path):
    names = {any_account() for _ in range(50)}
    assert len(names) > 40
    for name in names:
        check_account_name(name)
    reader = Reader(tmp_path, account="aq.7w")
    assert reader.type("echo /pfs/local/home/$LOGNAME in aq-7w--12e") == [
        "/pfs/local/home/alice in alice"
    ]


def test_a_reader_has_the_environment_of_a_new_login(tmp_path, monkeypatch):
    monkeypatch.setenv("OUT", "/somewhere")
    monkeypatch.setenv("PADDLECLOUD_HOME", "/somewhere")
    names = Reader(tmp_path).type("env -0 | tr '\\0' '\\n' | cut -d= -f1")
    assert set(names) - {"_", "SHLVL", "PWD"} == {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "PADDLECLOUD_PORT")
    }


def test_what_a_reader_leaves_is_not_left_in_the_checkout(tmp_path):
    Reader(tmp_path).type("mkdir out-of-a-test && touch examples/out-of-a-test")
    assert not (ROOT / "out-of-a-test").exists()
    assert not (ROOT / "examples" / "out-of-a-test").exists()


@pytest.mark.parametrize("guide", [*GUIDES, *ON_A_CLUSTER], ids=lambda path: path.stem)
def test_no_guide_types_the_name_of_an_account_nobody_has(guide):
    typed = [step.command for step in Document.read(guide).steps]
    wrong = [
        line for line in typed if "home/alice" in line or "$OUT" in line.replace("$OUTPUT", "")
    ]
    assert wrong == []


def test_a_reader_finds_no_secret_and_no_progress(tmp_path):
    reader = Reader(tmp_path)
    printed = reader.type("echo starting the platform ...; echo pct_abc-D_1; echo 127.0.0.1:8000")
    assert printed == ["pct_...", "127.0.0.1:8000"]
