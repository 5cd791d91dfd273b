"""HOST:PORT, as people write it."""

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read ``HOST:PORT``, ``[HOST]:PORT`` or ``:PORT`` (then on 127.0.0.1).

        :raises ValueError: for anything else.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return cls(host.strip("[]") or "127.0.0.1", int(port))

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for every address of the machine."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """Where a program on this machine reaches it."""
        if not self.is_wildcard:
            return f"http://{self}"
        return f"http://{Address('::1' if ':' in self.host else '127.0.0.1', self.port)}"
