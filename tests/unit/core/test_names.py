from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.core.names import (
    BadName,
    check_account_name,
    check_job_name,
    dns_label,
    from_dns_label,
    is_job_id,
    new_job_id,
    plain_job_name,
)

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

# Few letters, so that collisions would be met soon; surrogates and all else as well.
close_names = st.text(alphabet="aA0-._@é\0/", min_size=1, max_size=8)
any_names = st.text(st.characters(), min_size=1, max_size=90)
labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


# --- DNS labels ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("alice", "alice"),
        ("my-job-2", "my-job-2"),
        ("7", "7"),
        ("user1@gmail.com", "user1-gmail-com--1402e"),
        ("a.b@c", "a-b-c--12e40"),
        ("a_b@c", "a-b-c--15f40"),
        ("a--b", "a--b--12d2d"),
        ("@x", "0-x--040"),
        ("0@x", "0-x--140"),
        ("a.", "a---12e"),
        ("-", "0---02d"),
        ("MyJob", "0-y-ob--04d4a"),
        ("é", "0----0c3a9"),
        ("a" * 63, "a" * 63),
        ("a" * 57 + ".", "a" * 57 + "---12e"),  # 63 characters
    ],
)
def test_writes_a_label_that_can_be_read_back(name: str, label: str) -> None:
    assert dns_label(name) == label
    assert from_dns_label(label) == name


@given(close_names | any_names)
def test_gives_any_name_a_valid_label(name: str) -> None:
    assert LABEL.fullmatch(dns_label(name))


@given(close_names, close_names)
def test_never_gives_two_names_one_label(one: str, other: str) -> None:
    assert (dns_label(one) == dns_label(other)) == (one == other)


@given(st.lists(any_names, unique=True, max_size=30))
def test_keeps_many_names_apart(names: list[str]) -> None:
    assert len({dns_label(name) for name in names}) == len(names)


@given(close_names | any_names)
def test_reads_back_what_it_wrote_unless_it_is_a_hash(name: str) -> None:
    label = dns_label(name)
    if re.search(r"--2[0-9a-f]{40}$", label):
        with pytest.raises(BadName):
            from_dns_label(label)
    else:
        assert from_dns_label(label) == name


@given(labels)
def test_leaves_a_plain_label_alone(label: str) -> None:
    if "--" not in label:
        assert dns_label(label) == label


@given(labels)
def test_reads_only_labels_it_would_write(label: str) -> None:
    try:
        name = from_dns_label(label)
    except BadName:
        return
    assert dns_label(name) == label


def test_hashes_what_is_too_long() -> None:
    label = dns_label("x" * 64)
    assert re.fullmatch(r"x{20}--2[0-9a-f]{40}", label)
    assert label != dns_label("x" * 65)
    assert re.fullmatch(r"x{20}--2[0-9a-f]{40}", dns_label("x" * 58 + "."))


@pytest.mark.parametrize("bad", ["", "-a", "a-", "A", "a.b", "a" * 64, "a--", "ü"])
def test_refuses_to_read_what_is_no_label(bad: str) -> None:
    with pytest.raises(BadName):
        from_dns_label(bad)


@pytest.mark.parametrize(
    "made_up",
    [
        "a--1",  # no codes
        "a-b--12e2e",  # a code too many
        "a-b-c--12e",  # a code too few
        "a-b--161",  # the code of a plain letter
        "a-b--1ff",  # no UTF-8
        "a-b--02e",  # says a 0 was put in front; none was
        "a-b--3" + "2e",  # no such marker
        "x--2" + "0" * 40,  # a hash
    ],
)
def test_refuses_labels_no_name_has(made_up: str) -> None:
    with pytest.raises(BadName):
        from_dns_label(made_up)


def test_refuses_the_empty_name() -> None:
    with pytest.raises(BadName):
        dns_label("")


# --- job names -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "paddle-cluster-job", "Job7", "7", "a" * 63, "a--b"])
def test_accepts_job_names_of_generation_a(name: str) -> None:
    check_job_name(name, "A")


@pytest.mark.parametrize("name", ["a.b", "a_b", ".", "_"])
def test_refuses_dots_and_underscores_in_the_first_client_s_words(name: str) -> None:
    with pytest.raises(BadName, match=r"^jobname can not contain '\.' or '_'$"):
        check_job_name(name, "A")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is empty"),
        ("a" * 64, "64 characters"),
        ("-a", "begins and ends"),
        ("a-", "begins and ends"),
        ("a b", "letters a-z"),
        ("a/b", "letters a-z"),
        ("jöb", "letters a-z"),
        ("a\n", "letters a-z"),
    ],
)
def test_refuses_other_job_names_and_says_why(name: str, says: str) -> None:
    with pytest.raises(BadName, match=says):
        check_job_name(name, "A")


@given(st.text(min_size=1, max_size=70))
@settings(max_examples=200)
def test_every_accepted_job_name_is_one_safe_path_part(name: str) -> None:
    try:
        check_job_name(name, "A")
    except BadName:
        return
    assert name not in (".", "..")
    assert not set(name) & set("/\\\0 ")


@pytest.mark.parametrize("name", ["my_job:v1", "作业", "a b", "x" * 200])
def test_accepts_free_job_names_of_generation_b(name: str) -> None:
    check_job_name(name, "B")


@pytest.mark.parametrize("name", ["", " a", "a ", "a\nb", "a\0", "x" * 201])
def test_refuses_free_job_names_nobody_could_show(name: str) -> None:
    with pytest.raises(BadName):
        check_job_name(name, "B")


# --- account names ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["alice", "user1@gmail.com", "a+b@c.d", "Bob_2", "x" * 150, "王", "_root"]
)
def test_accepts_account_names(name: str) -> None:
    check_account_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".hidden",
        "-rf",
        "a/b",
        "a\\b",
        "a b",
        "a\0b",
        "a\nb",
        "alice\n",
        "a:b",
        "x" * 151,
        "王" * 100,  # 300 bytes: too long for a directory
        "e\u0301",  # é in two characters: looks like another account
        "\u212aim",  # the Kelvin sign, which looks like a K
    ],
)
def test_refuses_account_names_a_path_could_mistake(name: str) -> None:
    with pytest.raises(BadName):
        check_account_name(name)


# --- job ids ---------------------------------------------------------------------------------


@given(st.binary(min_size=8, max_size=8))
def test_makes_job_ids_of_eight_bytes(entropy: bytes) -> None:
    job_id = new_job_id(entropy)
    assert job_id == f"job-{entropy.hex()}"
    assert is_job_id(job_id)


@pytest.mark.parametrize("size", [0, 7, 9, 16])
def test_refuses_another_amount_of_randomness(size: int) -> None:
    with pytest.raises(ValueError):
        new_job_id(bytes(size))


@pytest.mark.parametrize(
    "text",
    ["", "job-", "job-4f1c09d2a7b35e6", "job-4f1c09d2a7b35e600", "job-4F1C09D2A7B35E60", "my-job"],
)
def test_knows_what_is_no_job_id(text: str) -> None:
    assert not is_job_id(text)
    assert not is_job_id("job-4f1c09d2a7b35e60\n")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a_b:1", "a-b-1-1f2e3d"),
        ("Wide Deep", "wide-deep-1f2e3d"),
        ("训练", "job-1f2e3d"),
        ("--x--", "x-1f2e3d"),
        ("a" * 56 + "-b", "a" * 56 + "-1f2e3d"),
    ],
)
def test_makes_a_plain_name_of_a_free_one(name: str, plain: str) -> None:
    assert plain_job_name(name, "1f2e3d") == plain
    check_job_name(plain, "A")
