"""The log of refused requests: a line for each would cost more than the refusal itself."""

import asyncio
import logging
from typing import Final

from containers.serving.logs import log_event

_logger = logging.getLogger(__name__)

_SECONDS_PER_LINE: Final = 1.0


class RefusalLog:
    """Counts refusals, and writes at most one line a second."""

    def __init__(self) -> None:
        self._count = 0

    def count(self) -> None:
        """Counts a refusal; called on the event loop."""
        if not self._count:
            asyncio.get_running_loop().call_later(_SECONDS_PER_LINE, self.write)
        self._count += 1

    def write(self) -> None:
        """Writes the line of what was counted, if anything was."""
        if self._count:
            log_event(_logger, logging.WARNING, "requests_refused", requests=self._count)
        self._count = 0
