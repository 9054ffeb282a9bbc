"""The error of a benchmark that ends early."""


class BenchmarkError(Exception):
    """A measurement cannot be made, or the measured program did not do its work.

    The message has the output of the command that failed. Whatever starts, measures or reads
    something here may raise it, and the harness prints it.
    """
