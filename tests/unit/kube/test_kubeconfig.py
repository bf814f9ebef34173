from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.kube import kubeconfig


def written(folder: Path, user: dict, cluster: dict | None = None) -> Path:
    path = folder / "config"
    body = {
        "clusters": [
            {"name": "c", "cluster": {"server": "https://api.test:6443/prefix", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "lost", "context": {"cluster": "none", "user": "u"}},
        ],
        "current-context": "here",
    }
    path.write_text(json.dumps(body))
    return path


def test_reads_where_and_who(tmp_path):
    (tmp_path / "ca.crt").write_bytes(b"CA")
    data = base64.b64encode(b"KEY").decode()
    path = written(
        tmp_path,
        {"token": "t", "client-key-data": data},
        {"certificate-authority": "ca.crt"},
    )
    access = kubeconfig.from_file(path)
    assert (access.host, access.port, access.path) == ("api.test", 6443, "/prefix")
    assert (access.namespace, access.authority, access.key) == ("team", b"CA", b"KEY")
    assert access.headers() == {"Authorization": "Bearer t"}


def test_reads_a_token_file_anew(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("one\n")
    access = kubeconfig.from_file(written(tmp_path, {"tokenFile": str(tmp_path / "token")}))
    assert access.headers()["Authorization"] == "Bearer one"
    (tmp_path / "token").write_text("two\n")
    assert access.headers()["Authorization"] == "Bearer one"
    monkeypatch.setattr(kubeconfig, "TOKEN_REREAD_S", 0.0)
    assert access.headers()["Authorization"] == "Bearer two"


def test_asks_an_exec_plug_in(tmp_path):
    answer = json.dumps({"status": {"token": "minted"}})
    command = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", f"import os; assert os.environ['A'] == 'b'; print('{answer}')"],
        "env": [{"name": "A", "value": "b"}],
    }
    access = kubeconfig.from_file(written(tmp_path, {"exec": command}))
    assert access.headers() == {"Authorization": "Bearer minted"}


def test_uses_the_account_of_its_pod(tmp_path, monkeypatch):
    for name, text in (("token", "t"), ("namespace", "ns"), ("ca.crt", "CA")):
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    access = kubeconfig.from_pod(tmp_path)
    assert (access.host, access.port, access.namespace) == ("10.0.0.1", 443, "ns")
    assert access.headers() == {"Authorization": "Bearer t"}


def test_says_that_this_is_no_pod(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NotFound) as caught:
        kubeconfig.from_pod(tmp_path)
    assert "--kubeconfig FILE" in caught.value.hint


def test_names_what_a_file_lacks(tmp_path):
    with pytest.raises(NotFound):
        kubeconfig.from_file(tmp_path / "none")
    with pytest.raises(InvalidInput, match="clusters: none"):
        kubeconfig.from_file(written(tmp_path, {}), "lost")
    (tmp_path / "config").write_text("a: [")
    with pytest.raises(InvalidInput, match="is not YAML"):
        kubeconfig.from_file(tmp_path / "config")
    (tmp_path / "config").write_text("17")
    with pytest.raises(InvalidInput, match="is not a kubeconfig"):
        kubeconfig.from_file(tmp_path / "config")
