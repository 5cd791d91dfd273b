"""As much of an SMTP server as takes a mail."""

import asyncio
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from types import TracebackType


@dataclass
class MailServer:
    """Takes mails on a port of its own; ``receiver_code`` is its answer to every RCPT."""

    receiver_code: int = 250
    mails: list[EmailMessage] = field(default_factory=list)

    async def __aenter__(self) -> "MailServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 fake\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.split(":")[0].split()[0].upper()
            if verb == "DATA":
                writer.write(b"354 go\r\n")
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(data[:-5], policy=policy.default))  # type: ignore[arg-type]
                writer.write(b"250 taken\r\n")
            elif verb == "RCPT":
                writer.write(f"{self.receiver_code} so\r\n".encode())
            elif verb == "QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"250 fine\r\n")
            await writer.drain()
        writer.close()
