"""The committed sample: its prompts, a chat template for it, and what it answers to a body."""

import json
import shutil
from pathlib import Path

from jsonschema import Draft202012Validator

from containers.encoders.settings import EncoderSettings
from containers.tensorrt.encoder_predictor import SessionPredictor
from containers.tensorrt.generation import Prompt
from containers.tensorrt.model_directory import ModelConfig
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings, TensorRTSettings

SAMPLE = Path("samples/gpt2-autocomplete/model")
NO_END = frozenset()
# The sizes of a random model, which `conftest.py` makes.
GPT2 = ModelConfig(2, 3, 24, 97, max_positions=64, eos_token_ids=frozenset({0}))
# Of different lengths with different limits: padding, early ends and compaction all occur.
PROMPTS = (
    Prompt((1163, 322, 19, 782), max_new_tokens=12),
    Prompt((5,), max_new_tokens=1),
    Prompt((434, 300, 263, 337, 322, 19, 782), max_new_tokens=7),
    Prompt((300, 263), max_new_tokens=20),
)
SETTINGS = GenerationSettings(max_input_tokens=110, max_new_tokens=42, default_new_tokens=12)
# As ChatML, with the words of the sample's own vocabulary.
TEMPLATE = (
    "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}Amazon S3 bucket{% endif %}"
)


def model_with_template(directory, template=TEMPLATE):
    """Returns a copy of the sample whose tokenizer_config.json has a chat template."""
    shutil.copytree(SAMPLE, directory)
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_bytes()) | {"chat_template": template}
    path.write_text(json.dumps(config))
    return directory


def loaded(model_dir=SAMPLE, **limits):
    predictor = TextGenerationPredictor(SETTINGS, **limits)
    predictor.load(model_dir)
    return predictor


def encoder_predictor(most=8, **expected):
    settings = TensorRTSettings(GenerationSettings(intra_op_threads=1), EncoderSettings(**expected))
    return SessionPredictor(settings, max_batch_size=most)


def encoder_answer(served, body, *, most=8):
    """Asks as the serving core does."""
    waiting = list(served.parse(json.dumps(body).encode()))
    outputs = {}
    while len(outputs) < len(waiting):
        left = [place for place in range(len(waiting)) if place not in outputs]
        chosen = [left[index] for index in served.choose([waiting[each] for each in left], most)]
        computed = served.predict([waiting[place] for place in chosen])
        outputs |= dict(zip(chosen, computed, strict=True))
    return json.loads(served.render([outputs[place] for place in range(len(waiting))]))


def answer(predictor, body):
    inputs = dict(enumerate(predictor.parse(json.dumps(body).encode())))
    assert not predictor.is_streamed(list(inputs.values()))
    found = dict(predictor.join(inputs).outputs)
    while len(found) < len(inputs):
        found |= predictor.step().outputs
    return json.loads(predictor.render([found[place] for place in inputs]))


def stream(predictor, body):
    """Returns the events of a streamed answer, without the word that begins each."""
    [one] = predictor.parse(json.dumps(body | {"stream": True}).encode())
    assert predictor.is_streamed([one])
    results = [predictor.join({"key": one})]
    while not results[-1].outputs:
        results.append(predictor.step())
    text = b"".join(piece for result in results for piece in result.pieces.values()).decode()
    assert text.endswith("\n\n")
    events = text.removesuffix("\n\n").split("\n\n")
    assert all(event.startswith("data:") for event in events)
    return [event.removeprefix("data:") for event in events]


def schema_of(document, schema):
    """Returns the validator of a schema, or of the document's schema of that name."""
    found = {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema
    return Draft202012Validator({**found, "components": document["components"]})
