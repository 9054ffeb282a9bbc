"""The three forms of a request's body, told apart by one field each."""

from containers.serving.json_requests import parse_json_object
from containers.tensorrt.openai.chat_template import ChatTemplate
from containers.tensorrt.openai.requests import OpenAiRequests
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.requests import GenerationRequests
from containers.tensorrt.tasks import GenerationTask


class BodyReader:
    """Reads the requests to one endpoint.

    A body with `prompt` is OpenAI's completion, and a body with `messages` is OpenAI's chat. Any
    other body is Hugging Face's, with `inputs`. AWS's LMI images decide in the same way.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.text_generation = GenerationRequests(limits)
        self.openai = OpenAiRequests(limits)

    def read(self, body: bytes, template: ChatTemplate | str) -> GenerationTask:
        """Returns the task of a request.

        Instead of a chat template there may be the reason why the model has none. An
        `InvalidRequestError` names every problem: the field, its value and the allowed values.
        """
        document = parse_json_object(body)
        if "prompt" in document:
            return self.openai.read_completion(document)
        if "messages" in document and "inputs" not in document:
            return self.openai.read_chat(document, template)
        return self.text_generation.read(document).task
