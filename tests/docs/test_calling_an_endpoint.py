"""The programs of the page about clients, each run as a reader copies it."""

from collections.abc import Iterator

import pytest

from tests.support import served_sample
from tests.support.pages import ROOT, Block, blocks
from tests.support.workbench import Workbench

PAGE = ROOT / "docs" / "calling-an-endpoint.md"
COMPLETION = " name for the Amazon S3 bucket."
REFUSAL = "logprobs is not supported: leave it out."
# A client's label -> the folder in build with its Python, and the group of tests.
ENVIRONMENTS = {
    "langchain": ("clients", pytest.mark.clients),
    "litellm": ("clients", pytest.mark.clients),
    "sagemaker-2": ("sagemaker-2", pytest.mark.sagemaker_sdk),
    "sagemaker-3": ("sagemaker-3", pytest.mark.sagemaker_sdk),
}
# LiteLLM calls AWS's address, whatever AWS_ENDPOINT_URL says: here its requests take another way.
TO_THE_EMBEDDED_AWS = """\
import httpx
import os
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

real = httpx.HTTPTransport.handle_request

def handle_request(self, request):
    assert request.url.host == "runtime.sagemaker.us-east-1.amazonaws.com"
    url = httpx.URL(os.environ["AWS_ENDPOINT_URL"])
    request.url = request.url.copy_with(scheme=url.scheme, host=url.host, port=url.port)
    # The signature covers the address.
    request.headers["Host"] = url.netloc.decode()
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    signed = AWSRequest(
        request.method,
        str(request.url),
        {"Content-Type": request.headers["Content-Type"]},
        data=request.read(),
    )
    credentials = Credentials(*(os.environ[name] for name in names))
    SigV4Auth(credentials, "sagemaker", "us-east-1").add_auth(signed)
    request.headers.update(dict(signed.headers))
    return real(self, request)

httpx.HTTPTransport.handle_request = handle_request
"""
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
PROGRAMS = [
    pytest.param(block, id=block.place, marks=[ENVIRONMENTS[name][1] for name in block.labels[1:]])
    for block in blocks(PAGE)
    if block.language != "yaml"
]

pytestmark = [pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """An embedded AWS that serves the sample, with a chat template."""
    with Workbench(tmp_path_factory.mktemp("clients")) as bench:
        model = bench.project / "samples" / "gpt2-autocomplete" / "model"
        (model / "chat_template.jinja").write_text(TEMPLATE)
        served_sample.deploy(bench)
        served_sample.await_serving(bench)
        # Without it LiteLLM asks GitHub for its table of prices.
        bench.environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
        yield bench


@pytest.mark.size("all")
@pytest.mark.parametrize("block", PROGRAMS)
def test_a_program_prints_the_answer(bench: Workbench, block: Block) -> None:
    source = block.text.replace("autocomplete-production", served_sample.ENDPOINT)
    assert source != block.text
    python = "python"
    for name in block.labels[1:]:
        python = str(ROOT / "build" / ENVIRONMENTS[name][0] / "bin" / "python")
    if "litellm" in block.labels:
        source = TO_THE_EMBEDDED_AWS + source
    printed = bench.must(python, "-c", source)
    assert printed.splitlines()[-1] == (REFUSAL if "logprobs" in source else COMPLETION)


@pytest.mark.parametrize(
    ("lock", "package", "told"),
    [
        ("tools/clients/clients.txt", "langchain-aws", "langchain-aws"),
        ("tools/clients/clients.txt", "litellm", "LiteLLM"),
        ("requirements-dev.txt", "sagemaker-core", "sagemaker-core"),
        ("tools/clients/sagemaker-2.txt", "sagemaker", "Version"),
        ("tools/clients/sagemaker-3.txt", "sagemaker", "Version"),
    ],
)
def test_the_page_names_the_versions_that_are_tested(lock: str, package: str, told: str) -> None:
    lines = (ROOT / lock).read_text("utf-8").splitlines()
    [line] = [line for line in lines if line.startswith(f"{package}==")]
    major, minor, *_ = line.partition("==")[2].split()[0].split(".")
    assert f"{told} {major}.{minor}" in PAGE.read_text("utf-8")
