"""Server-sent events, of which a streamed answer consists.

(https://html.spec.whatwg.org/multipage/server-sent-events.html)
"""

from typing import Final

MEDIA_TYPE: Final = "text/event-stream"


def event(data: bytes) -> bytes:
    """Returns one event; the data is a single line, such as JSON."""
    return b"data:" + data + b"\n\n"


def spaced_event(data: bytes) -> bytes:
    """Returns the same event with a space before the data, as OpenAI's server sends it.

    The standard ignores the space. Some clients of OpenAI's API look for it.
    """
    return event(b" " + data)
