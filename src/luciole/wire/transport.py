"""What both ends of the network agree on: the method, keep-alives, addresses, and what may not go without TLS."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from luciole import limits
from luciole.errors import InvalidValue

SERVICE: Final = "luciole.wire.v1.Gateway"
METHOD: Final = "Session"

#: Options of both ends. A dead peer is noticed within a few seconds although nothing is being sent.
CHANNEL_OPTIONS: Final = (
    ("grpc.max_send_message_length", limits.FRAME_BYTES_MAX),
    ("grpc.max_receive_message_length", limits.FRAME_BYTES_MAX),
    ("grpc.keepalive_time_ms", limits.KEEPALIVE_PAUSE_US // limits.MS_US),
    ("grpc.keepalive_timeout_ms", limits.KEEPALIVE_TIMEOUT_US // limits.MS_US),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a gateway is."""

    host: str
    port: int  #: 0 only for listening: the system chooses

    @property
    def text(self) -> str:
        """The address as it is written."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether the other end can only be this machine; a name other than localhost is not trusted to be it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str, *, field: str) -> Address:
    """Return an address.

    Args:
        text: "host:port", with an IPv6 host in brackets.
        field: the setting that it comes from, for the error.

    Raises:
        InvalidValue: it is none.
    """
    host, colon, port = text.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not port.isascii() or not port.isdecimal() or int(port) > limits.PORT_MAX:
        raise InvalidValue(f"{field}: {text[:80]!r} is no address; write host:port, such as 127.0.0.1:7440")
    if ":" in bare and host == bare:
        raise InvalidValue(f"{field}: {text[:80]!r} is ambiguous; write an IPv6 host in brackets: [::1]:7440")
    return Address(host=bare, port=int(port))


def refuse_bare_listening(address: Address, *, encrypted: bool, token: str | None) -> None:
    """Refuse to listen to other machines without both encryption and a shared token.

    Raises:
        InvalidValue: the message names the settings that are missing.
    """
    missing = [*([] if encrypted else ["tls_cert", "tls_key"]), *([] if token else ["token"])]
    if missing and not address.loopback:
        raise InvalidValue(
            f"listen: {address.text} can be reached from other machines, and whoever reaches it may run and read "
            f"everything; set {' and '.join(missing)}, or listen on 127.0.0.1"
        )
