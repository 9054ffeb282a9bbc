import numpy as np
import pytest

from containers.encoders.batches import batch_arrays, fitting
from containers.encoders.tokenization import Row
from containers.neuron.placement import placements

ROWS = [Row((2, 7, 3), (0, 0, 0), 1), Row((2, 7, 3, 8, 3), (0, 0, 0, 1, 1), 3)]


def test_rows_are_padded_to_the_bucket_and_the_batch():
    arrays = batch_arrays(ROWS, bucket=6, batch_size=3, pad_token_id=9)
    assert arrays["input_ids"].tolist() == [
        [2, 7, 3, 9, 9, 9],
        [2, 7, 3, 8, 3, 9],
        [2, 7, 3, 9, 9, 9],
    ]
    assert arrays["attention_mask"].tolist() == [
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 0],
        [1, 1, 1, 0, 0, 0],
    ]
    assert arrays["token_type_ids"].tolist()[1] == [0, 0, 0, 1, 1, 0]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}


def test_the_number_of_rows():
    of_any_batch = batch_arrays(ROWS, bucket=6, batch_size=None, pad_token_id=0)
    assert of_any_batch["input_ids"].shape == (2, 6)
    with pytest.raises(ValueError, match="2 rows for a graph of 1"):
        batch_arrays(ROWS, bucket=6, batch_size=1, pad_token_id=0)


@pytest.mark.parametrize(
    ("has_free_rows", "buckets", "most", "chosen"),
    [
        (True, [32], 4, [0]),
        (True, [32, 32, 32], 2, [0, 1]),
        # The longer one waits; those of the first one's bucket pass it.
        (True, [32, 128, 32, 32], 3, [0, 2, 3]),
        # Free rows of a long graph take short texts, the first ones first.
        (True, [128, 32, 64, 128, 32], 4, [0, 1, 2, 3]),
        (True, [128, 32, 128, 128], 3, [0, 2, 3]),
        (True, [32, 128, 128, 128], 4, [0]),
        # No row is padded further where that costs.
        (False, [32, 128, 32, 32], 3, [0, 2, 3]),
        (False, [128, 32, 64, 128, 32], 4, [0, 3]),
        (False, [64, 64, 64], 2, [0, 1]),
    ],
)
def test_what_is_computed_together(has_free_rows, buckets, most, chosen):
    assert fitting(buckets, most, has_free_rows=has_free_rows) == chosen


def test_each_worker_has_cores_of_its_own():
    four = placements(4, 4)
    assert [place.visible_cores for place in four] == ["0-3", "4-7", "8-11", "12-15"]
    assert [place.visible_cores for place in placements(3, 1)] == ["0", "1", "2"]
    assert str(four[1]) == "worker 1 (NeuronCores 4-7)"
    inherited = {"A": "b", "NEURON_RT_NUM_CORES": "4", "NEURON_RT_VISIBLE_CORES": "9"}
    assert four[1].environment(inherited) == {"A": "b", "NEURON_RT_VISIBLE_CORES": "4-7"}
    [on_cpu] = placements(1, 0)
    assert str(on_cpu) == "worker 0"
    assert on_cpu.environment(inherited) == {"A": "b"}
