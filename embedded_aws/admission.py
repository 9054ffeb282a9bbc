"""Which requests the embedded AWS answers: never those that a web page sends.

It runs commands for its callers, as a build does. A browser lets every page send requests to a
loopback port. A page whose own name was bound to this address even reads the answers. A browser
names the page in `Origin` or `Sec-Fetch-Site`, and the server in `Host`. The SDKs, the AWS CLI,
s5cmd and the CDK never send the first two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_NAMES: Final = ("localhost", "127.0.0.1")
# Nobody may fill the log.
_SHOWN_CHARACTERS: Final = 100
# Typed into the address bar by the user.
_BY_USER: Final = "none"
# moto's own pages would reset the account, for callers without a signature.
_HIDDEN: Final = "/moto-api"


def find_refusal(environ: WSGIEnvironment) -> str | None:
    """Returns why a request is refused, or None."""
    # Any port, because a forwarded one has another number.
    name = environ.get("HTTP_HOST", "").partition(":")[0]
    if name not in _NAMES:
        return (
            f"The embedded AWS has no name {name[:_SHOWN_CHARACTERS]!r}: use {' or '.join(_NAMES)}."
        )
    if "HTTP_ORIGIN" in environ or environ.get("HTTP_SEC_FETCH_SITE", _BY_USER) != _BY_USER:
        return "The embedded AWS answers no web page."
    # Every path that moto takes for one of them.
    if environ.get("PATH_INFO", "").startswith(_HIDDEN):
        return f"The embedded AWS has no {_HIDDEN}."
    return None
