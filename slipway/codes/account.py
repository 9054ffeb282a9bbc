"""Codes of accounts, credentials and stacks."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.NO_CREDENTIALS,
        "There are no usable AWS credentials",
        "boto3 found no credentials, could not renew them, or AWS does not accept them. The "
        "message has its reason.",
        "Log in, for example with `aws sso login`, and set `AWS_PROFILE` if you use a named "
        "profile.",
    ),
    Entry(
        Code.ANOTHER_ACCOUNT,
        "The credentials belong to another account",
        "Each environment has one account in environments.yaml. Slipway stops before it "
        "changes anything in another account.",
        "Log in to the environment's account, or choose another environment with `--env`.",
    ),
    Entry(
        Code.LOOKUP_FAILED,
        "AWS refused or did not answer a call",
        "The credentials lack a permission, or AWS could not be reached. The message has AWS's "
        "error.",
        "Use credentials with the permissions that `slipway iam NAME --env ENV` prints, then "
        "run the command again.",
    ),
    Entry(
        Code.EMBEDDED_AWS_NOT_RUNNING,
        "The embedded AWS is not running",
        "The environment `local` is a program on this machine, and it has not been started for "
        "this project.",
        "Run `slipway local start`.",
    ),
    Entry(
        Code.EMBEDDED_AWS_UNUSABLE,
        "The embedded AWS cannot be used",
        "Its port is taken, it ended at its start, or it does not answer. The message has the "
        "reason, and often the path of its log.",
        "Run `slipway local stop`, then `slipway local start`. If the port is taken, add "
        "`--port 0` for a free port.",
    ),
    Entry(
        Code.FOUNDATION_MISSING,
        "The foundation stack is missing",
        "The artifact bucket, the notification topic and the compile role belong to the "
        "foundation. It is not deployed in this environment, or an older version is.",
        "Run `cdk deploy foundation -c env=ENV`. For an isolated model, deploy the stack that "
        "the printed remedy names.",
    ),
    Entry(
        Code.IMAGE_MISSING,
        "The container image is not built",
        "Slipway builds its own images in your account, and ECR does not have this tag.",
        "Run the `cdk deploy image-...` command of the printed remedy; it builds the image.",
    ),
    Entry(
        Code.ARTIFACT_MISSING,
        "The artifact is not in the bucket",
        "The lock file names an artifact that the environment's bucket does not have. Another "
        "environment may have it.",
        "Run `slipway publish NAME --env ENV`.",
    ),
    Entry(
        Code.REPOSITORY_KEY,
        "The image repository has another key",
        "ECR cannot change the encryption of a repository. `repository_key` in "
        "environments.yaml differs from the repository's key.",
        "Write the `repository_key` of the printed remedy in environments.yaml, or delete the "
        "setting if the printed remedy says so.",
    ),
    Entry(
        Code.FOREIGN_SCALABLE_TARGET,
        "Another tool scales the endpoint",
        "SageMaker refuses to remove a variant, or to change its instances, while it is "
        "registered as a scalable target. The target does not come from this stack.",
        "Run the `aws application-autoscaling deregister-scalable-target` command of the "
        "printed remedy, deploy, and register the target again.",
    ),
    Entry(
        Code.OLD_SCALING,
        "An older Slipway deployed the autoscaling",
        "The stack lacks the resource that deregisters the scalable target during an update. "
        "An update that adds it together with this change could not be rolled back.",
        "Deploy once without the change of instances or variants, then deploy the change.",
    ),
    Entry(
        Code.NOT_BOOTSTRAPPED,
        "The CDK is not bootstrapped in the region",
        "The CDK CLI needs the bootstrap stack in each account and region. It is missing or "
        "too old.",
        "Run the `cdk bootstrap` command of the printed remedy.",
    ),
    Entry(
        Code.QUOTA,
        "The account's quota is too small",
        "AWS limits how many instances of each type an account may use. New accounts often "
        "have a quota of 0 for types with accelerators. An update needs room for the new fleet "
        "beside the old one.",
        "Ask for more in Service Quotas, as the printed remedy shows, choose another instance "
        "type, or set `rollout.strategy: rolling`.",
    ),
    Entry(
        Code.ARTIFACT_KEY,
        "The artifact has another encryption key",
        "The files in S3 are encrypted with another key than the model or the environment has "
        "now. The endpoint's role could not decrypt them.",
        "Follow the printed remedy. Files must be uploaded again to get another key.",
    ),
    Entry(
        Code.NOT_DELETED,
        "Something could not be deleted",
        "The account refused the deletion. The message has its reason. Everything else in the list "
        "is deleted.",
        "Use credentials that may delete it, then run the command again.",
    ),
    Entry(
        Code.NO_PUBLISH_PROJECT,
        "The environment has no build project",
        "`slipway publish NAME --remote` needs a build project in the foundation. The environment "
        "has no `remote_publishing`, or the deployed foundation is older than it.",
        "Add `remote_publishing` to the environment in environments.yaml, then deploy the "
        "foundation.",
    ),
    Entry(
        Code.NO_CONTAINER_ENGINE,
        "There is no container engine",
        "`slipway local start --containers` runs endpoints in their images, which needs a "
        "container engine. Docker does not answer, and Slipway cannot start an engine itself. The "
        "message has the reason for each.",
        "Start Docker, or run `make images` as root on Debian, which installs an engine. Without "
        "`--containers`, endpoints run as processes.",
    ),
    Entry(
        Code.NOT_SERVED_HERE,
        "The embedded AWS cannot serve the model",
        "A program stands for each image in the embedded AWS. There is none for images of your "
        "own, and Triton may lack a back end on this machine. A real account serves the model.",
        "Follow the printed remedy, or deploy to an account.",
    ),
)
