"""The Helm chart: it lints, and what it renders fits together, with whatever values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.platform.channels import Credentials, channel
from stairwise.platform.config import DEFAULT_METRICS_PORTS, DEFAULT_PORTS, Settings
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import TokensFile
from stairwise.platform.server_thread import ServerThread
from tests.chart.rendering import NAMED, SERVICES, VALUE_SETS, Chart, container_of, pod_of, service_of

KUBERNETES = ("1.27", "1.33", "1.37")
"""The oldest that the chart says it runs on, one that it was run on, and the newest whose schemas are there."""
OF_THE_PROMETHEUS_OPERATOR = "monitoring.coreos.com/"


def test_it_lints(chart: Chart) -> None:
    linted = chart.lint()
    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field(chart: Chart, version: str) -> None:
    for each in chart.objects:
        if not each["apiVersion"].startswith(OF_THE_PROMETHEUS_OPERATOR):
            kubernetes_validate.validate(each, version, strict=True)


def test_every_service_is_a_workload_with_stable_names_where_an_identity_survives_the_pod(chart: Chart) -> None:
    kinds = {service_of(each): each["kind"] for each in chart.workloads}
    assert set(kinds) == SERVICES
    assert {service for service, kind in kinds.items() if kind == "StatefulSet"} == NAMED


def test_selectors_match_the_labels_of_the_pods_they_are_for_and_no_others(chart: Chart) -> None:
    workloads = chart.of("Deployment", "StatefulSet")
    pods = chart.pods
    selectors = [(service_of(w), w["spec"]["selector"]["matchLabels"]) for w in workloads]
    selectors += [(service_of(o), o["spec"]["selector"]) for o in chart.of("Service")]
    selectors += [(service_of(o), o["spec"]["podSelector"]["matchLabels"]) for o in chart.of("NetworkPolicy")]
    selectors += [(service_of(o), o["spec"]["selector"]["matchLabels"]) for o in chart.of("PodDisruptionBudget")]
    selectors += [
        (service_of(w), spread["labelSelector"]["matchLabels"])
        for w in workloads
        for spread in pod_of(w).get("topologySpreadConstraints", [])
    ]
    assert {service for service, _ in selectors} >= {service_of(w) for w in workloads}
    for service, selector in selectors:
        assert {name for name, labels in pods.items() if selector.items() <= labels.items()} == {service}


def test_ports_of_services_and_policies_are_ports_of_the_pods(chart: Chart) -> None:
    pods = {service_of(w): w for w in chart.of("Deployment", "StatefulSet")}
    for each in chart.of("Service"):
        listened = {p["name"]: p["containerPort"] for p in container_of(pods[service_of(each)])["ports"]}
        for port in each["spec"]["ports"]:
            assert port["port"] == listened[port["targetPort"]]
    for each in chart.of("NetworkPolicy"):
        if service_of(each) != "executors":
            names = {p["name"] for p in container_of(pods[service_of(each)])["ports"]}
            assert {p["port"] for rule in each["spec"]["ingress"] for p in rule["ports"]} <= names


def test_clients_find_the_three_services_that_serve_them(chart: Chart) -> None:
    faces = [o for o in chart.of("Service") if o["spec"].get("clusterIP") != "None" and service_of(o) in SERVICES]
    assert {service_of(o): o["spec"]["ports"][0]["port"] for o in faces} == {
        service: DEFAULT_PORTS[service] for service in ("windows", "results", "lookups")
    }


def test_the_environment_is_what_the_services_understand(chart: Chart) -> None:
    faces = {o["metadata"]["name"]: o for o in chart.of("Service")}
    for workload in chart.workloads:
        service = service_of(workload)
        given = {n: v for n, v in chart.variables(workload).items() if not v.startswith("/etc/stairwise/")}
        settings = Settings.from_environment(given, service=service)
        assert settings.listen == f"0.0.0.0:{DEFAULT_PORTS[service]}"
        assert settings.metrics == f"0.0.0.0:{DEFAULT_METRICS_PORTS[service]}"
        for address, target in ((settings.registry, "windows"), (settings.results, "results")):
            name, _, port = address.partition(":")
            assert (service_of(faces[name]), int(port)) == (target, DEFAULT_PORTS[target])
        if chart.values.get("trialBroker"):
            assert settings.brokers == "demo-stairwise-broker:9092"
            assert "demo-stairwise-broker" in faces


def test_the_registry_may_read_the_metrics_of_every_instance_of_ingest_and_of_operators(chart: Chart) -> None:
    registry = chart.workload("windows")
    pages = Settings.from_environment({"STAIRWISE_SCRAPE": chart.variables(registry)["STAIRWISE_SCRAPE"]}).scrape
    assert set(pages) == {"ingest", "operators"}
    for part, page in pages.items():
        name, _, port = page.partition(":")
        named = chart.named("Service", name)
        assert (service_of(named), named["spec"]["clusterIP"]) == (part, "None")
        assert int(port) in {each["port"] for each in named["spec"]["ports"]} & {DEFAULT_METRICS_PORTS[part]}
        for policy in chart.of("NetworkPolicy"):
            if service_of(policy) == part:
                (let_in,) = [rule for rule in policy["spec"]["ingress"] if rule["ports"] == [{"port": "metrics"}]]
                assert any(lets_in(peer, chart.pods["windows"]) for peer in let_in["from"])


def test_a_lookups_worker_is_known_by_its_own_name_under_the_headless_service(chart: Chart) -> None:
    workers = chart.workload("lookups")
    headless = chart.named("Service", workers["spec"]["serviceName"])
    assert headless["spec"]["clusterIP"] == "None"
    told = chart.variables(workers)["STAIRWISE_LOOKUPS"]
    assert told == f"lookups-0.{headless['metadata']['name']}.prod.svc:7072"


def test_an_ingest_instance_is_known_by_the_name_of_its_pod(chart: Chart) -> None:
    ingest = chart.workload("ingest")
    assert chart.named("Service", ingest["spec"]["serviceName"])["spec"]["clusterIP"] == "None"
    (instance,) = [v for v in container_of(ingest)["env"] if v["name"] == "STAIRWISE_INSTANCE"]
    assert instance["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_health_is_asked_by_grpc_or_where_that_cannot_be_by_the_command_of_the_image(chart: Chart) -> None:
    for workload in chart.workloads:
        container = container_of(workload)
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            if not chart.values.get("insecure"):
                assert container[name]["exec"]["command"][-1] == "stairwise.platform.healthcheck"
            else:
                assert container[name]["grpc"] == {"port": DEFAULT_PORTS[service_of(workload)]}


def test_nothing_runs_as_root_or_writes_where_it_may_not(chart: Chart) -> None:
    pods = chart.of("Deployment", "StatefulSet", "Pod")
    for configuration in chart.of("ConfigMap"):
        if "executor.yaml" in configuration["data"]:
            pods.append(yaml.safe_load(configuration["data"]["executor.yaml"]))
    assert len(pods) >= len(SERVICES) + 1
    for each in pods:
        pod, container = pod_of(each), container_of(each)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        claims = [c["metadata"]["name"] for c in each["spec"].get("volumeClaimTemplates", [])]
        assert "/tmp" in mounts
        assert set(mounts.values()) == {volume["name"] for volume in pod["volumes"]} | set(claims)
        if container["name"] != "executor":
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])


def test_only_what_starts_pods_has_a_token_for_kubernetes_and_rights_in_its_namespace_alone(chart: Chart) -> None:
    holders = {service_of(w) for w in chart.workloads if pod_of(w)["automountServiceAccountToken"]}
    starts_pods = chart.values.get("operators", {}).get("spark", {}).get("mode") == "kubernetes"
    assert holders == ({"operators"} if starts_pods else set())
    assert not chart.of("ClusterRole", "ClusterRoleBinding")
    assert len(chart.of("Role")) == len(chart.of("RoleBinding")) == len(holders)
    for role in chart.of("Role"):
        assert {r for rule in role["rules"] for r in rule["resources"]} == {
            "pods",
            "configmaps",
            "persistentvolumeclaims",
        }


def test_what_writes_under_one_identity_is_never_there_twice(chart: Chart) -> None:
    for service in ("windows", "operators"):
        assert chart.workload(service)["spec"]["replicas"] == 1
        assert chart.workload(service)["spec"]["strategy"] == {"type": "Recreate"}


def test_an_update_of_results_has_the_new_one_ready_before_an_old_one_goes(chart: Chart) -> None:
    rolling = chart.workload("results")["spec"]["strategy"]["rollingUpdate"]
    assert rolling == {"maxUnavailable": 0, "maxSurge": 1}


def test_what_is_scaled_by_load_has_no_number_of_its_own_and_may_lose_one_at_a_time(chart: Chart) -> None:
    scalers = {service_of(h): h["spec"]["scaleTargetRef"] for h in chart.of("HorizontalPodAutoscaler")}
    budgets = {service_of(b) for b in chart.of("PodDisruptionBudget")}
    for workload in chart.workloads:
        service = service_of(workload)
        if service in scalers:
            assert scalers[service]["kind"] == workload["kind"]
            assert scalers[service]["name"] == workload["metadata"]["name"]
            assert "replicas" not in workload["spec"]
        several = service in scalers or workload["spec"]["replicas"] > 1
        assert (service in budgets) == several


def test_operators_keeps_its_checkpoint_on_a_claim_that_exists(chart: Chart) -> None:
    operators = chart.workload("operators")
    volumes = {v["name"]: v for v in pod_of(operators)["volumes"]}
    (mount,) = [m for m in container_of(operators)["volumeMounts"] if m["name"] == "checkpoint"]
    assert mount["mountPath"] == "/var/lib/stairwise/operators"
    claim = volumes["checkpoint"]["persistentVolumeClaim"]["claimName"]
    made = [o["metadata"]["name"] for o in chart.of("PersistentVolumeClaim")]
    assert claim in made or (not made and claim == "my-checkpoint")


def test_secrets_are_read_where_they_are_mounted(chart: Chart) -> None:
    for workload in chart.workloads:
        container = container_of(workload)
        mounted = [m["mountPath"] for m in container["volumeMounts"]]
        for variable in container["env"]:
            path = variable.get("value", "")
            if path.startswith("/etc/stairwise/"):
                assert path.rpartition("/")[0] in mounted
    named = {v["secret"]["secretName"] for w in chart.workloads for v in pod_of(w)["volumes"] if "secret" in v}
    if chart.values.get("insecure"):
        assert named == set()
    elif "tls" in chart.values:
        assert named == {"grpc-tls", "tokens", "kafka-tls"}
    else:
        assert named == {"demo-stairwise-tls", "demo-stairwise-tokens"}
        assert named <= {each["metadata"]["name"] for each in chart.of("Secret")}


def test_without_a_word_of_consent_servers_speak_tls_and_ask_for_tokens(chart: Chart) -> None:
    for workload in chart.workloads:
        given = set(chart.variables(workload))
        asked = {"STAIRWISE_TLS_CERT", "STAIRWISE_TLS_KEY", "STAIRWISE_TLS_CA", "STAIRWISE_TOKENS_FILE"}
        if chart.values.get("insecure"):
            assert not asked & given
            assert "STAIRWISE_INSECURE" in given
        else:
            assert asked <= given
            assert "STAIRWISE_INSECURE" not in given


def test_policies_let_in_and_out_only_whom_they_name(chart: Chart) -> None:
    if not chart.values.get("networkPolicy", {}).get("enabled", True):
        assert chart.of("NetworkPolicy") == []
        return
    policies = {service_of(each): each["spec"] for each in chart.of("NetworkPolicy")}
    assert set(policies) == set(chart.pods)
    for service, policy in policies.items():
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert all(rule["from"] for rule in policy["ingress"]), service
        assert all(rule.get("ports") or rule.get("to") for rule in policy["egress"]), service
    stranger = {"app.kubernetes.io/name": "stranger"}
    if "clients" not in chart.values.get("networkPolicy", {}):
        for policy in policies.values():
            assert not any(lets_in(peer, stranger) for rule in policy["ingress"] for peer in rule["from"])


def lets_in(peer: dict[str, Any], labels: dict[str, str]) -> bool:
    """Does a peer of a policy stand for a pod of the same namespace?"""
    selector = peer.get("podSelector")
    return selector is not None and selector.get("matchLabels", {}).items() <= labels.items()


def test_ports_of_the_brokers_are_those_that_are_let_out(tmp_path: Path) -> None:
    chart = Chart(VALUE_SETS["a Kafka user for each service"], tmp_path)
    for policy in chart.of("NetworkPolicy"):
        (kafka,) = [r for r in policy["spec"]["egress"] if r.get("ports") == [{"port": 9093}, {"port": 9094}]]
        assert kafka["to"] == chart.values["networkPolicy"]["brokers"]
        assert {"ports": [{"port": 4318}]} in policy["spec"]["egress"]


def test_each_service_can_have_a_kafka_user_of_its_own(tmp_path: Path) -> None:
    chart = Chart(VALUE_SETS["a Kafka user for each service"], tmp_path)
    for workload in chart.workloads:
        named = [
            v["valueFrom"]["secretKeyRef"]["name"] for v in container_of(workload)["env"] if "KAFKA_PASS" in v["name"]
        ]
        assert named == [f"kafka-{service_of(workload)}"]


def test_volumes_that_go_with_their_pod_have_limits_and_so_has_the_cpu(chart: Chart) -> None:
    for each in chart.of("Deployment", "StatefulSet", "Pod"):
        for volume in pod_of(each)["volumes"]:
            assert volume.get("emptyDir", {"sizeLimit": "-"})["sizeLimit"]
    for workload in chart.workloads:
        assert {"cpu", "memory"} <= set(container_of(workload)["resources"]["limits"])


def test_what_the_chart_makes_is_what_servers_and_clients_take(tmp_path: Path) -> None:
    chart = Chart({}, tmp_path)
    held = chart.secret("demo-stairwise-tls")
    for name, text in held.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "tokens.toml").write_text(chart.secret("demo-stairwise-tokens")["tokens.toml"])
    security = Security(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key", tokens=tmp_path / "tokens.toml")
    tokens = {
        TokenScope.ADMIN: chart.secret("demo-stairwise-admin-token")["token"],
        TokenScope.SERVICE: chart.secret("demo-stairwise-tokens")["service"],
    }
    for scope, token in tokens.items():
        found = TokensFile(tmp_path / "tokens.toml").find(token)
        assert found is not None
        assert found.scopes == {scope}
    name = chart.variables(chart.workload("lookups"))["STAIRWISE_TLS_SERVER_NAME"]
    with ServerThread("127.0.0.1:0", security=security) as server:
        for called in (
            name,
            "demo-stairwise-results.prod.svc",
            "demo-stairwise-lookups-3.demo-stairwise-lookups-workers.prod.svc",
        ):
            trusting = Credentials(ca=tmp_path / "ca.crt", server_name=called)
            with channel(f"127.0.0.1:{server.port}", trusting) as connection:
                health_pb2_grpc.HealthStub(connection).Check(health_pb2.HealthCheckRequest(), timeout=20)


def test_a_changed_configuration_restarts_the_pods(chart: Chart) -> None:
    sums = {w["spec"]["template"]["metadata"]["annotations"]["checksum/configuration"] for w in chart.workloads}
    assert len(sums) == 1


def test_prometheus_is_told_where_to_scrape(chart: Chart) -> None:
    told = chart.values.get("metrics", {}).get("annotations", True)
    for workload in chart.workloads:
        annotations = workload["spec"]["template"]["metadata"]["annotations"]
        port = annotations.get("prometheus.io/port")
        assert port == (str(DEFAULT_METRICS_PORTS[service_of(workload)]) if told else None)


def test_the_release_can_be_tested(chart: Chart) -> None:
    (test,) = chart.of("Pod")
    assert test["metadata"]["annotations"]["helm.sh/hook"] == "test"
