"""config.ini in every shape seen, and what never leaves this machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.config_ini import ACTED_ON, Config, is_secret, parse, render, shown
from paddlecloud.forms.faults import FaultList
from tests.unit.strategies import env_names, texts

SEEN = '''#!/usr/bin/env python
"""
the job's configuration: fs_ugi="in,a docstring"
"""
storage_type = "hdfs"
fs_name=hdfs://host:9000   # the cluster
fs_ugi = "alice,hunter2"
train_data_path="/pfs/local/home/alice/data/part-*"
output_path = /pfs/local/home/alice/out
force_reuse_output_path = True

# FLAGS
FLAGS_eager_delete_tensor_gb=0.0
GLOG_v=3
NCCL_DEBUG = "INFO"
my_own = "a # b"
empty =
'''


def read(text: str) -> Config:
    faults = FaultList()
    config = parse(text, faults)
    faults.raise_if_any()
    return config


def test_reads_a_file_as_they_are_written() -> None:
    config = read(SEEN)
    assert config.env == {
        "storage_type": "hdfs",
        "fs_name": "hdfs://host:9000",
        "train_data_path": "/pfs/local/home/alice/data/part-*",
        "output_path": "/pfs/local/home/alice/out",
        "force_reuse_output_path": "True",
        "FLAGS_eager_delete_tensor_gb": "0.0",
        "GLOG_v": "3",
        "NCCL_DEBUG": "INFO",
        "my_own": "a # b",
        "empty": "",
    }
    assert config.held_back == ("fs_ugi",)
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  A = 1  ", "1"),
        ("A\t=\t1", "1"),
        ("A=x=y", "x=y"),
        ("A=a b", "a b"),
        ("A=#all", ""),
        ("A=a#b", "a#b"),
        ("A=a #b", "a"),
        ('A="a"', "a"),
        ("A='a'", "a"),
        ('A="a" # b', "a"),
        ('A=""', ""),
        ('A="say \\"hi\\""', 'say "hi"'),
        ('A="a\\nb"', "a\nb"),
        ('A="\\d"', "\\d"),
        ('A=r"\\n"', "\\n"),
        ('A=u"é"', "é"),
        ("A=1\r", "1"),
        ("\ufeffA=1", "1"),
        ("A=1\nA=2", "2"),
        ("cluster_config(\n  A='1',\n)", "1"),
        ("cluster_config(A='1', )", "1"),
        ("cluster_config(\n  A = 1,\n)", "1"),
        ('"""one line"""\nA=1', "1"),
        ("'''\nA=9\n'''\nA=1", "1"),
        ("; old comment\nA=1", "1"),
    ],
)
def test_reads_a_value(line: str, value: str) -> None:
    assert read(line).env == {"A": value}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A=1\nfs_ugi: alice,hunter2", "line 2: is not key = value"),
        ('fs_ugi="alice,hunter2', "line 1: the quote is not closed"),
        ('fs_ugi="a" hunter2', "line 1: has text after the closing quote"),
        ("\n\n2bad=hunter2", "line 3: must be named with letters"),
        ("a.b=hunter2", "line 1: must be named with letters"),
        ("A=\0hunter2", "line 1: contains a NUL"),
        ("A=" + "x" * (1 << 20), "is larger than 1 MiB"),
    ],
)
def test_refuses_a_line_by_number_and_never_shows_it(text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(text)
    (fault,) = caught.value.faults
    assert fault.field == "--job-conf"
    assert says in fault.problem
    assert "hunter2" not in str(caught.value) + fault.value


def test_names_every_bad_line_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read("x\nA=1\ny\n")
    assert len(caught.value.faults) == 2


def test_says_what_it_does_with_a_path_and_what_it_cannot() -> None:
    notes = read("train_data_path=/pfs/local/home/a/d\noutput_path=hdfs:/x\nmount_afs=true").notes
    assert f"train_data_path: {ACTED_ON['train_data_path']}" in notes
    assert any(note.startswith("output_path: only paths under /pfs") for note in notes)
    assert any(note.startswith("mount_afs: AFS is not mounted") for note in notes)


def test_lines_of_python_and_sections_are_passed_over() -> None:
    config = read("import os\nfrom a import b\n[main]\nA=1")
    assert config.env == {"A": "1"}
    assert len(config.notes) == 3


@pytest.mark.parametrize(
    "name", ["fs_ugi", "FS_UGI", "output_fs_ugi", "password", "MY_TOKEN", "user_sk", "access_key"]
)
def test_knows_a_secret_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert shown({name: "x"}) == {name: "******"}


@pytest.mark.parametrize("name", ["task", "fs_name", "FLAGS_x", "PLUGIN"])
def test_other_names_are_shown(name: str) -> None:
    assert shown({name: "x"}) == {name: "x"}


@given(st.dictionaries(env_names.filter(lambda name: "ugi" not in name.lower()), texts))
def test_reads_back_what_it_wrote(env: dict[str, str]) -> None:
    assert read(render(env)).env == env


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    parse(text, FaultList())


@pytest.mark.parametrize(
    "text",
    [
        'cluster_config(fs_name="hdfs://a:1", fs_ugi="u,hunter2", port=7164, save_dir=\'a, b=c\')',
        "cluster_config(\n  fs_name='hdfs://a:1', fs_ugi='u,hunter2',\n"
        '  port = 7164, save_dir="a, b=c",  # x, y=1\n)',
        'cluster_config(fs_name="hdfs://a:1",fs_ugi=u,hunter2,port=7164,\nsave_dir="a, b=c")',
    ],
)
def test_reads_several_arguments_of_a_call_on_one_line(text: str) -> None:
    config = read(text)
    assert config.env == {"fs_name": "hdfs://a:1", "port": "7164", "save_dir": "a, b=c"}
    assert config.held_back == ("fs_ugi",)
