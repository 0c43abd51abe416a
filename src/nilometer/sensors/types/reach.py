"""Which addresses of the network a sensor may lie at, given what was declared of it.

A name is resolved again and again, by servers that are not ours: whoever answers for it could
point us at this machine, at others behind the same firewall, or at a cloud's metadata service.
"""

from __future__ import annotations

import asyncio
import socket
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_OWN_ENDINGS: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
"""Names that no server of the public network answers for."""


_NAT64: Final = IPv6Network("64:ff9b::/96")


class Reach(IntEnum):
    """Where a host may lie; each includes those before it."""

    PUBLIC = 0
    PRIVATE = 1
    """This machine, and networks behind the same firewall."""
    ANYWHERE = 2
    """Link-local and special addresses, too."""


def reach_of(host: str, *, may_be_private: bool) -> Reach:
    """What was declared of a host: an address means itself, a name what it may resolve to.

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
    is_own = "." not in name or name.endswith(_OWN_ENDINGS)
    return Reach.PRIVATE if is_own or may_be_private else Reach.PUBLIC


async def resolve(host: str, port: int, reach: Reach) -> list[str]:
    """The addresses of a host; raises OSError if none of them is within reach."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    allowed = [one for one in addresses if _needs(one) <= reach]
    if not allowed:
        raise OSError(
            f"{host} leads to {addresses[0]}, which is not a public address: declare the sensor "
            "with that address, or with private = true"
            if _needs(addresses[0]) == Reach.PRIVATE
            else f"{host} leads to {addresses[0]}, a special address: declare the sensor with it"
        )
    return allowed


def _needs(address: str) -> Reach:
    found = _literal(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = _embedded(found) or found
    if found is None or found.is_link_local or found.is_multicast or found.is_unspecified:
        return Reach.ANYWHERE
    return Reach.PUBLIC if found.is_global else Reach.PRIVATE


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which packets for this one go in the end, if there is one."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
