"""The message of an error, for tests that assert all of it."""

from collections.abc import Callable
from typing import Any

import pytest


def message_of(
    error: type[Exception], call: Callable[..., Any], *args: Any, **keywords: Any
) -> str:
    with pytest.raises(error) as caught:
        call(*args, **keywords)
    return str(caught.value)
