"""The exit codes of every family's program, whichever command it runs."""

from typing import Final

EXIT_OK: Final = 0
# The log has one line that tells an operator what to do.
EXIT_OPERATOR_PROBLEM: Final = 1
# A bug of Slipway; the log has its traceback.
EXIT_OWN_FAULT: Final = 2
