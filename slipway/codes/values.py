"""Codes of single values."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.UNKNOWN_INSTANCE_TYPE,
        "The instance type is not known",
        "Slipway plans only for hosting instance types in its table "
        "`slipway/facts/instances.json`. A new type of AWS can be missing there.",
        "Correct the spelling; hosting types begin with `ml.`, for example `ml.g5.xlarge`.",
    ),
    Entry(
        Code.UNKNOWN_CHOICE,
        "The value is not one of the choices",
        "The field or option takes one of a fixed list of words. Upper and lower case matter.",
        "Use a word from the list in the printed remedy.",
    ),
    Entry(
        Code.OUT_OF_RANGE,
        "The number is out of range",
        "SageMaker, or the container, accepts only numbers within a limit. The message shows "
        "the limit.",
        "Use a number within the limit. `.inf` and `.nan` are never allowed.",
    ),
    Entry(
        Code.WRONG_LENGTH,
        "The text or list has a wrong length",
        "The field limits the number of characters of its text, or the number of items of its "
        "list.",
        "Shorten or extend the value to the length in the message.",
    ),
    Entry(
        Code.WRONG_FORM,
        "The text has the wrong form",
        "AWS or Slipway requires a pattern here, for example for names, ARNs or commit hashes. "
        "The message shows the regular expression.",
        "Write the value in the form of the example. A Hugging Face revision is a commit of 40 "
        "hexadecimal digits, not a branch.",
    ),
    Entry(
        Code.RESERVED_NAME,
        "The model may not have this name",
        "A model's name becomes the name of a stack and an endpoint. Names such as "
        "`foundation` and `image-lmi` belong to Slipway's own stacks.",
        "Choose another name of lower-case letters, digits and hyphens, with at most 40 "
        "characters.",
    ),
    Entry(
        Code.NAME_IS_NOT_FILE_NAME,
        "`name` differs from the file's name",
        "Commands find a model by its file's name. A different `name` inside would give the "
        "stack another name than the one you type.",
        "Change `name` in the file, or rename the file to `NAME.yaml`.",
    ),
    Entry(
        Code.UNKNOWN_ENVIRONMENT,
        "The environment does not exist",
        "The name is not a key in environments.yaml. It comes from `--env`, from "
        "`SLIPWAY_ENV`, from `-c env=`, or from the section `environments` of a config.",
        "Use a name that the printed remedy lists, or add the environment to environments.yaml.",
    ),
    Entry(
        Code.PATH_OUTSIDE_PROJECT,
        "The path leads out of the project",
        "A config works the same way on every machine, so it names only files inside the "
        "project's folder. A commit with a link could publish any folder of yours. A link may "
        "therefore lead out of the project only if this machine allows it.",
        "Copy or move the files into the project. Write the path relative to the project's "
        "folder, without `..`. To publish what a link leads to, name its folder in "
        "`SLIPWAY_ALLOW_OUTSIDE`, for example `SLIPWAY_ALLOW_OUTSIDE=/data/checkpoints`.",
    ),
    Entry(
        Code.NOT_AN_S3_PREFIX,
        "The value is not an S3 prefix",
        "Slipway reads all objects below a prefix, and the prefix needs a bucket and a final "
        "slash.",
        "Write `s3://BUCKET/PREFIX/`.",
    ),
    Entry(
        Code.LOG_RETENTION,
        "CloudWatch Logs has no such retention period",
        "CloudWatch Logs accepts only certain numbers of days.",
        "Use one of the listed numbers, for example `log_retention_days: 30`.",
    ),
    Entry(
        Code.REFUSED_TAG,
        "AWS refuses the tag",
        "AWS reserves some prefixes of tag keys, limits the characters, and treats keys that "
        "differ only in case as one tag.",
        "Change the key or value as the printed remedy says. Keep one of two keys that differ "
        "only in case.",
    ),
    Entry(
        Code.CONTROL_CHARACTER,
        "The text has a control character",
        "CloudFormation templates cannot contain this character. It often comes from copied text.",
        "Delete the character, or type the value again.",
    ),
    Entry(
        Code.VARIABLES_TOO_LARGE,
        "The container's variables are too large",
        "SageMaker limits the size of one environment variable and of all variables together.",
        "Shorten the values. Put long settings into a file of the artifact.",
    ),
    Entry(
        Code.NAME_TOO_LONG,
        "A composed name is too long",
        "Slipway composes names of endpoints and buckets from the project, the model and the "
        "environment. SageMaker and S3 limit their length.",
        "Shorten one of the parts by the number of characters in the printed remedy.",
    ),
    Entry(
        Code.KEY_ELSEWHERE,
        "The KMS key has another region or account",
        "A KMS key encrypts only in its own region, and this setting needs a key of the "
        "environment's account.",
        "Name the ARN of a key in the environment's region and account.",
    ),
    Entry(
        Code.UNUSABLE_CA_BUNDLE,
        "The CA bundle cannot be used",
        "`image_builds` names a file of certificates for the image build. The file cannot be "
        "read, or it contains no certificate.",
        "Name a PEM file inside the project. A certificate starts with `-----BEGIN "
        "CERTIFICATE-----`.",
    ),
    Entry(
        Code.UNKNOWN_IMAGE_VERSION,
        "There is no image of this version",
        "AWS publishes no image of the framework in this version, or Slipway's table of images "
        "does not have it.",
        "Use a version that the printed remedy lists. Put the version in quotes, because YAML "
        "reads `0.30` as a number.",
    ),
    Entry(
        Code.NAMED_TWICE,
        "The same name is used twice",
        "Two variants, two instance types of one list, or two alarms of one list have the same "
        "name. Names that differ only in case count as equal.",
        "Give each variant its own name. Delete the second of two equal items.",
    ),
    Entry(
        Code.WRONG_REGISTRY_DOMAIN,
        "The registry has the wrong domain",
        "ECR registries of some regions have another domain than `amazonaws.com`, for example "
        "in China.",
        "Write the image's URI with the domain in the printed remedy.",
    ),
    Entry(
        Code.IMAGE_BUILDS,
        "`image_builds` has no effect here",
        "The embedded AWS builds no images. Environments with the same account and region "
        "share their repositories, and the first of them sets the repositories' key.",
        "Delete the setting here. Set it in the environment that the message names.",
    ),
    Entry(
        Code.UNKNOWN_REGION,
        "The region is missing or unknown",
        "A command needs an AWS region, and none is configured, the profile does not exist, or "
        "Slipway does not know the region.",
        "Add `--region REGION`, or set `AWS_REGION` or `AWS_PROFILE`.",
    ),
    Entry(
        Code.REFUSED_VALUE,
        "The value is refused",
        "The value breaks a rule of this field that has no code of its own. The message has "
        "the reason.",
        "Read the field's entry in the [reference](../reference.md).",
    ),
    Entry(
        Code.CREDENTIAL_IN_FILE,
        "The file has a secret",
        "The value has the form of a token or of an access key. The file is committed, and the "
        "value would stand in the template too.",
        'Revoke the secret. Write `"{{resolve:secretsmanager:NAME}}"` as the value of a variable: '
        "CloudFormation puts the secret of AWS Secrets Manager in. Anyone who may describe the "
        "model sees it.",
    ),
)
