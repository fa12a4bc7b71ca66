"""What services and clients are told about security: what does not fit together is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from stairwise.errors import ConfigError
from stairwise.platform.channels import Credentials
from stairwise.platform.config import Settings
from stairwise.platform.kafka_security import KafkaSecurity
from stairwise.platform.security.settings import Security, is_loopback
from stairwise.system.layout import inherited
from tests.unit.platform.secured_servers import CERTIFICATES

CA, CERT, KEY = (str(CERTIFICATES / name) for name in ("ca.pem", "client.pem", "client.key"))


def test_without_variables_nothing_is_protected_and_nothing_changes() -> None:
    assert Settings.from_environment({}).security == Security()
    assert Credentials.from_environment({}) == Credentials()
    plain = KafkaSecurity.from_environment({})
    assert (plain.librdkafka(), plain.java(), plain.ssl_context()) == ({}, {}, None)


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"STAIRWISE_TLS_CERT": CERT}, "STAIRWISE_TLS_KEY is not set"),
        ({"STAIRWISE_TLS_KEY": KEY}, "STAIRWISE_TLS_CERT is not set"),
        ({"STAIRWISE_TLS_CLIENT_CA": CA}, "asks clients for certificates"),
        ({"STAIRWISE_TOKENS_FILE": "/no/such/file"}, "STAIRWISE_TOKENS_FILE: there is no file"),
        ({"STAIRWISE_INSECURE": "perhaps"}, "STAIRWISE_INSECURE='perhaps' makes no sense"),
        ({"STAIRWISE_MAX_STREAMS": "0"}, "STAIRWISE_MAX_STREAMS"),
    ],
)
def test_what_a_server_cannot_mean_is_named(variables: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Settings.from_environment(variables)


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"STAIRWISE_TLS_CLIENT_CERT": CERT}, "needs its key"),
        ({"STAIRWISE_TLS_CLIENT_CERT": CERT, "STAIRWISE_TLS_CLIENT_KEY": KEY}, "needs the authority"),
        ({"STAIRWISE_TOKEN": "a", "STAIRWISE_TOKEN_FILE": CA}, "both STAIRWISE_TOKEN and STAIRWISE_TOKEN_FILE"),
        ({"STAIRWISE_TOKEN_FILE": CA}, "one line with the secret"),
    ],
)
def test_what_a_client_cannot_mean_is_named(variables: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Credentials.from_environment(variables)


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"STAIRWISE_KAFKA_USER": "me"}, "a user and a password"),
        ({"STAIRWISE_KAFKA_CERT": CERT, "STAIRWISE_KAFKA_KEY": KEY}, "needs its key, and TLS"),
        ({"STAIRWISE_KAFKA_MECHANISM": "GSSAPI"}, "STAIRWISE_KAFKA_MECHANISM"),
    ],
)
def test_what_cannot_be_meant_for_kafka_is_named(variables: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        KafkaSecurity.from_environment(variables)


def test_every_kafka_library_is_told_the_same() -> None:
    variables = {"STAIRWISE_KAFKA_USER": "me", "STAIRWISE_KAFKA_PASSWORD": 'p"w\\', "STAIRWISE_KAFKA_CA": CA}
    security = KafkaSecurity.from_environment(variables)
    assert security.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": CA,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'p"w\\',
    }
    java = security.java()
    assert java["security.protocol"] == "SASL_SSL"
    assert java["ssl.truststore.certificates"] == Path(CA).read_text()
    assert java["sasl.jaas.config"].endswith('ScramLoginModule required username="me" password="p\\"w\\\\";')
    assert security.ssl_context() is not None
    assert 'p"w' not in repr(security)


@pytest.mark.parametrize(
    ("address", "stays"),
    [
        ("127.0.0.1:1", True),
        ("127.8.8.8:1", True),
        ("[::1]:1", True),
        ("localhost:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("localhost.example.org:1", False),
    ],
)
def test_which_addresses_stay_on_the_machine(address: str, stays: bool) -> None:
    assert is_loopback(address) is stays


def test_the_parts_of_a_local_system_find_files_where_they_were_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens.toml").touch()
    handed_on = inherited({"STAIRWISE_TOKENS_FILE": "tokens.toml", "STAIRWISE_KAFKA_USER": "me", "HOME": "/"})
    assert handed_on["STAIRWISE_TOKENS_FILE"] == str(tmp_path / "tokens.toml")
    assert handed_on["STAIRWISE_KAFKA_USER"] == "", "the broker of this machine knows no users"
    assert "HOME" not in handed_on


def test_a_local_system_with_tls_must_know_the_authority_to_ask_its_own_parts() -> None:
    told = {"STAIRWISE_TLS_CERT": CERT, "STAIRWISE_TLS_KEY": KEY}
    with pytest.raises(ConfigError, match="could not be asked for their health") as refused:
        inherited(told)
    assert "STAIRWISE_TLS_CA" in refused.value.hint
    assert inherited({**told, "STAIRWISE_TLS_CA": CA})["STAIRWISE_TLS_CA"] == CA
