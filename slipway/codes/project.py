"""Codes of the project, its lock files and the command line."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.NO_PROJECT,
        "There is no Slipway project here",
        "A project is a folder with environments.yaml. Neither the current folder nor a folder "
        "above has this file.",
        "Change to the project's folder and run the command again.",
    ),
    Entry(
        Code.UNKNOWN_MODEL,
        "No model config has this name",
        "The name or pattern matches no file `model_configs/NAME.yaml`.",
        "Use a name that the printed remedy lists. Put a pattern in quotes, so that the shell "
        "leaves it alone: `'bert-*'`.",
    ),
    Entry(
        Code.LOCK_UNREADABLE,
        "The lock file cannot be read",
        "`slipway publish` writes `model_configs/NAME.lock.json`. The file is damaged, often "
        "by a merge.",
        "Restore it with `git checkout`, or delete it and run `slipway publish NAME`.",
    ),
    Entry(
        Code.NEVER_PUBLISHED,
        "The model was never published",
        "A deployment needs the model's files in S3. The lock file has no entry for this model "
        "in this kind of environment.",
        "Run `slipway publish NAME --env ENV` and commit `model_configs/NAME.lock.json`.",
    ),
    Entry(
        Code.CONFIG_CHANGED,
        "The config changed after publishing",
        "A field that decides the published files has another value than at the last publish.",
        "Run `slipway publish NAME --env ENV` and commit `model_configs/NAME.lock.json`. Files "
        "that did not change are not uploaded again.",
    ),
    Entry(
        Code.LOCKED_FOR_ANOTHER_TARGET,
        "The published model is for other hardware",
        "The lock file names a compiled model, and the endpoint's instance type needs another "
        "target.",
        "Run `slipway publish NAME --env ENV` again and commit the lock file.",
    ),
    Entry(
        Code.STALE_SCHEMA,
        "model_configs/schema.json is stale",
        "The file does not match this version of Slipway. Editors check configs with it.",
        "Run `slipway schema` and commit the file.",
    ),
    Entry(
        Code.FILE_EXISTS,
        "The file exists already",
        "`slipway init` and `slipway import` overwrite no file without being asked to.",
        "Choose another name, or edit the file. `--overwrite` replaces it.",
    ),
    Entry(
        Code.WRONG_OPTIONS,
        "The options do not fit together",
        "An option or a context value is missing, has no effect with the others, or has no "
        "valid value.",
        "Write the command as the printed remedy shows. `slipway COMMAND --help` and the "
        "[commands](../commands.md) list the options.",
    ),
    Entry(
        Code.NO_TERMINAL,
        "The command needs an answer",
        "The command asks a question before it goes on. There is no terminal to answer at, or "
        "the answer was no.",
        "Give the answers as options, as the printed remedy shows, or run the command in a "
        "terminal.",
    ),
    Entry(
        Code.NO_COMMIT,
        "The Hugging Face weights name no commit",
        "A branch such as `main` can change at any time, so the same config would publish "
        "other files.",
        "Add the commit with all 40 digits: `hub:OWNER/NAME@REVISION`. The repository's page "
        'on the Hub shows it under "History".',
    ),
    Entry(
        Code.NOTHING_TO_PUBLISH,
        "No model has files for the environment",
        "`slipway publish --all` publishes the models that have a source for this environment, "
        "and no config has one.",
        "Run `slipway publish NAME`: its report says what the model needs.",
    ),
    Entry(
        Code.NO_REQUEST,
        "There is no request to send",
        "`slipway invoke` needs one request: on the command line, in a readable file, or as texts "
        "with `--text`. Texts are UTF-8.",
        'Run `slipway invoke NAME \'{"inputs": "text"}\'` or `slipway invoke NAME --file '
        "request.json`.",
    ),
    Entry(
        Code.IMAGE_SOURCE_MISSING,
        "A source of the image is missing",
        "Slipway builds the image from files of the project, and one of them does not exist.",
        "Restore the file with git.",
    ),
    Entry(
        Code.UNUSABLE_FOLDER,
        "The folder cannot be used",
        "`make verify-aws` keeps its state in a folder. The folder cannot be written, or "
        "another run uses it.",
        "Wait for the other run, or name another folder with `--folder`.",
    ),
    Entry(
        Code.UNKNOWN_CODE,
        "There is no problem with this code",
        "`slipway explain` takes a code as it is printed behind a problem, such as `SW201`.",
        "Use one of the nearest codes in the printed remedy.",
    ),
    Entry(
        Code.UNKNOWN_REF,
        "git does not know the ref",
        "`slipway prune --ref` names a branch, a tag or a commit that this clone does not have.",
        "Correct the name, or run `git fetch --all --tags` first.",
    ),
    Entry(
        Code.SAME_ENVIRONMENT,
        "An environment is promoted to itself",
        "`slipway publish --from` copies an artifact from one environment to another. Both options "
        "name the same environment.",
        "Name the tested environment with `--from` and the target with `--env`.",
    ),
    Entry(
        Code.OTHER_ARTIFACTS,
        "One environment deploys samples, one releases",
        "`artifacts` in environments.yaml says whether an environment deploys the sample or the "
        "release. A promotion copies one artifact, so both environments must deploy the same.",
        "Promote from an environment with the same `artifacts`, or publish to the target.",
    ),
    Entry(
        Code.NOT_IN_LOCK,
        "Nothing was published to the tested environment",
        "The lock file has no artifact for the environment that `--from` names.",
        "Publish to this environment and test the endpoint. Then promote the artifact.",
    ),
    Entry(
        Code.ENVIRONMENTS_DIFFER,
        "The environments ask for different artifacts",
        "A section of `environments` gives a field another value, and the artifact is made from "
        "this field. The tested artifact would not have the target's value.",
        "Give both environments the same value, or publish to the target.",
    ),
    Entry(
        Code.PROMOTED_FOR_ANOTHER,
        "The tested artifact fits another accelerator",
        "A compiled artifact runs on one compute capability, or on one family of Neuron devices. "
        "The target has another one. The embedded AWS compiles for its processor alone.",
        "Publish to the target, or promote from an environment with the same accelerator.",
    ),
    Entry(
        Code.PACKAGE_CHANGED,
        "The checkout makes another package of code",
        "An LMI package contains the bucket's name, so Slipway renders it for the target. The "
        "result must have the digest in the lock. The script or Slipway itself has changed.",
        "Check out the commit that was tested, or publish and test again.",
    ),
    Entry(
        Code.AWS_SETTINGS,
        "AWS settings of the shell cannot be used",
        "An `AWS_` variable, `~/.aws/config` or `~/.aws/credentials` names something that is not "
        "there, or has a form that boto3 cannot read.",
        "Correct the setting that the message names, or unset the variable.",
    ),
    Entry(
        Code.OUTPUT_PATH,
        "The output file cannot be written",
        "A command was told to write a file. Its folder is not there or may not be written.",
        "Make the folder, or name another path.",
    ),
    Entry(
        Code.LOCAL_PORT,
        "The embedded AWS uses another port",
        "A project has one embedded AWS. It is running already, on another port than "
        "`slipway local start --port` asks for.",
        "Use the running one, or stop it first: `slipway local stop`. Its account is then lost.",
    ),
    Entry(
        Code.PATH_MISSING,
        "A folder of the artifacts is missing",
        "`artifacts.sample.path` or `artifacts.weights.path` names a folder that is not in the "
        "project. Publishing would fail. Files below `build/` may be made later: they are not "
        "looked for.",
        "Correct the path, or copy the files there.",
    ),
    Entry(
        Code.SEVERAL_ENVIRONMENTS,
        "Several environments can be planned",
        "`slipway plan` was given no environment. The model is not deployed to `local`, and there "
        "are several others.",
        "Add `--env` with one of the names in the printed remedy.",
    ),
    Entry(
        Code.SCALING_STEPS,
        "The steps of autoscaling contradict one another",
        "Steps add instances to a fleet whose load is a multiple of its target. A higher load "
        "needs more instances, and no step can add more than the fleet may grow.",
        "Sort the steps by `from_times_target`, with more instances in each, within "
        "`max_instance_count`.",
    ),
    Entry(
        Code.SCALING_GPU,
        "Autoscaling cannot follow the use of the GPUs",
        "SageMaker adds up the use of an instance's GPUs, without the instance's type. A type "
        "without GPUs has no such metric, and types with different numbers need different targets.",
        "Use types with the same number of GPUs, or scale by requests.",
    ),
    Entry(
        Code.CAPACITY_RESERVATION,
        "The capacity reservation does not fit the endpoint",
        "A training plan reserves instances of one type in one region. An endpoint uses exactly "
        "one plan, and its production variant names that type.",
        "Name one type in `instances`, without other variants, and a plan of the environment's "
        "region.",
    ),
    Entry(
        Code.METRICS,
        "The endpoint's metrics are not published so",
        "Alarms and autoscaling read metrics every minute, and a rarer metric leaves them without "
        "values. AWS documents `endpoint.metrics` for real-time endpoints, and not for `mode: "
        "async`.",
        "Publish every 60 seconds or more often. With a queue, remove the section.",
    ),
    Entry(
        Code.EXECUTION_ROLE_ELSEWHERE,
        "The execution role belongs to another account",
        "`endpoint.execution_role_arn` names a role of another account than the environment's. IAM "
        "passes a role only to services of its own account.",
        "Name a role of each account under `environments:`.",
    ),
    Entry(
        Code.NETWORK_IN_ACCOUNT,
        "The account has another network",
        "A subnet or security group does not exist in the account and region, belongs to another "
        "VPC, or has no way to S3. The endpoint would fail after minutes.",
        "Correct the ids, or add what is missing: a VPC endpoint for S3 in the subnets' route "
        "tables, or a rule that lets HTTPS out.",
    ),
    Entry(
        Code.VOLUME_KEY,
        "The volumes cannot use the key",
        "The key in `endpoint.volume_key_arn` does not exist, is not enabled, or is not symmetric. "
        "The endpoint would fail after minutes.",
        "Enable the key, or name a symmetric key of the endpoint's region.",
    ),
    Entry(
        Code.CAPTURE_BUCKET,
        "The bucket of captured data does not exist",
        "`endpoint.data_capture.destination` names a bucket that is not there. The endpoint would "
        "serve and capture nothing.",
        "Correct `destination`, or make the bucket in the endpoint's region.",
    ),
    Entry(
        Code.MODE_CHANGE,
        "The endpoint would change its mode",
        "An asynchronous endpoint has a queue, and an endpoint that scales to zero hosts inference "
        "components. AWS does not document an update that adds or removes either.",
        "Destroy the stack when nobody uses the endpoint, then deploy it. Or give the model "
        "another name, and move the callers.",
    ),
    Entry(
        Code.ASYNC_PLACE,
        "A place of the queue is not usable",
        "`slipway preflight` did not find a bucket, topic or key that `async_inference` names. The "
        "endpoint would start, and its requests would fail one by one.",
        "Correct the name, or make what is missing.",
    ),
    Entry(
        Code.ASYNC_NOT_ANSWERED,
        "The queue did not answer in time",
        "The request is in the queue or is computed. It is not lost, and nothing sent it twice.",
        "Look for the printed address later, or wait longer with `--wait`. If the fleet has no "
        "instances, `slipway status NAME --env ENV` shows whether it grows.",
    ),
    Entry(
        Code.ASYNC_FAILED,
        "The request failed",
        "SageMaker wrote a failure in place of an answer: the model refused the request, did not "
        "answer in time, or the role lacks a right.",
        "Correct what the message says. The endpoint's log has the lines of the container.",
    ),
    Entry(
        Code.ASLEEP,
        "The endpoint sleeps",
        "An endpoint with `mode: scale_to_zero` had no requests, and no copy runs. The refused "
        "request wakes it, which takes minutes.",
        "Give the command more time with `--wait SECONDS`. [Calling an "
        "endpoint](../calling-an-endpoint.md) lets your programs wait. If "
        "it does not wake, run `slipway status NAME --env ENV`.",
    ),
    Entry(
        Code.EXECUTION_ROLE_TRUST,
        "SageMaker cannot assume the execution role",
        "The role in `endpoint.execution_role_arn` does not exist, or its trust policy does not "
        "let SageMaker assume it. The endpoint would fail.",
        "Correct the ARN, or allow `sts:AssumeRole` to `sagemaker.amazonaws.com` in the role's "
        "trust policy. [Security](../security.md#an-existing-execution-role) has such a policy.",
    ),
    Entry(
        Code.EXECUTION_ROLE_RIGHTS,
        "The execution role lacks rights",
        "IAM simulated the policies of the role in `endpoint.execution_role_arn`, and an action is "
        "not allowed that SageMaker does as this role.",
        "Give the role what `slipway iam NAME --execution-role --env ENV` prints.",
    ),
    Entry(
        Code.CAPACITY_ALARM,
        "The fleet has no maximum to watch",
        "`alarms.at_max_capacity` is raised when the fleet is as large as `autoscaling` may make "
        "it. A fleet of a fixed size has no such maximum, or is always at it. With `mode: "
        "scale_to_zero`, the same holds for `max_copies`.",
        "Remove the alarm, or let the number of instances or copies grow.",
    ),
    Entry(
        Code.SCHEDULE,
        "A schedule's time is wrong",
        "Application Auto Scaling takes `cron(...)` with six fields, `rate(...)` and `at(...)`. "
        "The stack would fail with another expression.",
        "Write the expression as the printed remedy shows.",
    ),
    Entry(
        Code.TIME_ZONE,
        "There is no such time zone",
        "A schedule's `time_zone` is a name of the IANA time zone database.",
        "Use a name such as `Europe/Zurich`, or delete it for UTC.",
    ),
    Entry(
        Code.SHARED_ENDPOINT,
        "The endpoint cannot be shared",
        "`endpoint_of` names a model whose endpoint runs the copies of this model too. That model "
        "needs `mode: scale_to_zero`, an endpoint of its own, and the same instances and network.",
        "Correct what the message names, or remove `endpoint_of` for an endpoint of its own.",
    ),
    Entry(
        Code.GUEST_SETTING,
        "The setting belongs to another model's endpoint",
        "A model with `endpoint_of` has copies on the endpoint of another model. Instances, "
        "volumes, metrics of machines and the role of the endpoint are the other model's.",
        "Remove the setting, and set it for the other model if it needs it.",
    ),
)
