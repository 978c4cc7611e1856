"""The chart as Helm renders it: commands that there are, certificates, secrets by reference, nothing as root."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from unit.deploy.test_deploy_files import CHART, parsed

from tailrace.assembly.parts import READY_BESIDES
from tailrace.runtime.config import WorkerConfig

HOW = "go install helm.sh/helm/v3/cmd/helm@latest"
ISSUED = ["--set", "certificates.issuer.name=ca"]
DATABASE = ["--set", "database.url=postgresql://tailrace@db:5432/t", "--set", "database.secret.name=db"]


def helm(*options: str, values: str = "") -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm", path=os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / "go" / "bin")]))
    if program is None:
        pytest.skip(f"needs helm: {HOW}")
    command = [program, "template", "shop", str(CHART), "--kube-version", "1.30.0", "--values", "-", *options]
    return subprocess.run(command, input=values, capture_output=True, text=True, timeout=60, check=False)


def rendered(*options: str, values: str = "") -> dict[tuple[str, str], Any]:
    done = helm(*options, values=values)
    assert done.returncode == 0, done.stderr
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each}


def pods_of(found: dict[tuple[str, str], Any]) -> dict[str, Any]:
    """The templates of pods, by the name of the object that makes them."""
    return {name: each["spec"]["template"] for (_, name), each in found.items() if "template" in each.get("spec", {})}


@pytest.mark.long(minutes=0.05)
def test_what_is_rendered_runs_commands_that_there_are() -> None:
    # Given a release with a database and two kinds of workers
    more = ["--set", "workers.gpu.modules={shop.models}", "--set", "workers.gpu.config.labels={gpu}"]
    found = rendered(*ISSUED, *DATABASE, *more, "--set-string", "tailers.orders=name: orders")
    pods = {name: each["spec"] for name, each in pods_of(found).items()}
    assert set(pods) == {"shop-node", "shop-scheduler", "shop-worker-default", "shop-worker-gpu"}
    for pod in pods.values():
        [container] = pod["containers"]
        # Then each container's command and its probes are ours
        parsed(container["args"])
        for probe in ("startupProbe", "readinessProbe"):
            parsed(container[probe]["exec"]["command"][1:])
        # And it may do little, and is bounded
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert pod["terminationGracePeriodSeconds"] == 45
        # And its run directory is one that it makes itself: a volume of memory is root's
        [memory] = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "run"]
        environment = {each["name"]: each.get("value", "") for each in container["env"]}
        assert Path(environment["TAILRACE_RUN_DIR"]).parent == Path(memory)
    # And the password is a reference
    assert {"name": "db", "key": "password"} in [
        each.get("valueFrom", {}).get("secretKeyRef") for each in pods["shop-node"]["containers"][0]["env"]
    ]
    # And what listens at its pod's name waits until that is known
    for part in ("node", "scheduler"):
        [waiting] = pods[f"shop-{part}"]["initContainers"]
        assert f"getent hosts shop-{part}-0.shop-{part};" in waiting["command"][-1]
        assert waiting["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    # And each part has a certificate of its role, and listens at a name that is in it
    node = found["Certificate", "shop-node"]["spec"]
    assert node["uris"] == ["tailrace://shop/node/shop-node"]
    listen = yaml.safe_load(found["ConfigMap", "shop-platform"]["data"]["gateway.yaml"])["listen"]
    assert listen.partition(":")[0] in node["dnsNames"]
    assert yaml.safe_load(found["ConfigMap", "shop-worker-gpu"]["data"]["worker.yaml"])["labels"] == ["gpu"]
    assert ("PodDisruptionBudget", "shop-worker-default") in found and ("NetworkPolicy", "shop-worker") in found


@pytest.mark.long(minutes=0.05)
def test_who_may_call_is_narrowed_for_others_and_not_for_the_parts_themselves() -> None:
    narrowed = "networkPolicy.clients[0].podSelector.matchLabels.app=web"
    own = {"app.kubernetes.io/name": "tailrace", "app.kubernetes.io/instance": "shop"}
    for option, others in ((narrowed, [{"app": "web"}]), ("networkPolicy.clients=null", [])):
        found = rendered(*ISSUED, *DATABASE, "--set", option)
        for part in ("node", "scheduler"):
            [rule] = found["NetworkPolicy", f"shop-{part}"]["spec"]["ingress"]
            assert [each["podSelector"]["matchLabels"] for each in rule["from"]] == [own, *others]


SHARED = "files: {leases.yaml: 'heartbeat: 1s', access.yaml: 'group: ops', quotas.yaml: '{}'}"


@pytest.mark.long(minutes=0.05)
def test_leases_are_the_same_at_every_part_and_a_change_reaches_all_of_them() -> None:
    # Given leases of one's own
    plain, found = rendered(*ISSUED), rendered(*ISSUED, values=SHARED)
    # Then each pod mounts a ConfigMap that has them
    for pod in pods_of(found).values():
        [name] = [each["configMap"]["name"] for each in pod["spec"]["volumes"] if each["name"] == "config"]
        data = found["ConfigMap", name]["data"]
        assert yaml.safe_load(data["leases.yaml"]) == {"heartbeat": "1s"} and "access.yaml" in data
    # And all of them start anew with others
    assert all(pods_of(plain)[name] != pod for name, pod in pods_of(found).items())
    # And none of them for quotas, which are in force by themselves
    assert pods_of(rendered(*ISSUED, values=SHARED.replace("{}", "functions: {}"))) == pods_of(found)


@pytest.mark.long(minutes=0.05)
def test_tailers_come_and_go_without_another_pod() -> None:
    # Given no tailer, one, and two
    without = rendered(*ISSUED)
    one = rendered(*ISSUED, values="tailers: {orders: 'name: orders'}")
    two = rendered(*ISSUED, values="tailers: {orders: 'name: orders', bills: 'name: bills'}")
    # Then the pods are the same, and the folder that the node watches has them
    assert pods_of(without) == pods_of(one) == pods_of(two)
    assert "data" not in without["ConfigMap", "shop-tailers"]
    assert [*two["ConfigMap", "shop-tailers"]["data"]] == ["bills.yaml", "orders.yaml"]
    [node] = pods_of(one)["shop-node"]["spec"]["containers"]
    [mounted] = [each["mountPath"] for each in node["volumeMounts"] if each["name"] == "tailers"]
    options = parsed(node["args"]).params
    assert options["tailers"] == (mounted,) and options["watch"]


@pytest.mark.long(minutes=0.05)
def test_secrets_and_variables_reach_each_part_that_is_given_them() -> None:
    values = """
env: {TAILRACE_PRIORITIES: "urgent, later", WHERE: here}
node: {secrets: [kafka], env: {WHERE: node}}
scheduler: {secrets: [shared]}
workers: {gpu: {modules: [m], secrets: [api], env: {MODEL: "7"}}}
"""
    pods = pods_of(rendered(*ISSUED, *DATABASE, values=values))
    given = {
        name: [each["secretRef"]["name"] for each in pod["spec"]["containers"][0].get("envFrom", ())]
        for name, pod in pods.items()
    }
    assert given == {"shop-node": ["kafka"], "shop-scheduler": ["shared"], "shop-worker-gpu": ["api"]} | {
        "shop-worker-default": []
    }
    of = {
        name: {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        for name, pod in pods.items()
    }
    assert {each["TAILRACE_PRIORITIES"] for each in of.values()} == {"urgent, later"}
    assert (of["shop-node"]["WHERE"], of["shop-scheduler"]["WHERE"]) == ("node", "here")
    assert of["shop-worker-gpu"]["MODEL"] == "7" and "MODEL" not in of["shop-worker-default"]


@pytest.mark.long(minutes=0.05)
def test_tokens_and_metrics_have_ports_that_the_named_reach() -> None:
    # Given a port for tokens, and one for a scraper of another namespace
    values = """
tokens: {port: 8787, clients: [{podSelector: {matchLabels: {app: web}}}]}
metrics: {port: 9464, scrapers: [{namespaceSelector: {matchLabels: {name: monitoring}}}]}
certificates: {hosts: [tailrace.example.org]}
"""
    found = rendered(*ISSUED, values=values)
    data = found["ConfigMap", "shop-platform"]["data"]
    node, scheduler = yaml.safe_load(data["gateway.yaml"]), yaml.safe_load(data["scheduler.yaml"])
    assert node["token_listen"] == "shop-node-0.shop-node:8787"
    assert node["metrics_listen"] == "shop-node-0.shop-node:9464"
    assert scheduler["metrics_listen"] == "shop-scheduler-0.shop-scheduler:9464"
    # Then policy and service have them, for whom they are
    web = {"podSelector": {"matchLabels": {"app": "web"}}}
    scraper = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    for part, ports in (("node", [8786, 8787, 9464]), ("scheduler", [8788, 9464])):
        rules = found["NetworkPolicy", f"shop-{part}"]["spec"]["ingress"]
        assert [each["ports"][0]["port"] for each in rules] == ports
        assert rules[-1]["from"] == [scraper] and (part == "scheduler" or rules[1]["from"] == [web])
        assert [each["port"] for each in found["Service", f"shop-{part}"]["spec"]["ports"]] == ports
        [container] = pods_of(found)[f"shop-{part}"]["spec"]["containers"]
        assert [each["containerPort"] for each in container["ports"]] == ports
    assert "tailrace.example.org" in found["Certificate", "shop-node"]["spec"]["dnsNames"]
    # And where nobody is named nobody gets in: a rule without peers would let everybody
    closed = rendered(*ISSUED, values="tokens: {port: 8787, clients: []}\nmetrics: {port: 9464}")
    for part in ("node", "scheduler"):
        [rule] = closed["NetworkPolicy", f"shop-{part}"]["spec"]["ingress"]
        assert rule["ports"][0]["port"] in (8786, 8788)


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize(
    ("values", "told"),
    [
        ("gateway: {listen: 'here:1'}", "gateway.listen: the chart sets it"),
        ("gateway: {token_listen: 'here:1'}", "gateway.token_listen: the chart sets it, by tokens.port"),
        ("scheduling: {metrics_listen: 'here:1'}", "scheduling.metrics_listen: the chart sets it, by metrics.port"),
        ("workers: {default: {modules: [m], config: {grace: 60}}}", "workers.default.config.grace: the chart sets it"),
        ("files: {stores.yaml: ''}", "files: stores.yaml is made by database.url: give one of them"),
        ("tokens: {port: 9000}\nmetrics: {port: 9000}", "tokens.port and metrics.port are the same"),
    ],
)
def test_what_would_be_lost_or_clash_is_refused(values: str, told: str) -> None:
    done = helm(*ISSUED, *DATABASE, values=values)
    assert done.returncode != 0 and told in done.stderr


@pytest.mark.long(minutes=0.05)
def test_workers_may_be_none_and_have_time_to_load() -> None:
    values = "workers: {default: {modules: [m], replicas: 0}, slow: {modules: [m], replicas: 2, startup: 600}}"
    found = rendered(*ISSUED, values=values)
    assert found["Deployment", "shop-worker-default"]["spec"]["replicas"] == 0
    assert ("PodDisruptionBudget", "shop-worker-default") not in found
    for name, seconds in (("default", READY_BESIDES + 2 * WorkerConfig().load_limit), ("slow", 600)):
        [container] = pods_of(found)[f"shop-worker-{name}"]["spec"]["containers"]
        probe = container["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= seconds


@pytest.mark.long(minutes=0.05)
def test_a_release_without_certificates_says_what_is_missing() -> None:
    done = helm()
    assert done.returncode != 0 and "name a Secret with tls.crt, tls.key and ca.crt" in done.stderr
    secrets = [f"certificates.secrets.{part}={part}-tls" for part in ("node", "scheduler", "worker")]
    found = rendered(*(word for each in secrets for word in ("--set", each)))
    assert all(kind != "Certificate" for kind, _ in found)
    assert "must" in (told := helm(*ISSUED, "--set", "drain=0")).stderr or told.returncode != 0
