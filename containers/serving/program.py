"""The command line of a family's program: `python -m containers.FAMILY serve`, or `compile`."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import configure_logging, log_error
from containers.serving.metrics import Metrics
from containers.serving.server import open_metrics, run_until_terminated
from containers.serving.service import AnyPredictor
from containers.serving.settings import EnvironmentReader, ServingSettings, SettingsError

SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class Served:
    """The model that a program serves, not loaded yet, and the OpenAPI document if it is shown."""

    predictor: AnyPredictor
    # Any: a JSON document.
    document: Mapping[str, Any] | None


@dataclass(frozen=True)
class Program(Generic[SettingsT]):
    """The program of a family: the module `name`, which serves a model or runs a compile job."""

    name: str
    read_settings: Callable[[EnvironmentReader], SettingsT]
    serve: Callable[[SettingsT, ServingSettings, Metrics], Served]
    compile: Callable[[Mapping[str, str]], int]

    def run(self, arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
        parser = argparse.ArgumentParser(prog=self.name)
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("serve", help="serve /opt/ml/model on port 8080, as SageMaker asks")
        commands.add_parser(
            "compile", help="compile a checkpoint into a model directory, as a training job"
        )
        if parser.parse_args(arguments).command == "compile":
            sys.exit(self.compile(environ))
        configure_logging("INFO", sys.stdout)
        reader = EnvironmentReader(environ)
        serving, settings = ServingSettings.read(reader), self.read_settings(reader)
        try:
            reader.finish()
        except SettingsError as error:
            log_error("settings_invalid", problems=error.problems)
            sys.exit(EXIT_OPERATOR_PROBLEM)
        configure_logging(serving.log_level, sys.stdout)
        metrics = open_metrics(serving)
        served = self.serve(settings, serving, metrics)
        run_until_terminated(served.predictor, serving, metrics=metrics, document=served.document)
