"""`slipway import --endpoint`: what no config says, or may not be read, is named as a whole."""

import pytest

from slipway.deployed.reader import read_endpoint
from slipway.errors import UserError
from slipway.importing.endpoint.endpoints import hosted
from tests.importing.conftest import NETWORK
from tests.support.described_endpoints import (
    IMAGE,
    MOMENT,
    NAME,
    REGION,
    FakeAws,
    answers,
    container,
    variant,
)


def serverless(given):
    variant(given).pop("InstanceType")
    variant(given).pop("InitialInstanceCount")
    variant(given)["ServerlessConfig"] = {"MemorySizeInMB": 4096, "MaxConcurrency": 10}


def components(given):
    given["DescribeEndpointConfig"] |= {"ExecutionRoleArn": "arn:aws:iam::210987654321:role/hosts"}
    variant(given).pop("ModelName")
    variant(given)["ManagedInstanceScaling"] = {"Status": "ENABLED", "MinInstanceCount": 0}
    given["ListInferenceComponents"] = {
        "InferenceComponents": [
            {
                "CreationTime": MOMENT,
                "InferenceComponentArn": "arn:aws:sagemaker:eu-west-1:210987654321:x",
                "InferenceComponentName": name,
                "EndpointArn": "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/chat-old",
                "EndpointName": NAME,
                "VariantName": "primary",
                "LastModifiedTime": MOMENT,
            }
            for name in ("llama", "qwen")
        ]
    }


def pipeline(given):
    model = given["DescribeModel"]
    first = model.pop("PrimaryContainer")
    model["Containers"] = [first, {"Image": "1.dkr.ecr.eu-west-1.amazonaws.com/after:1"}]
    model["InferenceExecutionConfig"] = {"Mode": "Serial"}


def many_models(given):
    container(given).pop("ModelDataSource")
    container(given).update(Mode="MultiModel", ModelDataUrl="s3://acme-models/all/")


def marketplace(given):
    package = "arn:aws:sagemaker:eu-west-1:985815980388:model-package/ocr-1"
    given["DescribeModel"]["PrimaryContainer"] = {"ModelPackageName": package}


def jumpstart(given):
    hub = "arn:aws:sagemaker:eu-west-1:210987654321:hub-content/private/Model/llama/1.0.0"
    source = container(given)["ModelDataSource"]["S3DataSource"]
    source["HubAccessConfig"] = {"HubContentArn": hub}


IMPORT_EACH = "Import each of them with `--call`: its image, its model data and its variables. "


@pytest.mark.parametrize(
    ("change", "message", "remedy", "others"),
    [
        (serverless, "the variant primary of the endpoint chat-old is serverless",
         "Import the model with `--call`, and set `endpoint.serverless` yourself.",
         ["ServerlessConfig.MemorySizeInMB=4096: no field of the config says it",
          "ServerlessConfig.MaxConcurrency=10: no field of the config says it"]),
        (components, "the endpoint chat-old hosts inference components: llama, qwen",
         f"{IMPORT_EACH}Slipway makes an endpoint for each.",
         ["ManagedInstanceScaling.Status=ENABLED: it scales the instances of inference components",
          "ManagedInstanceScaling.MinInstanceCount=0: it scales the instances of inference "
          "components"]),
        (pipeline, "the model chat-model of the endpoint chat-old is a pipeline of 2 containers: "
         f"{IMAGE}, 1.dkr.ecr.eu-west-1.amazonaws.com/after:1",
         "A config has one container. Put the steps into one image, or import each container with "
         "`--call`.", []),
        (many_models, "the model chat-model of the endpoint chat-old loads many models on request, "
         "from s3://acme-models/all/",
         "A config has one model. Import each model with `--call`, under a name of its own.", []),
        (marketplace, "the model chat-model of the endpoint chat-old is made of the model package "
         "arn:aws:sagemaker:eu-west-1:985815980388:model-package/ocr-1",
         "A subscription of AWS Marketplace cannot be deployed by its image. Of a package of your "
         "own, `aws sagemaker describe-model-package` shows image and model data: import them with "
         "`--call`.", []),
        (jumpstart, "the model chat-model of the endpoint chat-old takes its data from a private "
         "hub of SageMaker JumpStart",
         "Publish the weights from another place: `--call` with `--weights`.", []),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_a_form_that_no_config_has_is_refused_with_everything_else(
    import_endpoint, config, change, message, remedy, others
):
    given = answers()
    change(given)
    code, output, errors = import_endpoint(given, *NETWORK)
    assert (code, output) == (1, "")
    assert f"- {message} [SW660]\n    {remedy}\n" in errors
    topic = "arn:aws:sns:eu-west-1:210987654321:pager: Slipway's alarms send messages"
    for other in [*others, f"alarm action={topic} to the environment's notification topic"]:
        assert f"- {other} [SW660]\n    Set it by hand where the new endpoint needs it.\n" in errors
    assert not config.exists()


def test_variants_of_several_models_are_refused():
    given = answers()
    other = {**variant(given), "VariantName": "candidate", "ModelName": "other-model"}
    given["DescribeEndpointConfig"]["ProductionVariants"].append(other)
    aws = FakeAws(given)
    models = iter(["1", "2"])
    plain = aws._answer

    def answer(model, **more):
        response, found = plain(model, **more)
        if model.name == "DescribeModel":
            found["PrimaryContainer"]["Environment"] = {"RELEASE": next(models)}
        return response, found

    aws._answer = answer
    with pytest.raises(UserError) as caught:
        hosted(read_endpoint(aws.client, NAME, REGION))
    assert caught.value.problems[0].message == (
        "the variants of the endpoint chat-old serve several models: chat-model, other-model"
    )
    assert caught.value.problems[0].remedy == (
        "An import reads one model. Import each with `--call`, under a name of its own. Then write "
        "the second one's `model`, `serving` and `artifacts` into its variant."
    )


def test_without_a_terminal_every_missing_fact_is_named(import_endpoint):
    given = answers()
    container(given).pop("ModelDataSource")
    code, _, errors = import_endpoint(given)
    assert code == 1
    assert (
        "- the endpoint chat-old has no model data; some options are missing, and there is no "
        "terminal to ask for them [SW410]\n    Give --weights, --parameters." in errors
    )


def test_an_unknown_endpoint(import_endpoint):
    missing = ("ValidationException", 'Could not find endpoint "x".')
    given = answers()
    summary = {"EndpointArn": "arn:aws:sagemaker:eu-west-1:210987654321:endpoint/chat-older",
               "CreationTime": MOMENT, "LastModifiedTime": MOMENT,
               "EndpointStatus": "InService"}  # fmt: skip
    given["ListEndpoints"] = {
        "Endpoints": [{**summary, "EndpointName": name} for name in ("chat-older", "ocr")]
    }
    code, _, errors = import_endpoint(given, refused={"DescribeEndpoint": missing})
    assert code == 1
    assert errors == (
        "1 problem\n- there is no endpoint chat-old in eu-west-1 [SW661]\n    Did you mean "
        "`chat-older`? There are: chat-older, ocr. `--region` names another region.\n"
    )
    denied = ("AccessDeniedException", "no")
    _, _, errors = import_endpoint(
        given, refused={"DescribeEndpoint": missing, "ListEndpoints": denied}
    )
    assert errors.endswith("`aws sagemaker list-endpoints` shows the names of the endpoints.\n")


def test_all_denied_calls_are_named_at_once(import_endpoint, config):
    denied = ("AccessDeniedException", "User x is not authorized")
    operations = ["DescribeModel", "DescribeScalableTargets", "DescribeAlarms", "ListTags",
                  "DescribeLogGroups"]  # fmt: skip
    code, output, errors = import_endpoint(answers(), refused=dict.fromkeys(operations, denied))
    assert (code, output) == (1, "")
    assert errors.startswith("5 problems\n")
    for action in ("sagemaker:DescribeModel", "application-autoscaling:DescribeScalableTargets",
                   "cloudwatch:DescribeAlarms", "sagemaker:ListTags",
                   "logs:DescribeLogGroups"):  # fmt: skip
        assert (
            f"- `{action}` is denied, which the import of endpoint chat-old needs: User x is not "
            "authorized [SW663]\n    Use credentials that may call it. `slipway iam --import "
            "chat-old` prints the whole policy.\n" in errors
        )
    assert not config.exists()


@pytest.mark.parametrize(
    ("operation", "kind", "name"),
    [
        ("DescribeEndpointConfig", "endpoint configuration", "chat-config"),
        ("DescribeModel", "model", "chat-model"),
    ],
)
def test_a_part_that_was_deleted(import_endpoint, operation, kind, name):
    missing = ("ValidationException", f'Could not find {kind} "{name}".')
    code, _, errors = import_endpoint(answers(), refused={operation: missing})
    assert code == 1
    assert errors == (
        f"1 problem\n- the {kind} {name} of endpoint chat-old was deleted, and SageMaker tells "
        "nothing more of what serves [SW664]\n    Import what you know of it: `slipway import NAME "
        "--call FILE`.\n"
    )


def test_a_call_that_fails_for_another_reason(import_endpoint):
    code, _, errors = import_endpoint(
        answers(), refused={"ListTags": ("ThrottlingException", "slow down")}
    )
    assert code == 1
    assert "the account could not be examined: An error occurred (ThrottlingException)" in errors


def test_a_region_goes_with_an_endpoint(import_endpoint, slipway_command):
    import_endpoint(answers(), *NETWORK)
    code, _, errors = slipway_command(
        "import", "other", "--hub", "build/x", "--region", "eu-west-1"
    )
    assert code == 1
    assert "`--region` goes with `--endpoint` [SW409]\n    Leave `--region` out.\n" in errors
