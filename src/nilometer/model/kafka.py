"""How a Kafka cluster is reached: its address, credentials, and which addresses are allowed.

Streams and deliveries share this. It builds settings for librdkafka but knows no client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from nilometer.errors import InputError
from nilometer.model.options import Option, one_of, seconds, yes_or_no
from nilometer.model.reach import Reach, addresses_within, needed_reach, reach_of

_PORT: Final = 9092
_TLS_PORT: Final = 9093
_MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SETTINGS: Final = {
    "client.id": "nilometer",
    "enable.metrics.push": False,
    "log_level": 4,
}

CLIENT_OPTIONS: Final = (
    Option("user", "who connects", str),
    Option("password", "the user's password", str, is_secret=True),
    Option("sasl", f"how the user logs in: {', '.join(_MECHANISMS)}", one_of(*_MECHANISMS)),
    Option("tls", "whether to use TLS", yes_or_no, False),
    Option("ca", "a file of certificates to trust, in place of the system's", Path),
    Option("cert", "a file with the certificate to present", Path),
    Option("cert_key", "the file with its key", Path),
    Option("insecure", "whether to trust any certificate", yes_or_no, False),
    Option("private", "whether a name may resolve to a private address", yes_or_no, False),
    Option("timeout", "how long an answer of the cluster may take", seconds, 10.0),
)


def read_kafka_url(address: str) -> dict[str, str]:
    """Servers, user, password and topic of an address, as far as it names them.

    >>> read_kafka_url("kafka://ann:x@one,two:9093/plant")
    {'servers': 'one,two:9093', 'topic': 'plant', 'user': 'ann', 'password': 'x'}
    >>> read_kafka_url("plant")
    {'topic': 'plant'}
    """
    scheme, separator, rest = address.partition("://")
    if not separator:
        return {"topic": address} if address else {}
    if scheme.lower() != "kafka":
        raise InputError(
            "an address that is not Kafka's",
            detail=f"got {address!r}",
            hint="write kafka://host/topic",
        )
    authority, _, topic = rest.partition("/")
    account, at, servers = authority.rpartition("@")
    user, colon, password = account.partition(":")
    named = {"servers": servers, "topic": topic}
    if at:
        named["user"] = unquote(user)
    if colon:
        named["password"] = unquote(password)
    return {name: text for name, text in named.items() if text}


def read_topics(text: str) -> tuple[str, ...]:
    """Names of topics, separated by commas.

    >>> read_topics("plant, yard")
    ('plant', 'yard')
    """
    topics = tuple(name.strip() for name in text.split(","))
    for name in topics:
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            raise InputError(
                f"a topic of Kafka cannot be named {name!r}",
                hint="a name has letters, digits, '.', '_' and '-'; write commas between topics",
            )
    return tuple(dict.fromkeys(topics))


def read_servers(text: str, *, tls: bool = False) -> tuple[tuple[str, int], ...]:
    """Hosts and ports, separated by commas.

    >>> read_servers("one, [::1]:9000")
    (('one', 9092), ('::1', 9000))
    """
    return tuple(_host_and_port(place.strip(), tls) for place in text.split(","))


def client_settings(
    servers: Iterable[tuple[str, int]], chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of librdkafka for any client of a cluster."""
    timeout = max(1, round(chosen["timeout"] * 1000))
    places = [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in servers]
    settings = {
        **_SETTINGS,
        "bootstrap.servers": ",".join(places),
        "socket.timeout.ms": min(300_000, max(1000, timeout)),
        "socket.connection.setup.timeout.ms": min(300_000, max(1000, timeout)),
    }
    return settings | _security(chosen)


def reach_of_cluster(servers: Iterable[tuple[str, int]], *, private: bool) -> Reach:
    """How far away the brokers of a cluster may be: as far as the declared servers, or nearer.

    Raises OSError if a declared server leads where it must not.
    """
    reached = Reach.PRIVATE if private else Reach.PUBLIC
    for host, port in servers:
        declared = reach_of(host, may_be_private=private)
        for address in addresses_within(host, port, declared):
            reached = max(reached, needed_reach(address))
    return reached


def check_brokers(brokers: Iterable[tuple[str, int]], reach: Reach) -> None:
    """Refuse a cluster whose brokers claim addresses beyond what was declared.

    A broker tells clients by which names it is reached, so whoever poses as one could send us
    anywhere.
    """
    for host, port in brokers:
        addresses_within(host, port, reach)


def _host_and_port(place: str, tls: bool) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = place, ""
    if not host.strip("[]") or (port and not (port.isdecimal() and 0 < int(port) < 65_536)):
        raise InputError(
            "cannot read a server of Kafka", detail=f"got {place!r}", hint="write host:9092"
        )
    return host.strip("[]"), int(port) if port else (_TLS_PORT if tls else _PORT)


def uses_tls(chosen: Mapping[str, Any]) -> bool:
    """Whether the options ask for TLS."""
    return any(chosen[name] for name in ("tls", "ca", "cert", "insecure"))


def _security(chosen: Mapping[str, Any]) -> dict[str, Any]:
    secure, known = uses_tls(chosen), chosen["user"] is not None
    protocols = {
        (False, False): "plaintext",
        (True, False): "ssl",
        (False, True): "sasl_plaintext",
        (True, True): "sasl_ssl",
    }
    settings: dict[str, Any] = {"security.protocol": protocols[secure, known]}
    if secure:
        files = {
            "ssl.ca.location": chosen["ca"],
            "ssl.certificate.location": chosen["cert"],
            "ssl.key.location": chosen["cert_key"],
        }
        settings |= {name: str(path) for name, path in files.items() if path is not None}
        settings["enable.ssl.certificate.verification"] = not chosen["insecure"]
    if known:
        if chosen["password"] is None:
            raise InputError(
                f"user {chosen['user']} has no password", hint="give the option password"
            )
        settings["sasl.mechanisms"] = (chosen["sasl"] or "plain").upper()
        settings["sasl.username"], settings["sasl.password"] = chosen["user"], chosen["password"]
    elif chosen["sasl"] is not None:
        raise InputError("option sasl without a user", hint="give the options user and password")
    return settings
