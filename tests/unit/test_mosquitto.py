"""The brokers that other tests start: ready, closed to strangers, and with a memory if asked."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from paho.mqtt import MQTTException, publish, subscribe

from tests.mosquitto import Mosquitto, make_certificates, start_mosquitto


def _publish(broker: Mosquitto, payload: str, *login: str) -> None:
    auth = {"username": login[0], "password": login[1]} if login else None
    publish.single("t", payload, 1, retain=True, hostname=broker.host, port=broker.port, auth=auth)


def _kept(broker: Mosquitto) -> bytes:
    """The message that the broker has retained."""
    return bytes(subscribe.simple("t", hostname=broker.host, port=broker.port).payload)


def test_it_takes_messages_as_soon_as_it_is_there(mosquitto: Mosquitto) -> None:
    _publish(mosquitto, "x")
    assert _kept(mosquitto) == b"x"


def test_only_its_users_may_connect(tmp_path: Path) -> None:
    with start_mosquitto(tmp_path, passwords={"nile": "gauge"}) as broker:
        with pytest.raises(MQTTException):
            _publish(broker, "x")
        with pytest.raises(MQTTException):
            _publish(broker, "x", "nile", "wrong")
        _publish(broker, "x", "nile", "gauge")


def test_its_certificate_is_the_authoritys(tmp_path: Path) -> None:
    tls = make_certificates(tmp_path / "certificates")
    trusting = ssl.create_default_context(cafile=str(tls.authority))
    with start_mosquitto(tmp_path / "broker", tls=tls) as broker:
        assert broker.url == f"mqtts://{broker.host}:{broker.port}"
        _shake_hands(broker, trusting)
        with pytest.raises(ssl.SSLCertVerificationError):
            _shake_hands(broker, ssl.create_default_context())


def _shake_hands(broker: Mosquitto, context: ssl.SSLContext) -> None:
    with (
        socket.create_connection((broker.host, broker.port)) as plain,
        context.wrap_socket(plain, server_hostname=broker.host),
    ):
        pass


def test_what_it_keeps_survives_a_stop(tmp_path: Path) -> None:
    with start_mosquitto(tmp_path, persistence=True) as broker:
        _publish(broker, "x")
        port = broker.port
        broker.stop()
        broker.start()
        assert broker.port == port
        assert _kept(broker) == b"x"
