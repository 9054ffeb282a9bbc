"""Writes a shared library with one function, for tests of what the dynamic loader finds."""

import platform
import struct
from pathlib import Path

# e_machine, and the machine code of a function that returns the number in `{}`.
_X86_64, _AARCH64 = 62, 183
_HEADER_BYTES, _SEGMENT_BYTES, _SEGMENTS = 64, 56, 3
_PAGE_BYTES = 0x10000
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_READ_WRITE, _READ_WRITE_EXECUTE = 6, 7
_GLOBAL_FUNCTION = 0x12


def write_library(path: Path, function: str, *, returns: int) -> None:
    """Writes an ELF library for this machine whose only function returns a number below 65536.

    A compiler would do, and not every machine that runs the tests has one.
    """
    machine, code = _function(returns)
    names = b"\0" + function.encode() + b"\0"
    hash_table = struct.pack("<5I", 1, 2, 1, 0, 0)
    start = _HEADER_BYTES + _SEGMENTS * _SEGMENT_BYTES
    names_at = start
    symbols_at = _aligned(names_at + len(names))
    hash_at = symbols_at + 2 * 24
    dynamic_at = _aligned(hash_at + len(hash_table))
    # DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL.
    entries = ((4, hash_at), (5, names_at), (6, symbols_at), (10, len(names)), (11, 24), (0, 0))
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    code_at = dynamic_at + len(dynamic)
    size = code_at + len(code)
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, _GLOBAL_FUNCTION, 0, 1, code_at, len(code))
    content = bytearray(size)
    for place, part in (
        (0, _header(machine)),
        (
            _HEADER_BYTES,
            # The loader writes into the dynamic section.
            _segment(_LOAD, _READ_WRITE_EXECUTE, 0, size, _PAGE_BYTES)
            + _segment(_DYNAMIC, _READ_WRITE, dynamic_at, len(dynamic), 8)
            + _segment(_STACK, _READ_WRITE, 0, 0, 16),
        ),
        (names_at, names),
        (symbols_at, symbols),
        (hash_at, hash_table),
        (dynamic_at, dynamic),
        (code_at, code),
    ):
        content[place : place + len(part)] = part
    path.write_bytes(content)


def _function(returns: int) -> tuple[int, bytes]:
    if platform.machine() == "aarch64":
        return _AARCH64, struct.pack("<II", 0x52800000 | returns << 5, 0xD65F03C0)
    return _X86_64, b"\xb8" + struct.pack("<I", returns) + b"\xc3"


def _header(machine: int) -> bytes:
    identity = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    shared_object = 3
    return identity + struct.pack(
        "<HHIQQQIHHHHHH",
        shared_object, machine, 1, 0, _HEADER_BYTES, 0, 0,
        _HEADER_BYTES, _SEGMENT_BYTES, _SEGMENTS, 0, 0, 0,
    )  # fmt: skip


def _segment(kind: int, flags: int, place: int, size: int, alignment: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, place, place, place, size, size, alignment)


def _aligned(place: int) -> int:
    return (place + 7) // 8 * 8
