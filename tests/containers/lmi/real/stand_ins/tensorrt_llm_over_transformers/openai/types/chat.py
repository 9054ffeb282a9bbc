"""Of the client of OpenAI's API, which TensorRT-LLM needs: a name in the handler's signatures."""

from typing import Any

ChatCompletionMessageParam = dict[str, Any]
