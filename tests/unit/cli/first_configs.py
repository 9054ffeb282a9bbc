"""Options of `slipway init` in a new project, and the config that it writes there."""

import yaml

FLAGS = (
    "--family", "gpt2", "--parameters", "124439808", "--instance", "ml.g4dn.xlarge",
    "--sample", "samples/tiny", "--latency-milliseconds", "600",
)  # fmt: skip
ENVIRONMENTS = """\
local:
  account: "123456789012"
  region: us-east-1
  artifacts: sample
ci:
  account: "111122223333"
  region: us-east-1
"""


def written(tmp_path, name="search"):
    return yaml.safe_load((tmp_path / "model_configs" / f"{name}.yaml").read_text("utf-8"))
