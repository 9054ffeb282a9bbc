"""The bound of the queue, which each copy of the model keeps itself.

Triton can bound its queue by a size and by a time. With either, it hands a batch over only when it
sees that a copy waits. It can miss that, and then looks again half a second later: see
`WaitForPayloadSlotAvailable` in https://github.com/triton-inference-server/core. Without them it
does not wait, but the queue has no bound. So each copy asks Triton's metrics how many requests
wait, and refuses the oldest of those that are too many.

This module keeps to Python 3.10.
"""

import http.client
import re
import time
from collections.abc import Callable
from typing import Final

# Asking takes about a millisecond.
_SECONDS_BETWEEN_QUESTIONS: Final = 0.1
_TIMEOUT_SECONDS: Final = 1.0


class Backlog:
    """Counts the requests that are to be refused.

    Args:
        read_length: returns the number of requests that wait in Triton.
        max_length: most requests that may wait.
        copies: copies of the model, which share the refusals.
        clock: returns seconds.
    """

    def __init__(
        self,
        read_length: Callable[[], int],
        *,
        max_length: int,
        copies: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_length, self._clock = read_length, clock
        self._max_length, self._copies = max_length, copies
        self._asked_at = float("-inf")
        self._too_many = 0

    def refuse(self, requests: int, *, is_full: bool) -> int:
        """Returns how many of a batch's requests to refuse, the first ones.

        Args:
            requests: requests of the batch.
            is_full: whether others may wait behind it. Else none do, and Triton is not asked.
        """
        if not is_full:
            self._too_many = 0
            return 0
        now = self._clock()
        if now - self._asked_at >= _SECONDS_BETWEEN_QUESTIONS:
            self._asked_at = now
            excess = max(0, self._read_length() - self._max_length)
            self._too_many = -(-excess // self._copies)
        refused = min(requests, self._too_many)
        self._too_many -= refused
        return refused


def waiting_requests(port: int, model: str) -> int:
    """Returns the number of requests that wait for a model, from Triton's metrics.

    Until all models are warm, Triton takes no requests and does not serve its metrics: 0.

    Args:
        port: of the metrics, on loopback.
        model: its name.

    Raises:
        OSError: Triton does not answer.
        LookupError: the metrics do not have the number.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics")
        page = connection.getresponse().read().decode()
    except ConnectionRefusedError:
        return 0
    except http.client.HTTPException as error:
        raise OSError(f"the metrics cannot be read: {error!r}") from error
    finally:
        connection.close()
    pattern = rf'^nv_inference_pending_request_count{{model="{re.escape(model)}",.*}} (\d+)$'
    found = re.search(pattern, page, re.MULTILINE)
    if found is None:
        raise LookupError(f"the metrics have no nv_inference_pending_request_count of {model}")
    return int(found[1])
