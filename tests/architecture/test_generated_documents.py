"""What the guides say about the code is what the code says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import contract_table  # noqa: E402
import generated  # noqa: E402

from paddlecloud.core import contract  # noqa: E402


def test_the_table_of_variables_is_current():
    text = contract_table.GUIDE.read_text(encoding="utf-8")
    assert text == contract_table.with_table(text), "run: make generate"


def test_every_variable_of_the_contract_is_in_the_table():
    shown = re.findall(r"^\| `(\w+)` \|", contract_table.table(), re.MULTILINE)
    assert sorted(shown) == sorted(row.name for row in contract.VARIABLES)


def test_every_setting_of_the_server_is_in_the_administration_guide():
    source = (ROOT / "src" / "paddlecloud" / "server" / "configuration.py").read_text()
    settings = set(re.findall(r"PADDLECLOUD_[A-Z_]+[A-Z]", source))
    guide = (ROOT / "docs" / "guides" / "administration.md").read_text()
    assert settings
    assert settings - set(re.findall(r"`(PADDLECLOUD_[A-Z_]+)`", guide)) == set()


def test_every_verb_is_in_the_guide_to_the_commands():
    from paddlecloud.cli.verbs import VERBS

    guide = (ROOT / "docs" / "guides" / "commands.md").read_text()
    shown = {verb for verb in VERBS if f"paddlecloud {verb}" in guide}
    assert set(VERBS) - shown == set()


def test_the_custom_resource_definitions_are_current():
    files = generated.definitions()
    assert len(files) == 3
    assert generated.stale(files) == []


def test_says_what_is_not_as_the_code_says(tmp_path):
    files = generated.definitions()
    first, second, third = files
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert generated.stale(files, tmp_path) == []
    (tmp_path / first).write_text(files[first].replace("Ready", "Rdy"))
    (tmp_path / second).unlink()
    (tmp_path / third).with_name("other.yaml").write_text("")
    assert generated.stale(files, tmp_path) == [
        f"{first} is not what the code says",
        f"{second} is missing",
        "deploy/crds/other.yaml is of no definition there is",
    ]
