"""Errors of the runtime, and what is to happen to a result."""


class CppExecutorError(RuntimeError):
    """The runtime itself failed: the handler ends the worker. Nothing here raises it."""
