"""`~/.paddle/config`: its three forms, their rules, overrides, and how a wrong file is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.sdk import config_writing, settings_file
from paddlecloud.sdk.config import DEFAULT_ENDPOINT, Profile, load_profile, read_config

FORM_1 = """\
datacenter1:
  username: user
  usercert: /path/to/user.pem
  userkey:  /path/to/user-key.pem
  endpoint: dc1.paddlepaddle.org
"""
FORM_2 = """\
datacenters:
- name: datacenter1
  active: false
  username: me
  password: one
  endpoint: http://one.example.org
- name: datacenter2
  active: true
  username: paddle@example.com
  password: 'se#cret: 1'
  endpoint: http://two.example.org//
"""
FORM_3 = """\
# written by hand
current-datacenter: b
datacenters:
  - name: a
    username: me
    password: 007
    endpoint: http://a.example.org
  - name: b
    username: me
    password: "with blank "
    usercert: /c.pem
    userkey: /k.pem
    endpoint: https://b.example.org:8443/cloud/
"""


@pytest.fixture
def path(isolated_home: Path) -> Path:
    folder = isolated_home / ".paddle"
    folder.mkdir()
    return folder / "config"


def profile_of(path: Path, text: str, **kwargs: str) -> Profile:
    path.write_text(text, encoding="utf-8")
    return load_profile(environ={}, path=str(path), **kwargs)


def test_form_1_uses_the_first_entry_over_tls(path: Path) -> None:
    profile = profile_of(path, FORM_1 + FORM_1.replace("datacenter1", "datacenter2"))
    assert (profile.name, profile.endpoint) == ("datacenter1", "https://dc1.paddlepaddle.org")
    assert (profile.usercert, profile.userkey) == ("/path/to/user.pem", "/path/to/user-key.pem")


def test_form_2_uses_the_active_entry(path: Path) -> None:
    profile = profile_of(path, FORM_2)
    assert (profile.name, profile.endpoint) == ("datacenter2", "http://two.example.org")
    assert (profile.username, profile.password) == ("paddle@example.com", "se#cret: 1")


def test_form_3_uses_the_current_entry(path: Path) -> None:
    profile = profile_of(path, FORM_3)
    assert (profile.name, profile.endpoint) == ("b", "https://b.example.org:8443/cloud")
    assert profile.password == "with blank "


def test_values_stay_the_text_that_was_written(path: Path) -> None:
    assert profile_of(path, FORM_3, datacenter="a").password == "007"


def test_a_single_entry_needs_no_active(path: Path) -> None:
    text = "datacenters:\n- name: x\n  endpoint: http://x\n"
    assert profile_of(path, text).name == "x"


def test_no_file_means_the_local_platform(path: Path) -> None:
    profile = load_profile(environ={}, path=str(path))
    assert (profile.endpoint, profile.token) == (DEFAULT_ENDPOINT, "")


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "---\n", "datacenters:\n"])
def test_an_empty_file_means_the_local_platform(path: Path, text: str) -> None:
    assert profile_of(path, text).endpoint == DEFAULT_ENDPOINT


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("datacenters:\n- name: a\n  active: true\n  endpoint: http://a\n"
         "- name: b\n  active: true\n  endpoint: http://b\n", 5, "at most one"),
        ("datacenters:\n- name: a\n  active: no\n  endpoint: http://a\n", 2, "active: true"),
        ("current-datacenter: c\ndatacenters:\n- name: a\n  endpoint: http://a\n", 1, "it has a"),
        ("datacenters:\n- name: a\n", 2, "endpoint"),
        ("datacenters:\n- endpoint: http://a\n", 2, "name"),
        ("datacenters:\n- name: a\n  endpiont: http://a\n", 3, "endpiont"),
        ("datacenters:\n- name: a\n  username: [your user name]\n  endpoint: http://a\n", 3,
         "username"),
        ("datacenters:\n- name: a\n  endpoint: ftp://a\n", 3, "http://"),
        ("datacenters:\n- name: a\n  active: perhaps\n  endpoint: http://a\n", 3, "true or false"),
        ("datacenters:\n- name: a\n  endpoint: http://a\n- name: a\n  endpoint: http://b\n", 4,
         "twice"),
        ("datacenters: yes\n", 1, "list"),
        ("endpoint: http://a\n", 1, "below"),
        ("a:\n\tendpoint: x\n", 2, "tab"),
        ("a:\n  endpoint: x\n    username: y\n", 3, "indented"),
        ("a:\n  endpoint: x\n  endpoint: y\n", 3, "twice"),
        ("a:\n  password: 'open\n", 2, "closed"),
        ("just words\n", 1, "key: value"),
        ("current-datacenter: a\n", 1, "datacenters"),
        ("a: &x\n  b: *x\n", 1, "nested too deeply"),
    ],
)  # fmt: skip
def test_refuses_a_malformed_file_by_name_and_line(
    path: Path, text: str, line: int, word: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        profile_of(path, text)
    assert f"{path}, line " in caught.value.message
    assert word in caught.value.message
    assert f"line {line}:" in caught.value.message


def test_never_shows_a_password_in_an_error(path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        profile_of(path, "a:\n  password: hidden: hidden\n")
    assert "quotes" in caught.value.message
    assert "hidden" not in caught.value.message


# --- more of YAML than the quick reader knows ------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'datacenters: [{name: a, endpoint: "http://a", password: 007}]\n',
        'datacenters:\n- name: a\n  endpoint: "http:\\x2f/a"\n  password: 007\n',
        "datacenters:\n- name: a\n  endpoint: |-\n    http://a\n  password: '0''0'\n",
        "---\ndatacenters:\n- {name: a, endpoint: 'http://a'}\n",
    ],
)
def test_reads_all_of_yaml_with_the_same_result(path: Path, text: str) -> None:
    assert profile_of(path, text).endpoint == "http://a"


def test_quick_and_full_reader_agree(path: Path) -> None:
    for text in (FORM_1, FORM_2, FORM_3):
        assert settings_file.read(text) == settings_file._read_with_pyyaml(text)


# --- overrides -------------------------------------------------------------------------------


def test_the_environment_overrides_endpoint_and_token(path: Path) -> None:
    path.write_text(FORM_3)
    env = {"PADDLECLOUD_CONFIG": str(path), "PADDLECLOUD_TOKEN": "t"}
    assert load_profile(environ=env).token == "t"
    profile = load_profile(environ={**env, "PADDLECLOUD_ENDPOINT": "http://other:1/"})
    assert (profile.endpoint, profile.token) == ("http://other:1", "t")


def test_never_sends_credentials_to_another_endpoint(path: Path) -> None:
    path.write_text(FORM_3)
    env = {"PADDLECLOUD_CONFIG": str(path), "PADDLECLOUD_ENDPOINT": "http://evil.example.org"}
    profile = load_profile(environ=env)
    assert (profile.password, profile.token, profile.usercert) == ("", "", "")


def test_an_endpoint_that_is_configured_keeps_its_credentials(path: Path) -> None:
    path.write_text(FORM_3)
    env = {"PADDLECLOUD_CONFIG": str(path), "PADDLECLOUD_ENDPOINT": "http://a.example.org/"}
    assert load_profile(environ=env).password == "007"


def test_refuses_a_senseless_endpoint_by_the_name_of_its_variable(path: Path) -> None:
    with pytest.raises(InvalidInput, match="PADDLECLOUD_ENDPOINT"):
        load_profile(environ={"PADDLECLOUD_ENDPOINT": "gopher://x"}, path=str(path))


def test_a_profile_never_shows_its_secrets() -> None:
    shown = repr(Profile("a", "http://a", username="u", password="hidden", token="pct_hidden"))
    assert "hidden" not in shown


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["plain", "007", "yes", "a: b", "#x", "it's", 'q"q\\', "[x]", "é"]
)
def test_writes_what_it_reads_back(path: Path, value: str) -> None:
    config_writing.save_profile(
        str(path), Profile("local", "http://127.0.0.1:8000", username="u", password=value)
    )
    profile = load_profile(environ={}, path=str(path))
    assert (profile.username, profile.password) == ("u", value)


def test_keeps_other_datacenters_and_a_copy(path: Path) -> None:
    path.write_text(FORM_3)
    config_writing.save_profile(str(path), Profile("local", "http://127.0.0.1:8000", token="t"))
    config = read_config(str(path))
    assert config is not None
    assert [p.name for p in config.profiles] == ["a", "b", "local"]
    assert config.current is not None
    assert config.current.name == "local"
    assert Path(str(path) + ".bak").read_text() == FORM_3
    assert config_writing.use_datacenter(str(path), "a").password == "007"
    assert load_profile(environ={}, path=str(path)).name == "a"


@pytest.mark.needs("linux")
def test_written_files_are_for_their_owner_only(path: Path) -> None:
    config_writing.save_profile(str(path), Profile("local", "http://127.0.0.1:8000", token="t"))
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_refuses_an_unknown_datacenter_and_names_those_there_are(path: Path) -> None:
    path.write_text(FORM_3)
    with pytest.raises(InvalidInput) as caught:
        config_writing.use_datacenter(str(path), "zzz")
    assert caught.value.hint == "it has a, b"
