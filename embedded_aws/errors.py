"""What the embedded AWS tells the person who starts it, as opposed to the callers of its APIs."""

from __future__ import annotations


class LocalAwsError(Exception):
    """The embedded AWS cannot do what was asked, for a reason that the user can act on.

    Args:
        message: what is wrong and what to do about it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
