"""Environment variables as typed values: what makes no sense gives a ``ConfigError`` that names the variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stairwise.errors import ConfigError

YES = frozenset({"yes", "true", "on", "1"})
NO = frozenset({"no", "false", "off", "0"})


def wrong(name: str, value: str, expected: str) -> ConfigError:
    return ConfigError(f"{name}={value!r} makes no sense", hint=f"{name} is {expected}")


def text(environ: Mapping[str, str], name: str, default: str) -> str:
    """An empty variable counts as unset: charts and compose files leave them so."""
    return environ.get(name, "").strip() or default


def address(environ: Mapping[str, str], name: str, default: str, *, lowest_port: int = 1) -> str:
    value = text(environ, name, default)
    try:
        _, port = host_and_port(value)
    except ValueError:
        port = -1
    if port < lowest_port:
        raise wrong(name, value, f"host:port with a port from {lowest_port} to 65535, such as {default}")
    return value


def addresses(environ: Mapping[str, str], name: str, default: str) -> str:
    """Several of them, joined by commas."""
    value = text(environ, name, default)
    servers = [server.strip() for server in value.split(",")]
    for server in servers:
        try:
            usable = host_and_port(server)[1] > 0
        except ValueError:
            usable = False
        if not usable:
            raise wrong(name, value, f"a list of host:port joined by commas, such as {default}")
    return ",".join(servers)


def named_addresses(environ: Mapping[str, str], name: str) -> Mapping[str, str]:
    """Some of ``name=host:port``, joined by commas; none by default."""
    value = text(environ, name, "")
    found = {}
    for each in value.split(",") if value else ():
        part, _, where = each.strip().partition("=")
        try:
            usable = bool(part) and host_and_port(where)[1] > 0
        except ValueError:
            usable = False
        if not usable:
            raise wrong(name, value, "a list of part=host:port joined by commas, such as ingest=127.0.0.1:7173")
        found[part] = where
    return found


def integer(environ: Mapping[str, str], name: str, default: int, *, lowest: int, highest: int) -> int:
    value = text(environ, name, str(default))
    if not (value.isascii() and value.isdigit() and lowest <= int(value) <= highest):
        raise wrong(name, value, f"a whole number from {lowest} to {highest}")
    return int(value)


def identifier(environ: Mapping[str, str], name: str, default: str) -> str:
    value = text(environ, name, default)
    if not all(c.isascii() and (c.isalnum() or c in "-_.") for c in value) or len(value) > 100:
        raise wrong(name, value, "letters, digits, -, _ and .")
    return value


def choice(environ: Mapping[str, str], name: str, default: str, choices: Sequence[str]) -> str:
    value = text(environ, name, default).upper()
    if value not in choices:
        raise wrong(name, environ[name], f"one of {', '.join(choices)}")
    return value


def flag(environ: Mapping[str, str], name: str) -> bool:
    value = text(environ, name, "no").lower()
    if value not in YES | NO:
        raise wrong(name, value, "yes or no")
    return value in YES


def optional_address(environ: Mapping[str, str], name: str) -> str | None:
    """An address to listen on, or None where there is none or it says ``none``."""
    if text(environ, name, "none").lower() == "none":
        return None
    return address(environ, name, "127.0.0.1:7170", lowest_port=0)


def optional_port(environ: Mapping[str, str], name: str) -> int | None:
    value = text(environ, name, "none")
    if value.lower() == "none":
        return None
    if not (value.isascii() and value.isdigit() and int(value) <= 65535):
        raise wrong(name, value, "a port from 1 to 65535, or 0 or none for no page")
    return int(value) or None


def file(environ: Mapping[str, str], name: str) -> Path | None:
    """A file that must be there, absolutely: a service need not run where it was started."""
    value = text(environ, name, "")
    if not value:
        return None
    path = Path(value).absolute()
    if not path.is_file():
        raise ConfigError(f"{name}: there is no file {path}", hint=f"{name} is the path of a file")
    return path


def secret(environ: Mapping[str, str], name: str) -> str | None:
    """A secret in the variable itself, or in the file that ``<name>_FILE`` names."""
    path = file(environ, f"{name}_FILE")
    direct = text(environ, name, "")
    if path is None:
        return direct or None
    if direct:
        raise ConfigError(f"both {name} and {name}_FILE are set", hint="unset one of them")
    return read_secret(path)


def read_secret(path: Path) -> str:
    """What a file holds, without the line end behind it."""
    try:
        held = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the secret in {path} cannot be read: {error}") from error
    if not held or "\n" in held:
        raise ConfigError(f"{path} must hold one line with the secret", hint="and nothing else")
    return held


def host_and_port(address: str) -> tuple[str, int]:
    """Split ``host:port``; a host in brackets is an IPv6 address. Raises ValueError if it is neither."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not host:port")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or any(c.isspace() or c in "/,[]" for c in bare) or (":" in bare and bare == host):
        raise ValueError(f"{address!r} is not host:port")
    return bare, int(port)
