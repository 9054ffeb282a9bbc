"""The container's program: `python -m containers.tensorrt serve`, or `compile`."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from containers.serving.logs import configure_logging, log_event
from containers.serving.server import EXIT_OPERATOR_PROBLEM, open_metrics, run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings, SettingsError
from containers.tensorrt.openapi import openapi_document
from containers.tensorrt.parameters import RequestLimits
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Runs the command in `arguments`; never returns."""
    parser = argparse.ArgumentParser(prog="containers.tensorrt")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="serve /opt/ml/model on port 8080, as SageMaker asks")
    commands.add_parser(
        "compile", help="compile a checkpoint into a model directory, as a training job"
    )
    if parser.parse_args(arguments).command == "compile":
        # Imported here, so that serving does not load it.
        from containers.tensorrt.compile.command import run

        sys.exit(run(environ))
    configure_logging("INFO", sys.stdout)
    reader = EnvironmentReader(environ)
    serving = ServingSettings.read(reader)
    generation = GenerationSettings.read(reader)
    try:
        reader.finish()
    except SettingsError as error:
        log_event(
            logging.getLogger(__name__),
            logging.ERROR,
            "settings_invalid",
            problems=error.problems,
        )
        sys.exit(EXIT_OPERATOR_PROBLEM)
    configure_logging(serving.log_level, sys.stdout)
    limits = RequestLimits(generation, serving.max_batch_size, serving.max_queue_length)
    metrics = open_metrics(serving)
    predictor = TextGenerationPredictor(
        generation,
        max_batch_size=limits.max_batch_size,
        max_texts=limits.max_texts,
        metrics=metrics,
    )
    document = openapi_document(limits)
    run_until_terminated(predictor, serving, metrics=metrics, document=document)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
