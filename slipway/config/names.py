"""Names that the command line needs before anything is loaded: this module imports nothing."""

CONFIG_DIRECTORY = "model_configs"
ENVIRONMENTS_FILE = "environments.yaml"
# The environment that is the embedded AWS.
LOCAL = "local"
