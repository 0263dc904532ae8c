"""Which hosts a clone may connect to: public ones, checked at the address really used.

The name is resolved once, every address that it has is checked, and the connection goes to one of
those; so a name that changes its address between the check and the connection gains nothing, and
every redirect passes the same check.
"""

import ipaddress
import socket
from collections.abc import Callable
from typing import Final

from ibid.domain.errors import SourceRejected

AddressCheck = Callable[[str], bool]

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_V4_BITS: Final = 0xFFFF_FFFF


def is_public(address: str) -> bool:
    """Say if an IP address is on the public internet.

    Private, loopback, link-local, shared, reserved, multicast and unspecified ones are not; an
    IPv6 address that holds an IPv4 one is what that one is.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is None and parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & _V4_BITS)
        if inner is not None:
            return is_public(str(inner))
        if parsed.teredo is not None:
            return False
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def connect(host: str, port: int, *, allowed: AddressCheck, timeout_s: float) -> socket.socket:
    """Connect to a host at an address that was checked.

    Args:
        host: A name or an address.
        port: TCP.
        allowed: Checks one address; a host with any address that fails is refused.
        timeout_s: For each address tried, above 0.

    Raises:
        SourceRejected: An address is not allowed.
        OSError: The name has no address, or none answers.
    """
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    for *_, address in found:
        if not allowed(str(address[0])):
            raise SourceRejected(f"The host {host!r} is not on the public internet")
    failure = OSError(f"{host!r} has no address")
    for family, kind, protocol, _, address in found:
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(timeout_s)
            connection.connect(address)
        except OSError as error:
            connection.close()
            failure = error
        else:
            return connection
    raise failure
