"""The directory that stands for /opt/ml of a training job.

https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-training-algo-running-container.html
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HOST = "algo-1"


class Layout:
    """One job's directories, below the one that stands for /opt/ml."""

    def __init__(self, root: Path) -> None:
        self._inputs = root / "input"
        self.config = self._inputs / "config"
        self.model = root / "model"
        self.output = root / "output"
        self.output_data = self.output / "data"

    def channel(self, name: str) -> Path:
        """Returns the directory for /opt/ml/input/data/CHANNEL."""
        return self._inputs / "data" / name

    def make(self, parameters: Mapping[str, Any]) -> None:
        """Makes the directories and the files of configuration."""
        channels = parameters.get("InputDataConfig", ())
        for directory in (
            self.config,
            self.model,
            self.output_data,
            *(self.channel(channel["ChannelName"]) for channel in channels),
        ):
            directory.mkdir(parents=True)
        resources = parameters["ResourceConfig"]
        self._write("hyperparameters.json", parameters.get("HyperParameters", {}))
        self._write(
            "inputdataconfig.json",
            {
                channel["ChannelName"]: {
                    "TrainingInputMode": "File",
                    "S3DistributionType": channel["DataSource"]["S3DataSource"].get(
                        "S3DataDistributionType", "FullyReplicated"
                    ),
                    "RecordWrapperType": channel.get("RecordWrapperType", "None"),
                }
                for channel in channels
            },
        )
        self._write(
            "resourceconfig.json",
            {
                "current_host": _HOST,
                "current_instance_type": resources["InstanceType"],
                "hosts": [_HOST],
                "network_interface_name": "eth0",
            },
        )

    def environment(self, parameters: Mapping[str, Any]) -> dict[str, str]:
        """Returns the variables that tell the program where /opt/ml is on this machine."""
        channels = [channel["ChannelName"] for channel in parameters.get("InputDataConfig", ())]
        return {
            **{f"SM_CHANNEL_{name.upper()}": str(self.channel(name)) for name in channels},
            "SM_INPUT_CONFIG_DIR": str(self.config),
            "SM_MODEL_DIR": str(self.model),
            "SM_OUTPUT_DIR": str(self.output),
            "SM_OUTPUT_DATA_DIR": str(self.output_data),
        }

    def failure(self) -> str:
        """Returns the text that the program wrote about its failure; empty without one."""
        try:
            return (self.output / "failure").read_text("utf-8", errors="replace").strip()
        except OSError:
            return ""

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        (self.config / name).write_text(json.dumps(content), encoding="utf-8")
