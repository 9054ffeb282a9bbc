"""Names and types of the stand-in for `tensorrt`."""

import enum
from dataclasses import dataclass

import numpy as np


class DataType(enum.Enum):
    FLOAT = 0
    HALF = 1
    INT32 = 3
    INT64 = 8


class TensorIOMode(enum.Enum):
    NONE = 0
    INPUT = 1
    OUTPUT = 2


class TensorLocation(enum.Enum):
    DEVICE = 0
    HOST = 1


class NetworkDefinitionCreationFlag(enum.IntEnum):
    STRONGLY_TYPED = 1


class TopKOperation(enum.Enum):
    MAX = 0


class ReduceOperation(enum.Enum):
    SUM = 0
    MAX = 2


class ElementWiseOperation(enum.Enum):
    SUB = 4
    DIV = 5


class UnaryOperation(enum.Enum):
    EXP = 0


class ILogger:
    class Severity(enum.Enum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4

    def log(self, severity, msg):
        raise NotImplementedError


NUMPY_TYPES = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.HALF: np.dtype(np.float16),
    DataType.INT32: np.dtype(np.int32),
    DataType.INT64: np.dtype(np.int64),
}


@dataclass
class Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: DataType
    mode: TensorIOMode
    location: TensorLocation = TensorLocation.DEVICE
