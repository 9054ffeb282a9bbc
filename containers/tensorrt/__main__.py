"""The container's program: `python -m containers.tensorrt serve`."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from containers.serving.logs import configure_logging, log_event
from containers.serving.server import EXIT_OPERATOR_PROBLEM, run_until_terminated
from containers.serving.settings import EnvironmentReader, ServingSettings, SettingsError
from containers.tensorrt.predictor import TextGenerationPredictor
from containers.tensorrt.settings import GenerationSettings


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Runs the command in `arguments`; never returns."""
    parser = argparse.ArgumentParser(prog="containers.tensorrt")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("serve", help="serve /opt/ml/model on port 8080, as SageMaker asks")
    parser.parse_args(arguments)
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
    predictor = TextGenerationPredictor(generation, max_batch_size=serving.max_batch_size)
    run_until_terminated(predictor, serving)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
