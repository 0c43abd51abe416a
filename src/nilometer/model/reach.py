"""Which network addresses may be connected to, given what was declared about a host.

Everything that a statement makes the database contact passes here: sensors and receivers. A name
is resolved again and again, by servers that are not ours: whoever answers for it could point us at
this machine, at others behind the same firewall, or at a cloud's metadata service. So what is
checked, each time, is the address that is connected to, and never the name alone.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, TypeVar

from nilometer.errors import InputError

_OWN_ENDINGS: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
"""Names that no public name server answers for."""
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_METADATA: Final = frozenset(
    ip_address(one) for one in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254")
)
"""Where clouds keep their metadata, besides link-local addresses."""
_Connected = TypeVar("_Connected")


class Reach(IntEnum):
    """How far away a host may be; each level includes those before it."""

    PUBLIC = 0
    PRIVATE = 1
    """This machine, and networks behind the same firewall."""
    ANYWHERE = 2
    """Link-local and special addresses, too."""


def reach_of(host: str, *, may_be_private: bool) -> Reach:
    """The reach declared by naming a host: an address itself, or whatever a name may resolve to.

    Refuses numbers that some programs read as an address and others do not (0x7f.1, 2130706433).

    >>> reach_of("169.254.1.7", may_be_private=False).name
    'ANYWHERE'
    >>> reach_of("boiler", may_be_private=False).name
    'PRIVATE'
    >>> reach_of("sensors.example.com", may_be_private=False).name
    'PUBLIC'
    """
    if _literal(host) is not None:
        return Reach.ANYWHERE
    name = host.lower().rstrip(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        raise InputError(
            f"the host {host} is neither a name nor an address in its usual form",
            hint="write four decimal numbers such as 192.168.1.7, an IPv6 address, or a name",
        )
    is_own = "." not in name or name.endswith(_OWN_ENDINGS)
    return Reach.PRIVATE if is_own or may_be_private else Reach.PUBLIC


async def connect_within(
    host: str, port: int, reach: Reach, connect: Callable[[str], Awaitable[_Connected]]
) -> _Connected:
    """Connect to the first address of a host that answers, among those within reach.

    Raises OSError if no address is within reach.
    """
    loop = asyncio.get_running_loop()
    resolved = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    *others, last = _within(host, resolved, reach)
    for address in others:
        with suppress(OSError):
            return await connect(address)
    return await connect(last)


def addresses_within(host: str, port: int, reach: Reach) -> list[str]:
    """The addresses of a host that may be connected to; raises OSError if there are none.

    It blocks while the name is resolved; in an event loop, use `connect_within`.
    """
    return _within(host, socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), reach)


def _within(host: str, resolved: Iterable[tuple[Any, ...]], reach: Reach) -> list[str]:
    addresses = list(dict.fromkeys(str(one[4][0]) for one in resolved))
    allowed = [one for one in addresses if needed_reach(one) <= reach]
    if not allowed:
        raise OSError(
            f"{host} resolves to {addresses[0]}, which is not a public address: declare that "
            "address itself, or private = true"
            if needed_reach(addresses[0]) == Reach.PRIVATE
            else f"{host} resolves to {addresses[0]}, a special address: declare that address "
            "itself"
        )
    return allowed


def needed_reach(address: str) -> Reach:
    """The reach that must be declared before a network address may be connected to.

    >>> needed_reach("10.0.0.7").name
    'PRIVATE'
    """
    literal = _literal(address)
    if isinstance(literal, IPv6Address):
        literal = _embedded(literal) or literal
    if literal is None or _is_special(literal):
        return Reach.ANYWHERE
    return Reach.PUBLIC if literal.is_global else Reach.PRIVATE


def _is_special(address: IPv4Address | IPv6Address) -> bool:
    if address.is_loopback:
        return False
    return (
        address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or address in _METADATA
    )


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets for this address end up at, if there is one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
