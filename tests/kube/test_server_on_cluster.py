"""The whole platform on a cluster: the real command line, server, operator and API server.

Nodes only pretend, so no job ever prints anything; test_server_on_real_node has pods that do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.controller import manifests, platform_manifests
from paddlecloud.controller.platform_manifests import Site
from tests.kube.platform import HOME, Platform, platform_of_alice
from tests.kube.running import Cluster, until
from tests.server.running import Caller
from tests.unit.forms.strict_pods import dangers
from tests.unit.forms.test_pod_allowance import HOSTILE, _with
from tests.unit.forms.test_tenant_objects import TRAINING, _paddle_job

pytestmark = [pytest.mark.e2e, pytest.mark.needs("kube")]

SITE = "platform-rights"
RIGHTS = (
    *("ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)


@pytest.fixture(scope="module")
def limited(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A kubeconfig with the rights the manifests give to the server, and no others."""
    site = Site(SITE, "none:1")
    rights = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SITE}},
        *(one for one in platform_manifests.objects(site) if one["kind"] in RIGHTS),
    ]
    text = manifests.as_yaml(rights)
    cluster.kubectl("apply", "-f", "-", text=text)
    try:
        token = cluster.kubectl("-n", SITE, "create", "token", platform_manifests.SERVER).strip()
        config = json.loads(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = tmp_path_factory.mktemp("rights") / "kubeconfig"
        path.write_text(json.dumps(config))
        yield path
    finally:
        cluster.kubectl("delete", "-f", "-", "--wait=false", text=text)


@pytest.fixture(scope="module")
def platform(
    cluster: Cluster, limited: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    folder = tmp_path_factory.mktemp("platform")
    state, image = folder / "state", ("--image", "demo:v1")
    # There are no logs that pods could be kept for.
    settings = {"PADDLECLOUD_KUBE_ARCHIVE": "0"}
    with platform_of_alice(cluster, limited, folder, state, *image, **settings) as made:
        yield made


def _submit(platform: Platform, name: str, *words: str) -> None:
    memory = ("-memory", "1Gi", "-psmemory", "1Gi", "-entry", "python train.py")
    platform.run("submit", "-jobname", name, *words, *memory, "package")


def _finish(platform: Platform) -> None:
    for word in ("worker", "trainer"):
        mark = ("-l", f"paddle-res-type={word}", "pretend/complete-after=0s", "--overwrite")
        platform.kubectl("annotate", "pods", *mark)


def test_a_job_lives_on_the_cluster_from_submit_to_rerun(platform: Platform) -> None:
    _submit(platform, "wide", "-p", "2", "-pservers", "1")
    platform.run("wait", "--for", "running", "--timeout", "60s", "wide")
    job = platform.json("describe", "wide")
    assert (job["phase"], job["roles"]["trainer"]["running"]) == ("Running", 2)
    shown = platform.kubectl("get", "tj,pdj", "--no-headers")
    # What the first client can say is an object of its time.
    assert shown.startswith(f"trainingjob.paddlepaddle.org/wide-{job['id'].split('-')[1][:8]} ")
    assert "wide" in platform.run("get", "jobs")
    addresses = [row["address"] for row in platform.json("get", "workers", "wide")["items"]]
    assert len(set(addresses)) == 3
    assert platform.run("logs", "wide").count("=" * 26) == 2 * 3  # heads, and nothing below them
    for pod in platform.objects("pods"):
        assert pod["spec"]["serviceAccountName"] == "paddlecloud-job"
        assert pod["spec"]["automountServiceAccountToken"] is False

    platform.run("kill", "--wait", "--reason", "enough", "wide")
    job = platform.json("describe", "wide")
    assert (job["phase"], job["reason"]) == ("Killed", "enough")
    platform.run("rerun", "wide")
    platform.run("wait", "--for", "running", "--timeout", "60s", "wide")
    _finish(platform)
    platform.run("wait", "--timeout", "60s", "wide")
    reasons = [event["reason"] for event in platform.json("events", "wide")["items"]]
    assert reasons[0] == "Submitted"
    assert {"KillAsked", "Killed", "Rerun", "Running", "Succeeded"} <= set(reasons)
    platform.run("kill", "-rm", "wide")
    until(lambda: not platform.objects("tj,pdj"), "its objects are gone")


def test_a_running_job_grows_and_shrinks(platform: Platform) -> None:
    size = ("-p", "2", "-min_instance", "1", "-max_instance", "3")
    _submit(platform, "grows", "--mode", "collective", *size)
    platform.run("wait", "--for", "running", "--timeout", "60s", "grows")

    def has(wanted: int) -> bool:
        count = platform.json("describe", "grows")["roles"]["trainer"]
        pods = [pod["metadata"]["name"] for pod in platform.objects("pods")]
        left = sorted(name.rsplit("-", 1)[1] for name in pods if name.startswith("grows"))
        return bool(
            (count["wanted"], count["running"]) == (wanted, wanted)
            and left == [str(index) for index in range(wanted)]  # the last ones leave first
        )

    platform.run("scale", "grows", "3")
    until(lambda: has(3), "it grew")
    platform.run("scale", "grows", "1")
    until(lambda: has(1), "it shrank")
    platform.run("scale", "grows", "4", code=2)
    platform.run("kill", "--wait", "grows")


def test_a_job_made_with_kubectl_is_listed_and_killed(platform: Platform) -> None:
    _submit(platform, "first", "--mode", "single")  # its namespace is there now
    platform.run("kill", "-rm", "first")
    body = _paddle_job({"spec": {"containers": [{"name": "c", "image": "demo:v1"}]}})
    platform.kubectl("apply", "-f", "-", text=json.dumps(body))
    until(lambda: "wide" in platform.run("get", "jobs"), "it is listed")
    platform.run("wait", "--for", "running", "--timeout", "60s", "wide")
    assert "made with kubectl" in platform.run("events", "wide")
    platform.run("kill", "--wait", "wide")
    assert platform.kubectl("get", "pdj/wide", "-o", "jsonpath={.status.phase}") == "Terminated"
    platform.run("kill", "-rm", "wide")
    gone = ("get", "pdj/wide", "--ignore-not-found", "-o", "name")
    until(lambda: not platform.kubectl(*gone), "the object is gone")


def test_a_running_job_says_which_of_its_nodes_fell_silent(platform: Platform) -> None:
    _submit(platform, "alone", "--mode", "single")
    platform.run("wait", "--for", "running", "--timeout", "60s", "alone")
    (node,) = {
        pod["spec"]["nodeName"]
        for pod in platform.objects("pods")
        if pod["metadata"]["name"].startswith("alone")
    }

    def hear(status: str) -> None:
        condition = {"type": "Ready", "status": status, "reason": "test"}
        text = json.dumps({"status": {"conditions": [condition]}})
        change = ("patch", "node", node, "--subresource=status", "--type=strategic", "-p", text)
        platform.cluster.kubectl(*change)

    def reason() -> str:
        found: str = platform.json("describe", "alone")["reason"]
        return found

    platform.cluster.kubectl("annotate", "node", node, "kwok.x-k8s.io/node-")
    try:
        hear("Unknown")
        wanted = f"trainer-0 its node {node} does not answer"
        until(lambda: reason() == wanted, "the silent node is named")
        hear("True")
        until(lambda: reason() == "", "nothing is wrong any more")
    finally:
        platform.cluster.kubectl("annotate", "node", node, "kwok.x-k8s.io/node=fake")
    told = platform.json("events", "alone")["items"]
    assert [one["message"] for one in told if one["reason"] == "NodeLost"] == [
        f"its node {node} does not answer"
    ]
    platform.run("kill", "--wait", "alone")


def test_a_job_nobody_looks_after_says_so(platform: Platform) -> None:
    """The operator of these tests looks after alice's namespace alone."""
    admin = platform.caller
    assert admin.post("/api/v2/accounts", {"name": "bob"}).status == 201
    token = admin.post("/api/v2/accounts/bob/token").json["token"]
    bob = Caller(platform.port, f"Token {token}")
    try:
        bob.submit("lonely", "python train.py")
        until(lambda: "no operator" in bob.get("/api/v2/jobs/lonely").json["reason"], "it says so")
        notes = admin.get("/api/v2/status").json["notes"]
        assert "1 job waited for an operator in vain: start `paddlecloud controller`" in notes
    finally:
        platform.cluster.kubectl("delete", "namespace", "paddlecloud-bob", "--wait=false")


def test_images_are_pulled_with_a_login_of_the_account(platform: Platform) -> None:
    login = ("-username", "alice", "-password", "s3cret", "-server", "hub.example.com")
    platform.run("registry", "add", "-name", "hub", *login)
    _submit(platform, "pulls", "--mode", "single", "-registry", "hub")
    platform.run("wait", "--for", "running", "--timeout", "60s", "pulls")
    secret = json.loads(platform.kubectl("get", "secret/pcloud-registry-hub", "-o", "json"))
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    (pod,) = [
        pod for pod in platform.objects("pods") if pod["metadata"]["name"].startswith("pulls")
    ]
    assert {"name": "pcloud-registry-hub"} in pod["spec"]["imagePullSecrets"]
    assert "s3cret" not in json.dumps([pod, platform.objects("tj,pdj")])
    platform.run("kill", "--wait", "pulls")
    platform.run("delete", "registry", "hub")
    gone = ("get", "secret", "--ignore-not-found", "-o", "name", "pcloud-registry-hub")
    until(lambda: not platform.kubectl(*gone), "the secret is gone")


def test_the_server_has_no_rights_beyond_accounts_namespaces(
    platform: Platform, limited: Path
) -> None:
    _submit(platform, "here", "--mode", "single")
    platform.run("kill", "--wait", "here")
    server = Cluster(platform.cluster.state, limited)

    def denied(*words: str) -> str:
        return server.kubectl(*words, ok=False)

    made = ("create", "secret", "generic", "x", "--from-literal=a=b")
    policy = "only where the namespace begins with paddlecloud-"
    until(lambda: policy in denied("-n", "default", *made), "the policy is in force")
    assert policy in denied("create", "namespace", "other")
    assert policy in denied("label", "namespace", "default", "a=b")
    assert "forbidden" in denied("get", "secrets", "-A")
    assert "forbidden" in denied("-n", HOME, "get", "secret", "default")
    assert "forbidden" in denied("-n", HOME, "delete", "pods", "--all")
    binding = ("create", "rolebinding", "x", "--user=alice")
    assert "forbidden" in denied("-n", HOME, *binding, "--clusterrole=cluster-admin")
    server.kubectl("-n", HOME, *binding, "--clusterrole=paddlecloud-user")
    platform.kubectl("delete", "rolebinding", "x")
    assert "forbidden" not in platform.log


def test_hostile_objects_are_refused_and_nothing_of_them_reaches_the_cluster(
    platform: Platform,
) -> None:
    before = platform.objects("tj,pdj")
    for path, value, field in HOSTILE:
        refused = platform.caller.post("/api/v1/trainingjobs/", _paddle_job(_with(path, value)))
        assert refused.status == 400, field
        named = [fault["field"] for fault in refused.json["faults"]]
        assert any(field.removeprefix("template.") in one for one in named), field
    for change in (
        {"namespace": "kube-system"},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]},
        {"labels": {"paddlepaddle.org/job-id": "job-0000000000000000"}},
    ):
        body = _paddle_job(_with(("spec", "imagePullSecrets"), []), **change)
        assert platform.caller.post("/api/v1/trainingjobs/", body).status == 400
    assert platform.objects("tj,pdj") == before


def test_an_object_that_is_allowed_makes_pods_without_any_danger(platform: Platform) -> None:
    answer = platform.caller.post("/api/v1/trainingjobs/", TRAINING)
    assert answer.status == 200, answer.body
    platform.run("wait", "--for", "running", "--timeout", "60s", "fit")
    (made,) = [one for one in platform.objects("tj") if one["metadata"]["name"].startswith("fit")]
    assert made["spec"]["trainer"]["entrypoint"] == TRAINING["spec"]["trainer"]["entrypoint"]
    pods = [pod for pod in platform.objects("pods") if pod["metadata"]["name"].startswith("fit")]
    assert len(pods) == 3
    for pod in pods:
        assert pod["metadata"]["namespace"] == HOME
        container, *others = pod["spec"]["containers"]
        assert others == []
        mounts = container["volumeMounts"]  # /trainer_id and /trainer_count are the operator's
        container["volumeMounts"] = [one for one in mounts if one["name"] != "paddlecloud-files"]
        # The run's own token, which the server puts beside what the tenant said.
        own = [one for one in container.pop("envFrom") if "secretRef" in one]
        assert [one["secretRef"]["name"].endswith(".env") for one in own] == [True]
        spec = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
        ours = ("paddlecloud-peers", "paddlecloud-runtime")  # mounts of the operator's
        found = dangers({"spec": spec})
        assert [one for one in found if not any(name in one for name in ours)] == []
        kinds = {kind for volume in pod["spec"]["volumes"] for kind in volume if kind != "name"}
        assert kinds <= {"emptyDir", "configMap", "downwardAPI"}
    platform.run("kill", "--wait", "fit")
