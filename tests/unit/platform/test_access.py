"""Who may call what: every method of every service, whether it is a function or a coroutine."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc

from stairwise.cli.main import cli
from stairwise.errors import ConfigError
from stairwise.platform.channels import Credentials, channel
from stairwise.platform.security.audit import Audit
from stairwise.platform.security.scopes import METHODS as RULES
from stairwise.platform.security.scopes import TokenScope
from stairwise.platform.security.settings import Security
from stairwise.platform.security.tokens import LOOK_EVERY, TokensFile, digest_of, new_token
from stairwise.platform.security.turns import MOST_UNSCOPED
from stairwise.platform.server_thread import ServerThread
from stairwise.v1 import registry_pb2
from tests.unit.platform.secured_servers import (
    BOTH_KINDS,
    CERTIFICATES,
    METHODS,
    TLS,
    Running,
    bearing,
    entry,
    path_of,
    serving,
    write_tokens,
)

SUBSCRIBE, EXECUTE, DROP, LOOKUP = (
    next(m for m in METHODS if m.name == name) for name in ("Subscribe", "Execute", "DropStream", "Lookup")
)
OK, UNAUTHENTICATED, DENIED = (
    grpc.StatusCode.OK,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
)


@pytest.mark.parametrize("method", METHODS, ids=path_of)
def test_every_method_of_every_service_has_its_scopes(method: MethodDescriptor) -> None:
    rule = RULES[path_of(method)]
    assert rule.scopes
    assert not rule.is_open


@pytest.fixture(scope="module", params=BOTH_KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with one principal for each scope, and one for each set of all scopes but those of a method."""
    everyone = {scope.value: [scope.value] for scope in TokenScope}
    lacking = {
        f"lacking_{m.name}": sorted(set(TokenScope) - {TokenScope.ADMIN} - RULES[path_of(m)].scopes) for m in METHODS
    }
    tokens = write_tokens(tmp_path_factory.mktemp("tokens") / "tokens.toml", **everyone, **_some(lacking))
    with serving(request.param, Security(tokens=tokens)) as running:
        yield running


def _some(lacking: dict[str, list[TokenScope]]) -> dict[str, list[str]]:
    return {name: [scope.value for scope in scopes] for name, scopes in lacking.items()}


@pytest.mark.parametrize("method", METHODS, ids=path_of)
def test_a_method_takes_only_tokens_with_its_scope(server: Running, method: MethodDescriptor) -> None:
    assert server.call(method) is UNAUTHENTICATED
    assert server.call(method, bearing("a guess")) is UNAUTHENTICATED
    assert server.call(method, bearing(f"lacking_{method.name}")) is DENIED
    for scope in TokenScope:
        allowed = scope is TokenScope.ADMIN or scope in RULES[path_of(method)].scopes
        assert server.call(method, bearing(scope.value)) is (OK if allowed else DENIED)


def test_health_asks_for_no_token(server: Running) -> None:
    with channel(server.address) as connection:
        answer = health_pb2_grpc.HealthStub(connection).Check(health_pb2.HealthCheckRequest(), timeout=10)
    assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING


def test_a_refused_request_is_not_even_decoded(server: Running) -> None:
    assert server.call(EXECUTE, request=b"\xff\xff") is UNAUTHENTICATED
    assert server.call(EXECUTE, bearing("define"), b"\xff\xff") is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_without_a_tokens_file_nobody_is_asked(kind: str) -> None:
    with serving(kind, Security()) as running:
        assert running.call(EXECUTE) is OK


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_tls_is_spoken_with_those_who_trust_the_authority(kind: str, tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens.toml", ann=["read"])
    trusting = Credentials(ca=CERTIFICATES / "ca.pem", token="ann")
    with serving(kind, Security(certificate=TLS.certificate, key=TLS.key, tokens=tokens)) as running:
        assert running.call(SUBSCRIBE, trusting) is OK
        assert running.call(DROP, trusting) is DENIED
        assert running.call(SUBSCRIBE, Credentials(ca=CERTIFICATES / "ca.pem")) is UNAUTHENTICATED
        stranger = Credentials(ca=CERTIFICATES / "stranger.pem", token="ann")
        assert running.call(SUBSCRIBE, stranger) is grpc.StatusCode.UNAVAILABLE
        assert running.call(SUBSCRIBE, bearing("ann")) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_a_certificate_has_the_scopes_of_the_file_and_without_one_none(kind: str, tmp_path: Path) -> None:
    ca, audit, tokens = CERTIFICATES / "ca.pem", tmp_path / "audit.jsonl", tmp_path / "tokens.toml"
    security = Security(certificate=TLS.certificate, key=TLS.key, client_ca=ca, audit=audit)
    known = Credentials(ca=ca, certificate=CERTIFICATES / "client.pem", key=CERTIFICATES / "client.key")
    with serving(kind, security) as running:
        assert running.call(SUBSCRIBE, known) is DENIED
        assert running.call(EXECUTE, known) is DENIED
        assert running.call(EXECUTE, Credentials(ca=ca)) is grpc.StatusCode.UNAVAILABLE
    assert {json.loads(line)["principal"] for line in audit.read_text().splitlines()} == {"reports"}
    tokens.write_text(
        '[[certificate]]\nname = "reports"\nprincipal = "dashboards"\nscopes = ["read"]\n' + entry("root", ["admin"])
    )
    with serving(kind, replace(security, tokens=tokens)) as running:
        assert running.call(SUBSCRIBE, known) is OK
        assert running.call(DROP, known) is DENIED
        assert running.call(DROP, replace(known, token="root")) is OK
        assert running.call(DROP, replace(known, token="a guess")) is UNAUTHENTICATED
    assert json.loads(audit.read_text().splitlines()[-2])["principal"] == "dashboards"


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_a_request_that_is_too_large_is_refused(kind: str) -> None:
    with serving(kind, Security(max_request_bytes=2_000)) as running:
        script = registry_pb2.ExecuteRequest(script="x" * 1_000).SerializeToString()
        assert running.call(EXECUTE, request=script) is OK
        assert running.call(EXECUTE, request=3 * script) is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_a_principal_has_a_limit_of_open_streams_of_its_own(kind: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(
        entry("few", ["read"], "max_streams = 1")
        + entry("more", ["read"])
        + entry("root", ["admin"], "max_streams = 0")
    )
    end = threading.Event()
    with serving(kind, Security(tokens=tokens, max_streams=2), end) as running:

        def open_(token: str) -> tuple[grpc.Channel, grpc.Call]:
            connection = channel(running.address, bearing(token))
            call = connection.unary_stream(path_of(SUBSCRIBE), None, None)(b"", timeout=60)
            try:
                next(call)
            except grpc.RpcError:
                connection.close()
                raise
            return connection, call

        opened = [open_(token) for token in ("few", "more", "more", "root", "root", "root")]
        for token in ("few", "more"):
            with pytest.raises(grpc.RpcError) as refused:
                open_(token)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        opened[0][1].cancel()
        opened.append(_retry(lambda: open_("few")))
        end.set()
        for connection, _ in opened:
            connection.close()


def _retry(attempt):  # type: ignore[no-untyped-def]
    """The server learns of a cancelled call a moment later."""
    for _ in range(500):
        try:
            return attempt()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            threading.Event().wait(0.01)
    raise AssertionError("the place of a cancelled stream was never given back")


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_the_audit_log_says_who_was_refused_and_nobody_else_can_read_it(kind: str, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    audit.touch(0o644)
    tokens = write_tokens(tmp_path / "tokens.toml", ann=["define"], bob=["read"])
    with serving(kind, Security(tokens=tokens, audit=audit)) as running:
        running.call(DROP, bearing("ann"))
        running.call(DROP, bearing("bob"))
        running.call(DROP, bearing("a guess"))
        running.call(SUBSCRIBE, bearing("bob"))
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(e["principal"], e["method"], e["outcome"]) for e in entries] == [
        ("bob", "DropStream", "refused: PermissionDeniedError"),
        ("unknown", "DropStream", "refused: UnauthenticatedError"),
    ]
    assert all(e["time"].endswith("+00:00") and e["peer"].startswith("ipv4:127.0.0.1") for e in entries)
    assert "a guess" not in audit.read_text()
    assert audit.stat().st_mode & 0o077 == 0


def test_a_full_audit_log_makes_room_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(path, most_bytes=1_000)
    other = Audit(path, most_bytes=1_000)
    for number in range(20):
        (audit if number % 3 else other).note("ann", "", "Execute", f"DROP QUERY q{number}")
    written = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    assert sorted(json.loads(line)["what"] for line in written) == sorted(f"DROP QUERY q{n}" for n in range(20))
    kept = sorted(tmp_path.iterdir())
    assert len(kept) > 2
    assert all(file.stat().st_mode & 0o077 == 0 and file.stat().st_size <= 1_000 for file in kept)
    assert json.loads(path.read_text().splitlines()[-1])["what"] == "DROP QUERY q19"


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_calls_of_one_principal_wait_for_each_other_and_the_next_is_refused(kind: str, tmp_path: Path) -> None:
    tokens = write_tokens(tmp_path / "tokens.toml", ann=["read"], bob=["read"])
    end = threading.Event()
    with (
        serving(kind, Security(tokens=tokens, max_calls=2, max_waiting=1), end, hold_unary=True) as running,
        ThreadPoolExecutor(4) as threads,
    ):
        anns = [threads.submit(running.call, LOOKUP, bearing("ann")) for _ in range(4)]
        done, _ = wait(anns, 30, FIRST_COMPLETED)
        assert [call.result() for call in done] == [grpc.StatusCode.RESOURCE_EXHAUSTED]
        end.set()
        assert sorted(str(call.result()) for call in anns).count(str(OK)) == 3
        assert running.call(LOOKUP, bearing("bob")) is OK


def test_watches_and_reflection_of_one_host_are_bounded() -> None:
    with serving("coroutines", Security()) as running, channel(running.address) as connection:
        watch = health_pb2_grpc.HealthStub(connection).Watch
        watches = [watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(MOST_UNSCOPED)]
        for each in watches:
            next(each)
        with pytest.raises(grpc.RpcError) as refused:
            next(watch(health_pb2.HealthCheckRequest(), timeout=60))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert running.call(EXECUTE) is OK
        for each in watches:
            each.cancel()


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "example.org:7070"])
def test_other_addresses_than_loopback_are_refused_without_tls(listen: str) -> None:
    with pytest.raises(ConfigError, match="without TLS") as refused:
        ServerThread(listen)
    assert "STAIRWISE_TLS_CERT=FILE" in refused.value.hint
    assert "STAIRWISE_INSECURE=yes" in refused.value.hint


@pytest.mark.parametrize("security", [Security(insecure=True), TLS], ids=["told so", "TLS"])
def test_with_tls_or_when_told_so_any_address_will_do(security: Security) -> None:
    ServerThread("0.0.0.0:0", security=security).stop(0)


def test_a_certificate_and_a_key_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="is not the key to the certificate"):
        ServerThread("127.0.0.1:0", security=Security(certificate=TLS.certificate, key=CERTIFICATES / "client.key"))


@pytest.mark.parametrize("kind", BOTH_KINDS)
def test_a_certificate_that_was_replaced_is_taken_up(kind: str, tmp_path: Path) -> None:
    files = {part: tmp_path / f"live.{part}" for part in ("pem", "key")}

    def install(name: str) -> None:
        for part, path in files.items():
            path.write_bytes((CERTIFICATES / f"{name}.{part}").read_bytes())

    install("server")
    with serving(kind, Security(certificate=files["pem"], key=files["key"])) as running:
        assert running.call(EXECUTE, Credentials(ca=CERTIFICATES / "ca.pem")) is OK
        install("client")
        assert running.call(EXECUTE, Credentials(ca=CERTIFICATES / "ca.pem")) is grpc.StatusCode.UNAVAILABLE
        renamed = Credentials(ca=CERTIFICATES / "ca.pem", server_name="reports")
        assert running.call(EXECUTE, renamed) is OK
        files["key"].write_bytes((CERTIFICATES / "server.key").read_bytes())
        assert running.call(EXECUTE, renamed) is OK


def test_a_token_never_goes_over_a_network_in_the_clear() -> None:
    with pytest.raises(ConfigError, match="in the clear"):
        channel("example.org:7070", bearing("secret"))
    assert "secret" not in repr(bearing("secret"))
    channel("example.org:7070", Credentials(token="secret", insecure=True)).close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_tokens_file_is_read_again_when_it_has_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, clock = tmp_path / "tokens.toml", Clock()
    tokens = TokensFile(write_tokens(path, ann=["read"]), clock)

    def rewrite(text: str) -> None:
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", path)
        clock.now += LOOK_EVERY

    rewrite(entry("bob", ["read", "define"]))
    assert tokens.find("ann") is None
    bob = tokens.find("bob")
    assert bob is not None
    assert bob.scopes == {TokenScope.READ, TokenScope.DEFINE}
    rewrite("[[token]]\nnonsense = 1")
    assert tokens.find("bob") == bob
    assert "the tokens as they were before still hold" in caplog.text


def test_a_token_expires(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(
        entry("old", ["read"], "expires = 2020-01-01T00:00:00Z")
        + entry("new", ["read"], "expires = 2999-01-01T00:00:00Z")
    )
    tokens = TokensFile(path)
    assert tokens.find("old") is None
    assert tokens.find("new") is not None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[token]", "cannot be read"),
        ("[tokens]", "holds"),
        ('[[token]]\nprincipal = "a"\nscopes = ["read"]', "sha256"),
        (f'[[token]]\nsha256 = "{digest_of("a")}"\nscopes = ["read"]', "principal"),
        (entry("a", ["write"]), "scopes"),
        (entry("a", [["read"]]), "scopes"),  # type: ignore[list-item]
        (entry("a", ["read"], "expires = 2020-01-01"), "expires"),
        (entry("a", ["read"], "max_streams = -1"), "max_streams"),
        (entry("a", ["read"], 'token = "secret"'), "something that a token has not"),
        (2 * entry("a", ["read"]), "twice"),
    ],
)
def test_what_is_wrong_in_a_tokens_file_is_named(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        TokensFile(path)


def test_the_verb_makes_tokens_that_the_file_knows(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    made = {}
    for name in ('ann "the" boss', "bob"):
        arguments = ["token", name, "--scope", "read", "--scope", "define", "--days", "3", "--file", str(path)]
        done = CliRunner().invoke(cli, arguments)
        assert done.exit_code == 0, done.output
        made[name] = done.stdout.strip()
    tokens = TokensFile(path)
    for name, text in made.items():
        found = tokens.find(text)
        assert found is not None
        assert (found.name, found.scopes) == (name, {TokenScope.READ, TokenScope.DEFINE})
        assert text not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_new_tokens_are_long_and_never_the_same() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert all(len(new_token()) > 40 for _ in range(10))
