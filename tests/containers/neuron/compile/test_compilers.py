"""Compilers' stand-ins: their arguments, and the message of a job whose compiler fails."""

import pytest

from containers.jobs.report import CompileError
from tests.containers.neuron.compile.jobs import STANDINS, VERSIONS
from tests.containers.neuron.machine import write_versions
from tests.support.groups import need
from tests.support.messages import message_of

need("torch")

from containers.neuron.compile import compilers  # noqa: E402  (after the skips)
from containers.neuron.compile.worker import compile_order  # noqa: E402
from tests.containers.neuron.compile.random_checkpoints import (  # noqa: E402
    MARKS,
    order_for,
    save_checkpoint,
)

pytestmark = MARKS


class TestCompilers:
    @pytest.fixture(autouse=True)
    def _compilers(self, tmp_path, monkeypatch):
        site = tmp_path / "site"
        for versions in VERSIONS.values():
            write_versions(site, versions)
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.syspath_prepend(str(STANDINS))
        monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "inf2")
        monkeypatch.delenv("NEURON_STANDIN_CORES", raising=False)

    @pytest.mark.parametrize(
        ("target", "dtype", "cores", "arguments"),
        [
            ("inf1", "bf16", 1, "--fp32-cast matmult-bf16"),
            ("inf1", "fp16", 1, "--fp32-cast matmult-fp16"),
            ("inf1", "fp16", 16, "--fp32-cast matmult-fp16 --neuroncore-pipeline-cores 16"),
            ("inf2", "fp32", 1, "--target inf2 --model-type transformer --auto-cast none"),
            (
                "trn1",
                "bf16",
                1,
                "--target trn1 --model-type transformer --auto-cast matmult --auto-cast-type bf16",
            ),
            ("cpu", "fp32", 1, ""),
        ],
    )
    def test_what_they_are_told(self, tmp_path, target, dtype, cores, arguments):
        order = order_for(
            tmp_path, tmp_path, target=target, dtype=dtype, pipeline_cores=cores,
            runtime={"inf1": "torch_neuron", "cpu": "onnxruntime"}.get(target, "torch_neuronx"),
        )  # fmt: skip
        assert compilers.compiler_arguments(order) == tuple(arguments.split())

    def compile_for_inf1(self, tmp_path, **changes):
        checkpoint, scratch = tmp_path / "checkpoint", tmp_path / "scratch"
        save_checkpoint(checkpoint)
        scratch.mkdir()
        order = order_for(
            checkpoint, tmp_path, target="inf1", runtime="torch_neuron", dtype="bf16", **changes
        )
        compile_order(order, scratch)

    def test_a_graph_of_the_processor_is_refused(self, tmp_path, monkeypatch):
        """With a warning torch_neuron gives one back where it compiled nothing."""
        monkeypatch.setenv("NEURON_STANDIN_COMPILES", "nothing")
        assert message_of(CompileError, self.compile_for_inf1, tmp_path) == (
            "torch_neuron compiled nothing of BertForQuestionAnswering for inf1: it would all run "
            "on the processor; the job's log has what it wrote"
        )

    def test_a_compiler_that_fails_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setattr(
            compilers, "compiler_arguments", lambda _: ("--fp32-cast", "everything")
        )
        assert message_of(CompileError, self.compile_for_inf1, tmp_path) == (
            "torch_neuron cannot compile BertForQuestionAnswering for 2 x 8 tokens: RuntimeError: "
            "the compiler does not know --fp32-cast everything; the job's log has what its "
            "compiler wrote"
        )

    def test_a_lack_of_memory_is_no_fault_of_the_model(self, tmp_path, monkeypatch):
        def out_of_memory(order):
            raise MemoryError

        monkeypatch.setattr(compilers, "compiler_arguments", out_of_memory)
        with pytest.raises(MemoryError):
            self.compile_for_inf1(tmp_path)
