"""The reduction that may come last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType
from gridstride.families.fuse.literals import literal
from gridstride.families.fuse.numbers import Number

if TYPE_CHECKING:
    from gridstride.families.fuse.tape import Tape
    from gridstride.families.fuse.traced import Traced


class How(NamedTuple):
    """The expressions of a reduction; `kind` says how dtypes go."""

    reduce_expr: str
    identity: str | None
    kind: str = "same"


_SUM, _PRODUCT = How("a + b", "0", "sum"), How("a * b", "1", "sum")
_MAX, _MIN = How("gridstride::numpy::maximum(a, b)", None), How("gridstride::numpy::minimum(a, b)", None)
_ANY, _ALL = How("a || b", "false", "bool"), How("a && b", "true", "bool")
_HOW = {
    "sum": _SUM, "prod": _PRODUCT, "max": _MAX, "amax": _MAX, "min": _MIN, "amin": _MIN, "any": _ANY, "all": _ALL,
    "mean": How("a + b", "0", "mean"), "var": How("", None, "var"), "std": How("", None, "std"),
    "count_nonzero": How("a + b", "0", "count"),
}  # fmt: skip
NAMES = frozenset(_HOW)
METHODS = NAMES - {"amax", "amin", "count_nonzero"}
_OF_UFUNCS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any",
              "logical_and": "all"}  # fmt: skip
_OF_COMPLEX = {"max": "gridstride::numpy::later(a, b)", "min": "gridstride::numpy::earlier(a, b)"}
#: Moments by the formulas of Chan, Golub and LeVeque: of one element and of two sets of elements.
_MOMENTS = """
struct gridstride_moments { long long n; VALUE mean; REAL squares; };
__device__ inline gridstride_moments gridstride_of_one(const VALUE& value) {
    return gridstride_moments{1, value, NORM(value - value)};  // which of infinities is no number
}
__device__ inline gridstride_moments gridstride_joined(const gridstride_moments& a, const gridstride_moments& b) {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    const REAL share = REAL(b.n) / REAL(a.n + b.n);
    const VALUE apart = b.mean - a.mean;
    const REAL squares = a.squares + b.squares + NORM(apart) * REAL(a.n) * share;
    return gridstride_moments{a.n + b.n, a.mean + apart * share, squares};
}
"""


def reduced_by(tape: Tape, ufunc: str, x: Any, axis: Any = 0, **options: Any) -> Reduced:
    """Record ``ufunc.reduce``."""
    if ufunc not in _OF_UFUNCS:
        raise tape.refusal(f"{ufunc}.reduce()")
    options = {
        name: value for name, value in options.items() if value is not np._NoValue and value is not None
    }
    return reduced(tape, _OF_UFUNCS[ufunc], x, axis, **options)


#: The parameters of NumPy's functions behind the array that may stand by position.
_LIKE_SUM, _LIKE_VAR = ("axis", "dtype", "out", "keepdims"), ("axis", "dtype", "out", "ddof", "keepdims")
_LIKE_MAX, _LIKE_ANY = ("axis", "out", "keepdims", "initial", "where"), ("axis", "out", "keepdims")
_POSITIONS = {
    "sum": (*_LIKE_SUM, "initial", "where"), "prod": (*_LIKE_SUM, "initial", "where"), "mean": _LIKE_SUM,
    "max": _LIKE_MAX, "amax": _LIKE_MAX, "min": _LIKE_MAX, "amin": _LIKE_MAX, "any": _LIKE_ANY, "all": _LIKE_ANY,
    "var": _LIKE_VAR, "std": _LIKE_VAR, "count_nonzero": ("axis",),
}  # fmt: skip


def reduced(tape: Tape, name: str, x: Any, *args: Any, **kwargs: Any) -> Reduced:
    """Record a reduction, which must come last."""
    given = {**by_name(tape, name, _POSITIONS[name], args), **kwargs}
    given = {key: value for key, value in given.items() if value is not np._NoValue}
    if given.get("where") is True:
        del given["where"]
    axis, dtype, keepdims = given.pop("axis", None), given.pop("dtype", None), given.pop("keepdims", False)
    ddof = given.pop("correction", given.pop("ddof", tape.rules.ddof))
    if given.pop("out", None) is not None:
        raise tape.refusal(f"{name}() into an output")
    if given:
        hint = f": write {name}(where(condition, x, ...))" if "where" in given else ""
        raise tape.refusal(f"{name}() with {', '.join(given)}{hint}")
    name = name.removeprefix("a") if name in ("amax", "amin") else name
    return Reduced(tape.value(x), name, _axis(tape, name, axis), bool(keepdims), dtype, float(ddof))


def by_name(tape: Tape, name: str, names: Sequence[str], args: Sequence[Any]) -> dict[str, Any]:
    """Return arguments behind the array by the names of their parameters."""
    if len(args) > len(names):
        raise tape.refusal(f"{name}() of {len(args) + 1} positional arguments: it takes {len(names) + 1}")
    return dict(zip(names, args, strict=False))


def _axis(tape: Tape, name: str, axis: Any) -> Any:
    from gridstride.families.fuse.traced import Traced

    if axis is None or axis is np._NoValue:
        return None
    if issubclass(type(axis), Traced):
        raise tape.refusal(f"{name}() along an axis that is an array")
    is_one = type(axis) not in tape.rules.several_axes
    each_of = [each.pinned() if type(each) is Number else each for each in ((axis,) if is_one else axis)]
    if any(isinstance(each, bool | np.bool_) or not hasattr(each, "__index__") for each in each_of):
        raise tape.refusal(f"{name}() along axis {axis!r}, which is no integer")
    found = tuple(map(index, each_of))
    return found[0] if is_one else tape.rules.all_axes(name, found)


class Reduced:
    """Stand for the result of a reduction; nothing can be done with it but to return it."""

    __slots__ = ("axis", "ddof", "how", "keepdims", "name", "numpy_dtype", "value")

    def __init__(self, value: Traced, name: str, axis: Any, keepdims: bool, dtype: Any, ddof: float) -> None:
        self.name, self.how, self.axis, self.keepdims, self.ddof = name, _HOW[name], axis, keepdims, ddof
        if dtype is None or dtype is np._NoValue:
            self.numpy_dtype = value.tape.rules.reduced(value.tape, name, self.how.kind, value.numpy_dtype)
        else:
            self.numpy_dtype = value.tape.known_dtype(f"{name}() in dtype", dtype)
            if self.how.kind in ("var", "std") and self.numpy_dtype.kind in "biu":
                raise value.tape.refusal(f"{name}() in {self.numpy_dtype}, which has no fractions")
        self.value = self._mapped(value).copied()
        if axis in (0, -1) and not self.value.has_axes:
            self.axis = None  # which NumPy takes for an array without axes

    @property
    def dtype(self) -> Any:
        """The dtype, as the library of the arrays has it."""
        return self.value.tape.rules.shown(self.numpy_dtype)

    def _mapped(self, value: Any) -> Any:
        """Return what is folded of each element."""
        tape = value.tape
        if self.how.kind in ("bool", "count"):
            value = tape.typed(value, np.dtype(np.bool_))
        if self.how.kind in ("var", "std"):
            wide = (
                value.numpy_dtype
                if value.numpy_dtype.kind == "c"
                else np.result_type(self.numpy_dtype, np.float32)
            )
            return tape.typed(value, wide)
        return tape.typed(value, self.numpy_dtype)

    def kernel_texts(self) -> dict[str, str | None]:
        """Return the expressions of the kernel that folds what ``gridstride_traced_value`` returns for an element."""
        reduce_expr = self.how.reduce_expr
        if self.value.numpy_dtype.kind == "c":
            reduce_expr = _OF_COMPLEX.get(self.name, reduce_expr)
        texts: dict[str, str | None] = {
            "reduce_expr": reduce_expr, "post_map_expr": "y = a", "identity": self.how.identity, "reduce_type": None,
            "map_expr": "{}", "preamble": "",
        }  # fmt: skip
        if self.how.kind == "mean":
            texts["post_map_expr"] = (
                f"y = {'double(a)' if self.numpy_dtype.kind in 'iub' else 'a'} / _fold_size"
            )
        elif self.how.kind in ("var", "std"):
            texts |= self._moments()
        elif self.value.numpy_dtype.kind == "b" and self.name in ("max", "min"):
            texts["reduce_expr"] = "a || b" if self.name == "max" else "a && b"
        return texts

    def _moments(self) -> dict[str, str | None]:
        value, real = value_ctype(self.value.numpy_dtype), value_ctype(self._real())
        norm = "norm" if self.value.numpy_dtype.kind == "c" else "gridstride::numpy::squared"
        preamble = _MOMENTS.replace("VALUE", value).replace("REAL", real).replace("NORM", norm)
        ddof = literal(self._real().type(self.ddof), self._real())
        variance = f"a.squares / gridstride::numpy::at_least_zero({real}(_fold_size) - {ddof})"
        return {
            "preamble": preamble,
            "map_expr": "gridstride_of_one({})",
            "reduce_expr": "gridstride_joined(a, b)",
            "post_map_expr": f"y = sqrt({variance})" if self.how.kind == "std" else f"y = {variance}",
            "identity": "gridstride_moments{0, 0, 0}",
            "reduce_type": "gridstride_moments",
        }

    def _real(self) -> DType:
        dtype = self.value.numpy_dtype
        return np.finfo(dtype).dtype if dtype.kind == "c" else dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.value.tape.refusal(f"{name!r} of the result of {self.name}(), which must come last")

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return self._behind()

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return first_of(cls, args, kwargs or {})._behind()

    def _behind(self, *others: Any) -> Any:
        raise self.value.tape.refusal(f"something behind {self.name}(), which must come last")

    __hash__ = None  # type: ignore[assignment]
    __getitem__ = __len__ = __iter__ = _behind


def first_of(kind: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return the first argument of a class, which may stand in a list."""
    for each in (*args, *kwargs.values()):
        for one in each if isinstance(each, list | tuple) else (each,):
            if issubclass(type(one), kind):
                return one
    raise AssertionError(f"no argument is of {kind}")


for _operation in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"):
    for _prefix in ("", "r", "i"):
        setattr(Reduced, f"__{_prefix}{_operation}__", Reduced._behind)
for _operation in ("neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "float", "complex",
                   "index", "round"):  # fmt: skip
    setattr(Reduced, f"__{_operation}__", Reduced._behind)
