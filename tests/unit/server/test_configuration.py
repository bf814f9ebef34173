"""Settings: from the environment, typed, refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.core.errors import InvalidInput
from paddlecloud.server.configuration import Cluster, Storage, load
from paddlecloud.server.database import settings_for


def test_defaults_are_safe() -> None:
    chosen = load({"PADDLECLOUD_HOME": "/x"})
    assert (chosen.listening.host, chosen.listening.port) == ("127.0.0.1", 8000)
    assert chosen.listening.is_loopback
    assert not chosen.listening.tls
    assert chosen.storage == Storage(Path("/x"), "")
    assert (chosen.engines.kind, chosen.engines.cluster) == ("local", "local")


def test_reads_every_variable() -> None:
    chosen = load(
        {
            "PADDLECLOUD_HOME": "/x",
            "PADDLECLOUD_HOST": "0.0.0.0",
            "PADDLECLOUD_PORT": "0",
            "PADDLECLOUD_TLS": "proxy",
            "PADDLECLOUD_PUBLIC_URL": "https://cloud.example/",
            "PADDLECLOUD_ALLOWED_HOSTS": "a, b,",
            "PADDLECLOUD_ENGINE": "fake",
            "PADDLECLOUD_CLUSTER": "dc1",
            "PADDLECLOUD_ENGINE_TIMEOUT_S": "0.5",
            "PADDLECLOUD_MAX_PACKAGE_BYTES": "10",
            "PADDLECLOUD_PFS_URL": "https://files.example/",
            "PADDLECLOUD_PFS_SECRET": "1",
            "PADDLECLOUD_STORAGE_BYTES": "1Ki",
            "PADDLECLOUD_STORAGE_FILES": "1000",
        }
    )
    assert (chosen.files.url, chosen.files.knows_secret) == ("https://files.example", True)
    assert (chosen.files.storage_bytes, chosen.files.storage_files) == (1024, 1000)
    assert not chosen.listening.is_loopback
    assert chosen.listening.behind_tls_proxy
    assert chosen.listening.public_url == "https://cloud.example"
    assert chosen.listening.allowed_hosts == ("a", "b")
    assert (chosen.engines.cluster, chosen.engines.answer_within_s) == ("dc1", 0.5)
    assert chosen.limits.package_bytes == 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PADDLECLOUD_PORT", "65536"),
        ("PADDLECLOUD_PORT", "http"),
        ("PADDLECLOUD_TLS", "yes"),
        ("PADDLECLOUD_ENGINE_TIMEOUT_S", "0"),
        ("PADDLECLOUD_MAX_FILE_BYTES", "-1"),
        ("PADDLECLOUD_PFS_PORT", "70000"),
        ("PADDLECLOUD_PFS_URL", "cloud.example:8800"),
        ("PADDLECLOUD_PFS_SECRET", "yes"),
        ("PADDLECLOUD_STORAGE_BYTES", "100GB"),
        ("PADDLECLOUD_STORAGE_FILES", "many"),
        ("PADDLECLOUD_KUBE_PFS_VOLUME", "nfs"),
        ("PADDLECLOUD_KUBE_PFS_VOLUME", '{"name": "x", "emptyDir": {}}'),
        ("PADDLECLOUD_KUBE_NAMESPACE_PREFIX", "Team_"),
        ("PADDLECLOUD_KUBE_GPU", "nvidia"),
        ("PADDLECLOUD_KUBE_POD_SECURITY", "strict"),
        ("PADDLECLOUD_KUBE_USER", "oidc"),
        ("PADDLECLOUD_KUBE_ARCHIVE", "yes"),
    ],
)
def test_refuses_a_bad_value_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load({name: value})
    assert refused.value.field == name
    assert value in refused.value.message


def test_reads_how_jobs_are_written_for_a_cluster() -> None:
    assert load({}).kubernetes == Cluster()
    chosen = load(
        {
            "PADDLECLOUD_ENGINE": "kubernetes",
            "PADDLECLOUD_KUBECONFIG": "/etc/kube",
            "PADDLECLOUD_KUBE_CONTEXT": "prod",
            "PADDLECLOUD_KUBE_IMAGE": "you/paddle:1",
            "PADDLECLOUD_KUBE_PFS_VOLUME": '{"nfs": {"server": "files", "path": "/pfs"}}',
            "PADDLECLOUD_KUBE_NAMESPACE_PREFIX": "team-",
            "PADDLECLOUD_KUBE_GPU": "amd.com/gpu",
            "PADDLECLOUD_KUBE_POD_SECURITY": "restricted",
            "PADDLECLOUD_KUBE_USER": "oidc:{account}",
            "PADDLECLOUD_KUBE_ARCHIVE": "0",
        }
    )
    assert chosen.engines.kind == "kubernetes"
    assert chosen.kubernetes == Cluster(
        Path("/etc/kube"),
        "prod",
        "you/paddle:1",
        {"nfs": {"server": "files", "path": "/pfs"}},
        "team-",
        "amd.com/gpu",
        "restricted",
        "oidc:{account}",
        False,
    )


def test_embedded_is_another_word_for_local() -> None:
    assert load({"PADDLECLOUD_ENGINE": "embedded"}).engines.kind == "local"


def test_postgresql_is_one_setting() -> None:
    url = "postgres://us%40er:p%2Fw@db.example:5433/cloud?sslmode=require"
    assert settings_for(Storage(Path("/x"), url)) == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "cloud",
        "USER": "us@er",
        "PASSWORD": "p/w",
        "HOST": "db.example",
        "PORT": "5433",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": "10", "sslmode": "require"},
    }


@pytest.mark.parametrize("url", ["mysql://x/y", "postgres://host", "nonsense"])
def test_refuses_another_database(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        settings_for(Storage(Path("/x"), url))
    assert "postgres://" in refused.value.message
