"""Which addresses an instance may have.

The control plane and the routers send requests to whatever is registered, so an address is a way to make them talk to
something. Loopback and private networks are where engines live and are allowed; link-local addresses are where clouds
keep their metadata services and are refused unless the operator allows them.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from django.conf import settings

_SCHEMES = frozenset({"http", "https"})
_MAX_LENGTH = 500
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata", "metadata.goog"})
_METADATA_ADDRESSES = frozenset({"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "192.0.0.192"})


def address_faults(url: str) -> list[str]:
    """Return everything that is wrong with the address of an instance; names are not looked up here."""
    if len(url) > _MAX_LENGTH:
        return [f"It has {len(url)} characters, but may have {_MAX_LENGTH}."]
    if any(character.isspace() or ord(character) < 0x20 for character in url):
        return ["It contains white space or control characters."]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return [f"It is not a URL: {error}."]
    faults = []
    if parts.scheme not in _SCHEMES:
        faults.append("It must begin with http:// or https://.")
    if not parts.hostname:
        faults.append("It names no host.")
    if parts.username is not None or parts.password is not None:
        faults.append("It carries a user name or password; give credentials apart from it.")
    if parts.query or parts.fragment:
        faults.append("It must have neither a query nor a fragment.")
    if port == 0:
        faults.append("Port 0 cannot be connected to.")
    if parts.hostname and (reason := host_fault(parts.hostname)):
        faults.append(reason)
    return faults


def host_fault(host: str) -> str | None:
    """Return why a host may not be connected to, or None."""
    if settings.ALLOW_LINK_LOCAL:
        return None
    if host.rstrip(".").lower() in _METADATA_NAMES:
        return f"{host} is a cloud's metadata service."
    address = _literal(host)
    if address is None:
        return None
    if str(address) in _METADATA_ADDRESSES:
        return f"{host} is a cloud's metadata service."
    if address.is_link_local:
        return f"{host} is a link-local address, where clouds keep their metadata services."
    if address.is_multicast or address.is_unspecified:
        return f"{host} is not the address of one machine."
    return None


def normalized(url: str) -> str:
    """Return the address without slashes at its end, so that equal addresses are equal texts."""
    return url.strip().rstrip("/")


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an address in any of the ways that a resolver accepts (``0x7f000001`` and ``127.1`` too)."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped or found
