"""Runs a .mlpackage read back from disk, in numpy: Core ML itself runs on macOS only.

Every operation's result is rounded to the type that the package gives it, so float16 is what is measured. Sums inside
an operation are in float32, as an accelerator's are.
"""

import math
import pathlib

import numpy as np
from coremltools.converters.mil.frontend.milproto.load import load as load_program
from coremltools.converters.mil.mil import types
from coremltools.proto import Model_pb2

import package


def erf(x):
    """The error function, within 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return np.copysign(1 - series * np.exp(-x * x), x)


class Package:
    """A .mlpackage: its functions by name, and its user-defined metadata."""

    def __init__(self, path):
        path = pathlib.Path(path)
        spec = Model_pb2.Model()
        spec.ParseFromString((path / package.MODEL).read_bytes())
        self.specification = spec.specificationVersion
        self.metadata = dict(spec.description.metadata.userDefined)
        weights = path / package.MODEL.parent / "weights"
        self.functions = load_program(spec, spec.specificationVersion, str(weights)).functions
        self.constants = {}  # by function: float16 ones as float32, which takes longer than most operations

    def run(self, inputs, function="main"):
        """Returns the function's only output for int32 inputs by name."""
        f = self.functions[function]
        if function not in self.constants:
            constants = (op for op in f.operations if op.op_type == "const")
            self.constants[function] = {op.outputs[0]: widened(op.val.val) for op in constants}
        values = dict(self.constants[function])
        for name, variable in f.inputs.items():
            if inputs[name].shape != variable.shape or inputs[name].dtype != np.int32:
                raise ValueError(f"{name} is {inputs[name].dtype} {inputs[name].shape}, wanted int32 {variable.shape}")
            values[variable] = inputs[name]
        if inputs.keys() - f.inputs.keys():
            raise ValueError(f"the function has no inputs {sorted(inputs.keys() - f.inputs.keys())}")
        for op in f.operations:
            if op.op_type != "const":
                values[op.outputs[0]] = evaluate(op, values)
        (output,) = f.outputs
        return values[output]


def evaluate(op, values):
    """Returns the value of an operation of one output."""
    if op.op_type not in OPERATIONS:
        raise NotImplementedError(f"operation {op.op_type} ({op.name})")

    def value(name):
        variable = op.inputs.get(name)
        if variable is None:
            return None
        return widened(values.get(variable, variable.val))

    result = np.asarray(OPERATIONS[op.op_type](value))
    output = op.outputs[0]
    if result.shape != output.shape:
        raise ValueError(f"{op.name}: got {result.shape}, the package says {output.shape}")
    return result.astype(types.nptype_from_builtin(output.dtype))


def widened(value):
    """Returns a value to compute with: float16 as float32."""
    return value.astype(np.float32) if getattr(value, "dtype", None) == np.float16 else value


def binary(function):
    return lambda v: function(v("x"), v("y"))


def layer_norm(v):
    x, axes = v("x"), tuple(v("axes"))
    mean = x.mean(axis=axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    shape = [n if i in [a % x.ndim for a in axes] else 1 for i, n in enumerate(x.shape)]
    normed = (x - mean) / np.sqrt(variance + np.float32(v("epsilon")))
    return normed * v("gamma").reshape(shape) + v("beta").reshape(shape)


def softmax(v):
    x = v("x")
    e = np.exp(x - x.max(axis=v("axis"), keepdims=True))
    return e / e.sum(axis=v("axis"), keepdims=True)


def matmul(v):
    x, y = v("x"), v("y")
    x = np.swapaxes(x, -1, -2) if v("transpose_x") else x
    y = np.swapaxes(y, -1, -2) if v("transpose_y") else y
    return x @ y


def conv(v):
    weight = v("weight")
    if weight.shape[2:] != (1, 1) or v("groups") not in (None, 1):
        raise NotImplementedError("only 1x1 convolutions")
    rows, _, height, width = v("x").shape
    flat = weight[:, :, 0, 0] @ v("x").reshape(rows, -1, height * width)
    return flat.reshape(rows, -1, height, width) + v("bias")[:, None, None]


def gather(v):
    return np.take(v("x"), v("indices"), axis=v("axis"))


def gelu(v):
    if v("mode") not in (None, "EXACT"):
        raise NotImplementedError(f"gelu of mode {v('mode')}")
    x = v("x")
    return x * 0.5 * (1 + erf(x / np.float32(math.sqrt(2))))


def slice_by_size(v):
    return v("x")[tuple(slice(b, b + n) for b, n in zip(v("begin"), v("size")))]


OPERATIONS = {
    "add": binary(np.add),
    "cast": lambda v: v("x"),
    "conv": conv,
    "expand_dims": lambda v: np.expand_dims(v("x"), tuple(v("axes"))),
    "gather": gather,
    "gelu": gelu,
    "greater_equal": binary(np.greater_equal),
    "layer_norm": layer_norm,
    "linear": lambda v: v("x") @ v("weight").T + v("bias"),
    "matmul": matmul,
    "mul": binary(np.multiply),
    "real_div": binary(np.divide),
    "reduce_sum": lambda v: v("x").sum(axis=tuple(v("axes")), keepdims=bool(v("keep_dims"))),
    "reshape": lambda v: v("x").reshape(v("shape")),
    "select": lambda v: np.where(v("cond"), v("a"), v("b")),
    "slice_by_size": slice_by_size,
    "softmax": softmax,
    "squeeze": lambda v: v("x").squeeze(tuple(v("axes"))),
    "sub": binary(np.subtract),
    "tanh": lambda v: np.tanh(v("x")),
    "transpose": lambda v: v("x").transpose(v("perm")),
}
