"""Workers on an instance with stand-ins of the device, and batches for them."""

from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np

from containers.neuron.lanes import WorkerCommand
from containers.neuron.placement import placements
from containers.neuron.workers import RestartPolicy, WorkerPool
from tests.containers.neuron.machine import compiled_model, make_machine, runtime

PATIENCE_SECONDS = 60.0
QUICK = RestartPolicy(most_deaths=6, first_pause_seconds=0.01)
BATCH, COLUMNS = 2, 16


def instance(tmp_path, *, cores, **model):
    machine = make_machine(tmp_path, cores=cores)
    return machine, compiled_model(tmp_path / "model", buckets=(COLUMNS,), **model)


@contextmanager
def workers(
    machine,
    model_dir,
    *,
    count,
    cores=1,
    lanes=1,
    lanes_ahead=0,
    policy=QUICK,
    batch_timeout_seconds=PATIENCE_SECONDS,
    **environment,
):
    command = WorkerCommand(
        arguments=machine.arguments(model_dir),
        environment=machine.environment | environment,
        lanes=lanes,
        lanes_ahead=lanes_ahead,
        start_timeout_seconds=PATIENCE_SECONDS,
        batch_timeout_seconds=batch_timeout_seconds,
    )
    pool = WorkerPool(placements(count, cores), command, policy, Future())
    try:
        pool.start()
        yield pool
    finally:
        pool.close()


def batch(*token_ids):
    input_ids = np.full((BATCH, COLUMNS), 7, np.int64)
    input_ids[0, : len(token_ids)] = token_ids
    ones = np.ones_like(input_ids)
    return {"input_ids": input_ids, "attention_mask": ones, "token_type_ids": ones}


def check(pool, *token_ids):
    """Computes a batch and compares it with what its graph computes."""
    arrays = batch(*token_ids)
    outputs = pool.compute(arrays)
    expected = runtime.computed("question-answering", *arrays.values())
    assert list(outputs) == ["start_logits", "end_logits"]
    for found, wanted in zip(outputs.values(), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
