"""Names and types of the stand-in for `tensorrt`."""

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

DataType = enum.Enum("DataType", {"FLOAT": 0, "HALF": 1, "INT32": 3, "INT64": 8})
TensorIOMode = enum.Enum("TensorIOMode", {"NONE": 0, "INPUT": 1, "OUTPUT": 2})
TensorLocation = enum.Enum("TensorLocation", {"DEVICE": 0, "HOST": 1})
NetworkDefinitionCreationFlag = enum.IntEnum("NetworkDefinitionCreationFlag", {"STRONGLY_TYPED": 1})
TopKOperation = enum.Enum("TopKOperation", {"MAX": 0})
ReduceOperation = enum.Enum("ReduceOperation", {"SUM": 0, "MAX": 2})
ElementWiseOperation = enum.Enum("ElementWiseOperation", {"SUB": 4, "DIV": 5})
UnaryOperation = enum.Enum("UnaryOperation", {"EXP": 0})

# Only names in annotations.
ICudaEngine = IExecutionContext = IBuilderConfig = INetworkDefinition = Any


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
