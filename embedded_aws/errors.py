"""Errors for the person who starts the embedded AWS, as opposed to callers of its APIs."""


class LocalAwsError(Exception):
    """The embedded AWS cannot do what was asked; the message says why, and what to do about it."""
