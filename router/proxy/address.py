"""Where an engine or a control plane is, taken from its URL."""

from urllib.parse import urlsplit

import msgspec


class Address(msgspec.Struct, frozen=True):
    """Host, port and path prefix of a base URL."""

    host: str
    port: int
    tls: bool
    prefix: bytes

    @property
    def host_header(self) -> bytes:
        """The value of Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.tls else 80
        return host.encode() if self.port == default else f"{host}:{self.port}".encode()


def parse_address(url: str) -> Address:
    """Take a base URL apart.

    :raises ValueError: for a URL without a host, or of another scheme than http and https.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is not an http or https URL")
    tls = parts.scheme == "https"
    port = parts.port if parts.port is not None else (443 if tls else 80)
    return Address(parts.hostname, port, tls, parts.path.rstrip("/").encode("ascii"))
