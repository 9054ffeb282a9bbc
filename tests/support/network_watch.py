"""Runs a command in a network of its own and prints where its packets were sent, as JSON.

`unshare --user --map-root-user --net --fork python network_watch.py SECONDS COMMAND...` makes the
network. Its only device is the loopback device, and every address is routed there: a packet to any
host passes this program, and nothing leaves the machine.
"""

import ctypes
import fcntl
import json
import socket
import struct
import subprocess
import sys
import time

_LOOPBACK = b"lo"
_SIOCADDRT, _SIOCSIFFLAGS = 0x890B, 0x8914
_IFF_UP, _IFF_RUNNING, _RTF_UP = 0x1, 0x40, 0x1
_ETH_P_ALL, _ETH_P_IP = 0x3, 0x0800
_PROTOCOLS = {6: "tcp", 17: "udp"}


def main(seconds: float, command: list[str]) -> int:
    _open_loopback()
    seen: dict[str, None] = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ETH_P_ALL)) as packets:
        process = subprocess.Popen(command, stdout=sys.stderr)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and process.poll() is None:
            packets.settimeout(min(left, 0.5))
            try:
                packet, (_, protocol, *_) = packets.recvfrom(65535)
            except TimeoutError:
                continue
            if protocol == _ETH_P_IP:
                seen[_destination(packet)] = None
        process.terminate()
        status = process.wait()
    print(json.dumps(list(seen)))
    return status


def _open_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags = struct.pack("16sh14x", _LOOPBACK, _IFF_UP | _IFF_RUNNING)
        fcntl.ioctl(control, _SIOCSIFFLAGS, flags)
        any_address = struct.pack("H14x", socket.AF_INET)
        device = bytearray(_LOOPBACK + b"\0")
        address = _address_of(device)
        # struct rtentry of linux/route.h: destination, gateway and mask are 0.0.0.0.
        route = struct.pack(
            "L16s16s16sHhLPhPLLH",
            0, any_address, any_address, any_address, _RTF_UP, 0, 0, 0, 0, address, 0, 0, 0,
        )  # fmt: skip
        fcntl.ioctl(control, _SIOCADDRT, route)


def _address_of(buffer: bytearray) -> int:
    return ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))


def _destination(packet: bytes) -> str:
    """Returns `PROTOCOL ADDRESS:PORT`, and for a DNS query the name that it asks for."""
    header_bytes = (packet[0] & 0xF) * 4
    protocol = _PROTOCOLS.get(packet[9], str(packet[9]))
    port = int.from_bytes(packet[header_bytes + 2 : header_bytes + 4], "big")
    if (protocol, port) == ("udp", 53):
        return f"look-up of {_queried_name(packet[header_bytes + 8 + 12 :])}"
    return f"{protocol} {socket.inet_ntoa(packet[16:20])}:{port}"


def _queried_name(question: bytes) -> str:
    labels, at = [], 0
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
