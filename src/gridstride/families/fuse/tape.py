"""The record of what a function does to arrays: statements of CUDA C++."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from gridstride import _dtypes, arrays
from gridstride._arguments.parameters import value_ctype
from gridstride._arguments.promotion import DType, Weak
from gridstride.families.fuse import conversions, functions
from gridstride.families.fuse.arguments import Arguments, Given
from gridstride.families.fuse.constants import exact
from gridstride.families.fuse.conversions import Convert
from gridstride.families.fuse.errors import place_of_user, refusal, reported_errors
from gridstride.families.fuse.numbers import Number, given_of, is_number, is_scalar, tape_under_way
from gridstride.families.fuse.rules import Rules
from gridstride.families.fuse.steps import Steps, without_axes

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
#: What NumPy reports divisions by zero of.
_DIVIDING = frozenset({
    "divide", "floor_divide", "remainder", "fmod", "reciprocal", "power", "float_power", "log", "log2", "log10",
    "log1p", "arctanh",
})  # fmt: skip


class Line(NamedTuple):
    """One statement: the variable that it makes, its text, the variables that it uses, and of which arrays it is."""

    name: str
    text: str
    uses: frozenset[str]
    arrays: frozenset[str]


class Change(NamedTuple):
    """What must not grow: the arrays that a value was made of, those of what it becomes, what is done and where."""

    before: frozenset[str]
    by: frozenset[str]
    what: str
    hint: str


class Scalar(NamedTuple):
    """A number that the kernel is passed, how its value becomes that of the parameter's dtype, and whose it is.

    `constant` is the value in the dtype where it is the same in all calls, else None.
    """

    number: Number
    dtype: DType
    convert: Convert
    function: str
    place: str
    constant: Any = None

    def converted(self, value: Any) -> Any:
        """Return a value in the dtype; NumPy's error where there is none says in which function."""
        try:
            return self.convert(value, self.dtype)
        except (OverflowError, ValueError) as error:
            raise type(error)(f"fused function `{self.function}`: {error}{self.place}") from None

    def found(self, taken: Sequence[Any]) -> Any:
        """Return the number of a call in the dtype, given what the tape's steps come to there."""
        if self.constant is not None:
            return self.constant
        return self.converted(self.number.found(taken))


class Numbers(NamedTuple):
    """The numbers of one call: what the steps come to, and the kernel's parameters that are numbers, by name."""

    taken: Sequence[Any]
    scalars: Mapping[str, Any]


class Tape:
    """Record what happens to traced values.

    Attributes
    ----------
    name : str
        Of the function.
    rules : Rules
        By which results have dtypes.
    library : str
        Of all arrays; "" where there are several.
    steps : Steps
        What is calculated with numbers.
    arrays, scalars : dict
        The parameters of the kernel by name: dtypes of arrays, and numbers.
    lines : dict of str to Line
    changes : list of Change
    pinned : set of str
        Arguments whose values the trace depends on.
    negative_exponents : list of Traced
        Whether an exponent of integers is negative, for each that is no number.
    """

    def __init__(self, name: str, rules: Rules, given: Arguments) -> None:
        libraries = {each.library for each in given.arrays}
        self.name, self.rules = name, rules
        self.library = libraries.pop() if len(libraries) == 1 else ""
        self.steps = Steps(len(given.all))
        self.arrays: dict[str, DType] = {}
        self.scalars: dict[str, Scalar] = {}
        self.lines: dict[str, Line] = {}
        self.changes: list[Change] = []
        self.pinned: set[str] = set()
        self.negative_exponents: list[Any] = []
        self._known_scalars: dict[Any, str] = {}
        self._refusals: list[TypeError] = []
        self._reported_before = reported_errors()

    def array(self, given: Given) -> Any:
        """Return what stands for an argument that is an array."""
        from gridstride.families.fuse.traced import Traced

        parameter = f"x{len(self.arrays)}"
        self.arrays[parameter] = given.dtype_for(self.name)
        shown = type(given.value) if given.library == "numpy" else None
        return Traced(self, parameter, self.arrays[parameter], given.name, given.has_axes, shown)

    def refusal(self, what: str) -> TypeError:
        """Return the error for something that cannot be traced."""
        self._refusals.append(refusal(self.name, what))
        return self._refusals[-1]

    def raise_what_was_caught(self) -> None:
        """Raise the first refusal, if any, though the function caught it: it went on as it does not with arrays."""
        if self._refusals:
            raise self._refusals[0]

    def add(self, expression: str, dtype: DType, operands: Iterable[Any]) -> Any:
        """Append a statement; return the value that it makes."""
        from gridstride.families.fuse.traced import Traced

        name, operands = f"t{len(self.lines)}", tuple(map(self.own, operands))
        text = f"const {value_ctype(dtype)} {name} = {expression};"
        uses = frozenset(each.code for each in operands)
        made_of = frozenset[str]().union(*map(self.arrays_in, uses))
        self.lines[name] = Line(name, text, uses, made_of)
        return Traced(self, name, dtype, has_axes=any(each.has_axes for each in operands))

    def changed(self, old: Any, new: Any) -> Any:
        """Record that one value takes the place of another, whose dtype and shape stay."""
        if tape_under_way() is not self:
            self.refuse_kept()
        new = self.typed(new, old.numpy_dtype)
        before, by = self.arrays_in(old.code), self.arrays_in(new.code)
        if not by <= before:
            hint = f": write t = t + ... for t += ...{place_of_user()}"
            self.changes.append(Change(before, by, "a change in place of an array", hint))
        if not before <= by:
            new = self.add(f"((void){old.code}, {new.code})", old.numpy_dtype, (old, new))
        return new

    def own(self, traced: Any) -> Any:
        """Return a traced value of this tape; any other is refused."""
        if traced.tape is not self:
            self.refuse_kept()
        return traced

    def refuse_kept(self) -> NoReturn:
        """Raise TypeError for what stands for an array of another call."""
        raise self.refusal("an array that another call of a fused function had, and that was kept")

    def used_by(self, name: str) -> set[str]:
        """Return all variables and parameters that a variable is made of, itself too."""
        found, waiting = set[str](), [name]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                waiting += self.lines[each].uses if each in self.lines else ()
        return found

    def arrays_in(self, name: str) -> frozenset[str]:
        """Return the parameters that are arrays of which a variable is made."""
        if name in self.lines:
            return self.lines[name].arrays
        return frozenset([name] if name in self.arrays else [])

    def value(self, operand: Any) -> Any:
        """Return an operand as a traced value or a number."""
        from gridstride.families.fuse.reductions import Reduced
        from gridstride.families.fuse.traced import Traced

        if type(operand) is Number:
            return operand.of(self)
        if issubclass(type(operand), Traced):
            return self.own(operand)
        if type(operand) is Reduced:
            raise self.refusal("something behind a reduction, which must come last")
        operand = without_axes(operand)
        if is_number(operand):
            return Number(self, operand)
        if is_scalar(operand):
            return Number(self, self.rules.plain(operand))
        if issubclass(type(operand), Traced | Reduced):
            raise self.refusal("an array of Python objects, such as vectorize() makes")
        if issubclass(type(operand), np.generic):
            raise self.refusal(
                f"a number of type {type(operand).__name__}, which no kernel has: convert it, such as by float()"
            )
        if hasattr(operand, "__array_interface__") or hasattr(operand, "__dlpack__"):
            if tuple(np.shape(operand)) == ():
                return self._constant(operand)
            raise self.refusal(
                f"an array that is no argument, of shape {tuple(np.shape(operand))}: pass it to the function"
            )
        raise self.refusal(f"a value of type {type(operand).__name__}, which is neither traced nor a number")

    def known_dtype(self, what: str, dtype: Any) -> DType:
        """Return a dtype that kernels know, in the order of bytes that processors have; others are refused."""
        try:
            found = _dtypes.dtype_of(dtype)
        except (TypeError, ValueError):
            raise self.refusal(f"{what} {dtype!r}, which no kernel has") from None
        if _dtypes.name_of_dtype(found) not in _dtypes.SCALAR_NAMES or not found.isnative:
            raise self.refusal(f"{what} {found}, which no kernel has")
        return found

    def _constant(self, array: Any) -> Any:
        """Return a parameter for an array without axes that is no argument."""
        view = arrays.view(array)
        if view is None or _dtypes.name_of_dtype(view.dtype) not in _dtypes.SCALAR_NAMES:
            raise self.refusal(f"an array of type {type(array).__name__} that is no argument")
        return self.scalar(Number(self, array.item()), view.dtype, conversions.fitting)

    def call(
        self, ufunc: np.ufunc, operands: Sequence[Any], out: DType | None = None, dtype: Any = None
    ) -> Any:
        """Record a function of NumPy's, in the dtypes of NumPy's loop for the operands."""
        name = ufunc.__name__
        if not functions.is_known(name):
            raise self.refusal(f"{name}(), which is no elementwise function that is known here")
        if len(operands) != ufunc.nin:
            raise TypeError(
                f"fused function `{self.name}`: {name}() takes {ufunc.nin} operands, got {len(operands)}"
            )
        values = [self.value(each) for each in operands]
        compared = (
            self._compared_with_an_integer(name, values) if out is None and dtype in (None, bool) else None
        )
        if compared is not None:
            return compared
        last = values[-1]
        if dtype is not None:
            dtype = self.known_dtype(f"{name}() in dtype", dtype)
        else:
            values = self.rules.operands(self, ufunc, values)
        *loop, result = self._resolved(ufunc, [_shown(each) for each in values], out, dtype)
        self._check_reports(name, result)
        text = self.rules.template(name, loop, last)
        if name == "power" and loop[0].kind in "iu" and type(values[1]) is Number:
            values[1] = self.scalar(values[1], loop[1], conversions.exponent)
        elif name == "power" and loop[0].kind == "i":
            self.negative_exponents.append(self.call(np.less, (values[1], 0)))
        typed = [self.typed(each, each_dtype) for each, each_dtype in zip(values, loop, strict=True)]
        codes = [
            f"float({each.code})" if functions.is_half(each.numpy_dtype) else each.code for each in typed
        ]
        return self.add(text.format(*codes), result, typed)

    def _check_reports(self, name: str, result: DType) -> None:
        """Raise TypeError where NumPy is told to report errors of a function, of which kernels know nothing."""
        errors = {"divide"} if name in _DIVIDING else set[str]()
        errors |= {"over", "under", "invalid"} if result.kind in "fc" else set[str]()
        if self.library == "numpy" and errors & (reported_errors() - self._reported_before):
            raise self.refusal(
                f"{name}() where NumPy is told to raise or report errors of floats, which kernels do not: look at the "
                f"results, such as by np.isfinite()"
            )

    def _resolved(
        self, ufunc: np.ufunc, given: Sequence[Any], out: DType | None, dtype: Any
    ) -> tuple[DType, ...]:
        resolve: Any = ufunc.resolve_dtypes  # its signature has no None for no signature
        options = {} if dtype is None else {"signature": (*[None] * ufunc.nin, np.dtype(dtype))}
        try:
            return tuple(resolve((*given, out), **options))
        except TypeError as error:
            raise TypeError(f"fused function `{self.name}`: {error}{place_of_user()}") from None

    def _compared_with_an_integer(self, name: str, values: Sequence[Any]) -> Any:
        """Record how integers compare with a Python integer, which need not fit into their dtype."""
        if name not in _COMPARISONS:
            return None
        numbers = [each for each in values if type(each) is Number]
        others = [each for each in values if type(each) is not Number]
        if len(others) != 1 or not isinstance(numbers[0].value, int) or isinstance(numbers[0].value, bool):
            return None
        (other,), (number,) = others, numbers
        if other.numpy_dtype.kind not in "iu":
            return None
        fitting = self.scalar(number, other.numpy_dtype, conversions.clamped)
        side = self.scalar(number, np.dtype(np.int8), conversions.SideOf(other.numpy_dtype))
        text = functions.template(name, other.numpy_dtype)
        inside = [other.code, fitting.code] if values[0] is other else [fitting.code, other.code]
        outside = ["0", side.code] if values[0] is other else [side.code, "0"]
        expression = f"{side.code} != 0 ? {text.format(*outside)} : {text.format(*inside)}"
        return self.add(expression, np.dtype(np.bool_), (other, fitting, side))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """Record a choice."""
        chosen, first, second = (self.value(each) for each in (condition, x, y))
        dtype = self.rules.promote((first, second))
        if type(chosen) is Number:
            chosen = chosen.applied(np.bool_, (chosen,))
        test = self.call(np.not_equal, (chosen, 0)) if given_of(chosen) != np.dtype(np.bool_) else chosen
        values = [
            self.typed(test, np.dtype(np.bool_)),
            *(self.choice(each, dtype) for each in (first, second)),
        ]
        return self.add("{} ? {} : {}".format(*(each.code for each in values)), dtype, values)

    def choice(self, value: Any, dtype: DType) -> Any:
        """Return a value in the dtype of a choice; NumPy before 2.5 keeps lower bits of integers that do not fit."""
        if type(value) is Number:
            return self.scalar(value, dtype, conversions.chosen)
        return self.typed(value, dtype)

    def typed(self, value: Any, dtype: DType) -> Any:
        """Return a value in a dtype: numbers are converted before the call, which raises what NumPy raises."""
        if type(value) is Number:
            return self.scalar(value, dtype, conversions.fitting)
        if value.numpy_dtype == dtype:
            return value
        code = value.code
        if dtype.kind == "b":
            return self.add(f"{code} != static_cast<{value_ctype(value.numpy_dtype)}>(0)", dtype, (value,))
        if value.numpy_dtype.kind == "c" and dtype.kind != "c":
            code = f"{code}.real()"
        if functions.is_half(value.numpy_dtype):
            code = f"float({code})"
        return self.add(f"static_cast<{value_ctype(dtype)}>({code})", dtype, (value,))

    def unrounded(self, value: Any, dtype: DType) -> Any:
        """Return an operand of arithmetic in a float of two bytes: a number keeps the digits of float there."""
        if type(value) is not Number:
            return self.typed(value, dtype)
        from gridstride.families.fuse.traced import Traced

        number = self.scalar(value, np.dtype(np.float32), conversions.fitting)
        return Traced(self, number.code, dtype, has_axes=False)

    def scalar(self, number: Number, dtype: DType, convert: Callable[[Any, DType], Any]) -> Any:
        """Return a parameter of the kernel for a number."""
        from gridstride.families.fuse.traced import Traced

        scalar = Scalar(number, dtype, convert, self.name, place_of_user())
        try:
            constant = scalar.converted(number.value)
        except (OverflowError, ValueError):
            number.pinned()  # the function may catch it, and go on as with this number alone
            raise
        told = number.place if number.names else exact(number.value, "")
        name = self._known_scalars.setdefault((told, dtype, convert), f"k{len(self.scalars)}")
        if name not in self.scalars:
            self.scalars[name] = scalar._replace(constant=None if number.names else constant)
        return Traced(self, name, dtype, has_axes=False)

    def statements(self, names: Iterable[str]) -> list[str]:
        """Return the statements that make some variables."""
        wanted = set(names)
        return [line.text for name, line in self.lines.items() if name in wanted]

    def numbers(self, arguments: Sequence[Any]) -> Numbers | None:
        """Return the numbers of a call; None where something of them raises, or has another type than in the trace."""
        taken = self.steps.taken(arguments)
        if taken is None:
            return None
        try:
            return Numbers(taken, {name: each.found(taken) for name, each in self.scalars.items()})
        except (OverflowError, ValueError):
            return None


def declarations(parameters: Iterable[tuple[str, DType]]) -> str:
    """Return the declarations of kernel parameters."""
    return ", ".join(f"{_dtypes.name_of_dtype(dtype)} {name}" for name, dtype in parameters)


def _shown(value: Any) -> Any:
    """Return how NumPy's resolution of loops is told of a value: Python's types for its numbers."""
    given = given_of(value)
    if not isinstance(given, Weak):
        return given
    return np.dtype(np.bool_) if given.type is bool else given.type
