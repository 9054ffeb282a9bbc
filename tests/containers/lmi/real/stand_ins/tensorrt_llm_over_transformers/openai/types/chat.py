"""Of the client of OpenAI's API, which TensorRT-LLM needs: a name in the handler's signatures."""

from __future__ import annotations

from typing import Any

ChatCompletionMessageParam = dict[str, Any]
