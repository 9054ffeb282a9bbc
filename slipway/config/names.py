"""Names that the command line needs before anything is loaded: this module imports nothing."""

CONFIG_DIRECTORY = "model_configs"
# One deployment's name becomes a construct id, a stack and an endpoint (63 characters together with
# `-ENVIRONMENT`, SageMaker's limit for endpoint names).
NAME_PATTERN = r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$"
# The keys in environments.yaml that are no environment.
PROJECT_KEY, POLICIES_KEY, DEFAULTS_KEY = SHARED_KEYS = ("project", "policies", "defaults")
ENVIRONMENTS_FILE = "environments.yaml"
# The environment that is the embedded AWS.
LOCAL = "local"
# The environment of nobody's account, which CI synthesises and lints.
CI = "ci"
# The rule in a template that tells the commit of the project.
COMMIT_RULE = "SourceCommit"
# Has a log group of each endpoint whose first deployment failed, with the end of its log.
KEPT_LOGS = "/slipway/failed-deployments/"

LOCAL_PROGRAM_VARIABLE = "SLIPWAY_LOCAL_PROGRAM"
"""Variable of a model on the embedded AWS: the program that stands for an image of the user's own.

Its value is JSON: `program`, a list, and `directory`, below the project.
"""
