"""Decodes a file's bytes, or says which encoding they probably have and how to change it."""

import codecs

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError

# UTF-32 first: its little-endian mark begins with the mark of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def decode(raw: bytes, shown_as: str) -> str:
    """Returns the text of a file; raises `UserError` if it is not UTF-8."""
    marked = next((name for mark, name in _MARKS if raw.startswith(mark)), None)
    if marked is None and raw[1:2] == b"\0":
        marked = "UTF-16LE"  # an ASCII letter without a mark
    elif marked is None and raw[:1] == b"\0":
        marked = "UTF-16BE"
    if marked is not None:
        raise _not_utf8(
            Location(shown_as), f"is {marked} text, not UTF-8", _converted(marked, shown_as)
        )
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        place = Location(
            shown_as, before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode()) + 1
        )
        byte = raw[error.start]
        if not _may_be_latin_1(raw):
            raise _not_utf8(
                place, f"is not UTF-8 text: it has the byte 0x{byte:02X} here", "Save it as UTF-8."
            ) from None
        letter = bytes([byte]).decode("cp1252")
        raise _not_utf8(
            place,
            f"is not UTF-8 text: it has the byte 0x{byte:02X} here, which is `{letter}` in Latin-1",
            _converted("WINDOWS-1252", shown_as),
        ) from None


def _may_be_latin_1(raw: bytes) -> bool:
    """Returns whether the bytes are text in Windows' superset of Latin-1."""
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\t\r\n\u00a0\u00ad" for letter in text)


def _converted(encoding: str, shown_as: str) -> str:
    return (
        "Save it as UTF-8 in your editor, or convert it: "
        f"`iconv -f {encoding} -t UTF-8 {shown_as} > converted.yaml`."
    )


def _not_utf8(place: Location, message: str, remedy: str) -> UserError:
    problem = Problem(
        Code.FILE_UNREADABLE, Kind.SHAPE, f"the file {message}", remedy, location=place
    )
    return UserError([problem])
