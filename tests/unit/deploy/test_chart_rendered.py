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

HOW = "go install helm.sh/helm/v3/cmd/helm@latest"
ISSUED = ["--set", "certificates.issuer.name=ca"]
DATABASE = ["--set", "database.url=postgresql://tailrace@db:5432/t", "--set", "database.secret.name=db"]


def helm(*options: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm", path=os.pathsep.join([os.environ.get("PATH", ""), str(Path.home() / "go" / "bin")]))
    if program is None:
        pytest.skip(f"needs helm: {HOW}")
    command = [program, "template", "shop", str(CHART), "--kube-version", "1.30.0", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def rendered(*options: str) -> dict[tuple[str, str], Any]:
    done = helm(*options)
    assert done.returncode == 0, done.stderr
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each}


@pytest.mark.long(minutes=0.1)
def test_what_is_rendered_runs_commands_that_there_are() -> None:
    # Given a release with a database and two kinds of workers
    more = ["--set", "workers.gpu.modules={shop.models}", "--set", "workers.gpu.config.labels={gpu}"]
    found = rendered(*ISSUED, *DATABASE, *more, "--set-string", "tailers.orders=name: orders")
    pods = {name: each["spec"]["template"]["spec"] for (kind, name), each in found.items() if "Set" in kind}
    pods |= {name: each["spec"]["template"]["spec"] for (kind, name), each in found.items() if kind == "Deployment"}
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
    # And each part has a certificate of its role, and listens at a name that is in it
    node = found["Certificate", "shop-node"]["spec"]
    assert node["uris"] == ["tailrace://shop/node/shop-node"]
    listen = yaml.safe_load(found["ConfigMap", "shop-platform"]["data"]["gateway.yaml"])["listen"]
    assert listen.partition(":")[0] in node["dnsNames"]
    assert yaml.safe_load(found["ConfigMap", "shop-worker-gpu"]["data"]["worker.yaml"])["labels"] == ["gpu"]
    assert ("PodDisruptionBudget", "shop-worker-default") in found and ("NetworkPolicy", "shop-worker") in found


@pytest.mark.long(minutes=0.1)
def test_who_may_call_is_narrowed_for_others_and_not_for_the_parts_themselves() -> None:
    narrowed = "networkPolicy.clients[0].podSelector.matchLabels.app=web"
    found = rendered(*ISSUED, *DATABASE, "--set", narrowed)
    for part in ("node", "scheduler"):
        [rule] = found["NetworkPolicy", f"shop-{part}"]["spec"]["ingress"]
        labels = [each["podSelector"]["matchLabels"] for each in rule["from"]]
        own = {"app.kubernetes.io/name": "tailrace", "app.kubernetes.io/instance": "shop"}
        assert labels == [own, {"app": "web"}]


@pytest.mark.long(minutes=0.1)
def test_a_release_without_certificates_says_what_is_missing() -> None:
    done = helm()
    assert done.returncode != 0 and "name a Secret with tls.crt, tls.key and ca.crt" in done.stderr
    secrets = [f"certificates.secrets.{part}={part}-tls" for part in ("node", "scheduler", "worker")]
    found = rendered(*(word for each in secrets for word in ("--set", each)))
    assert all(kind != "Certificate" for kind, _ in found)
    assert "must" in (told := helm(*ISSUED, "--set", "drain=0")).stderr or told.returncode != 0
