"""Errors for the person who starts the embedded AWS, as opposed to callers of its APIs."""


class LocalAwsError(Exception):
    """The embedded AWS cannot do what was asked, for a reason that the user can act on.

    The message says what is wrong and what to do about it.
    """
