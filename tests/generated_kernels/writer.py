"""The text of one kernel while it grows: what is in scope, and expressions of what is in scope."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

SIGNED = ("int", "long long", "short", "signed char")
UNSIGNED = ("unsigned", "unsigned long long", "unsigned short", "unsigned char")
INTEGERS = SIGNED + UNSIGNED
FLOATING = ("float", "double")
SCALARS = (*INTEGERS, *FLOATING, "bool")
BITS = {"int": 32, "unsigned": 32, "long long": 64, "unsigned long long": 64,
        "short": 16, "unsigned short": 16, "signed char": 8, "unsigned char": 8}  # fmt: skip
#: Arrays that kernels read and do not write: name, element type. All hold `CAPACITY` elements.
INPUTS = {
    "in_int": "int",
    "in_unsigned": "unsigned",
    "in_long": "long long",
    "in_short": "short",
    "in_byte": "unsigned char",
    "in_float": "float",
    "in_double": "double",
}
#: Arrays of which each thread writes elements that are its own.
OUTPUTS = {
    "out_int": "int",
    "out_unsigned": "unsigned",
    "out_long": "long long",
    "out_short": "short",
    "out_float": "float",
    "out_double": "double",
}
#: Arrays that all threads change by atomic operations. Each operation has elements of its own, so that the order
#: of threads makes no difference.
COUNTERS = {"count_int": "int", "count_unsigned": "unsigned", "count_long": "unsigned long long"}
ATOMICS = ("atomicAdd", "atomicMax", "atomicMin", "atomicXor", "atomicOr", "atomicAnd")
COUNTER_BINS = 16
#: The element of each that belongs to none of the operations.
SPARE_COUNTER = len(ATOMICS) * COUNTER_BINS
#: Numbers that are the same for all threads: name, type.
UNIFORMS = {"n": "int", "m": "int", "low": "int", "high": "int", "factor": "float", "mask": "unsigned"}
CAPACITY = 1 << 15
#: Elements of the inputs that random indices may reach.
GATHERED = 1 << 12

#: What arithmetic of a type is made in: an overflow of signed numbers is undefined, and narrow ones become int.
_WRAPPING = {
    "int": "unsigned", "long long": "unsigned long long", "short": "unsigned", "unsigned short": "unsigned",
    "signed char": "unsigned", "unsigned char": "unsigned",
}  # fmt: skip
#: Between which bounds floating-point numbers are converted to integers; beyond a type's range that is undefined.
_CONVERTIBLE = {
    "int": ("-1e6", "1e6"), "unsigned": ("0.0", "1e6"), "long long": ("-1e12", "1e12"),
    "unsigned long long": ("0.0", "1e12"), "short": ("-3e4", "3e4"), "unsigned short": ("0.0", "6e4"),
    "signed char": ("-100.0", "100.0"), "unsigned char": ("0.0", "200.0"),
}  # fmt: skip

_LITERALS = {
    "int": ("0", "1", "-1", "3", "7", "-100", "12345", "0x7fffffff", "(-2147483647 - 1)"),
    "unsigned": ("0u", "1u", "5u", "255u", "0x80000000u", "4294967295u"),
    "long long": ("0ll", "1ll", "-3ll", "4294967296ll", "9223372036854775807ll"),
    "unsigned long long": ("0ull", "9ull", "18446744073709551615ull"),
    "short": ("(short)3", "(short)-32768"),
    "unsigned short": ("(unsigned short)65535",),
    "signed char": ("(signed char)-5", "(signed char)127"),
    "unsigned char": ("(unsigned char)200",),
    # No zero: g++ takes `0.0f - x` for `-x` where x was an integer, and gives its zero the other sign.
    "float": ("0.5f", "1.0f", "-1.5f", "0.1f", "3.25f", "1e-3f", "100.0f"),
    "double": ("0.25", "2.0", "-0.7", "1e-5", "33.3"),
    "bool": ("true", "false"),
}


class Variable(NamedTuple):
    """A local variable: its name, type, and whether statements may change it."""

    name: str
    type: str
    is_mutable: bool = True


class Writer:
    """Collect lines of a kernel and make expressions of what is in scope.

    Parameters
    ----------
    rng : random.Random
    used : set of str
        Features that were planted; whoever plants one adds its name.
    """

    def __init__(self, rng: random.Random, used: set[str]) -> None:
        self.rng = rng
        self.used = used
        self.lines: list[str] = []
        self.parameters: dict[str, str] = {}
        self.functions: list[tuple[str, str, tuple[str, ...]]] = []
        self._scopes: list[list[Variable]] = [[]]
        self._names = 0
        self._indent = 1
        #: Whether expressions may call mathematical functions beyond exact ones.
        self.has_math = False

    # ---- lines and scopes ----

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write ``head { ... }``; what is declared inside is forgotten behind it."""
        self.line(f"{head} {{")
        self._indent += 1
        self._scopes.append([])
        yield
        self._scopes.pop()
        self._indent -= 1
        self.line("}")

    def declare(self, type_: str, value: str, *, mutable: bool = True, capital: bool = False) -> Variable:
        variable = Variable(self.name(capital=capital), type_, mutable)
        qualifier = "" if mutable else "const "
        self.line(f"{qualifier}{type_} {variable.name} = {value};")
        self._scopes[-1].append(variable)
        return variable

    def bring(self, name: str, type_: str) -> None:
        """Let expressions use a name that cannot be changed."""
        self._scopes[-1].append(Variable(name, type_, False))

    def name(self, *, capital: bool = False) -> str:
        self._names += 1
        return (
            f"{self.rng.choice('NMKW')}{self._names}"
            if capital
            else f"{self.rng.choice('abcdt')}{self._names}"
        )

    def parameter(self, name: str) -> str:
        """Return a parameter's name, which the kernel takes from now on."""
        tables: Sequence[tuple[dict[str, str], str]] = (
            (INPUTS, "const {} *"), (OUTPUTS, "{} *"), (COUNTERS, "{} *"), (UNIFORMS, "{} "),
        )  # fmt: skip
        for table, form in tables:
            if name in table:
                self.parameters[name] = form.format(table[name]) + name
        return name

    def variables(self, *types: str, mutable: bool = False) -> list[Variable]:
        return [
            variable
            for scope in self._scopes
            for variable in scope
            if (not types or variable.type in types) and (variable.is_mutable or not mutable)
        ]

    # ---- expressions ----

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def literal(self, type_: str) -> str:
        return self.pick(*_LITERALS[type_])

    def load(self, type_: str) -> str:
        """Return an element of an input, converted where no input has the type."""
        names = [name for name, element in INPUTS.items() if element == type_]
        name = self.parameter(self.pick(*(names or INPUTS)))
        element = f"{name}[{self.index()}]"
        return element if names else self.cast(element, INPUTS[name], type_)

    def index(self) -> str:
        """Return an index into an input, in bounds whatever the values are."""
        own = self.pick("i", "i", "i", "i + 1", "i + low", "2 * i", "i + n", "i / 2")
        for name in ("low", "n"):
            if name in own.split():
                self.parameter(name)
        if self.chance(0.25):
            self.used.add("gather")
            index = self.pick("in_int[i]", f"{own} * 37 + 11", *(each.name for each in self.variables("int")))
            if "in_int" in index:
                self.parameter("in_int")
            return f"({index}) & {GATHERED - 1}"
        return own

    def leaf(self, type_: str) -> str:
        own = self.variables(type_)
        draw = self.rng.random()
        if own and draw < 0.55:
            return self.rng.choice(own).name
        if draw < 0.7 and (others := self.variables(*SCALARS)):
            return self.converted(self.rng.choice(others), type_)
        return self.load(type_) if draw < 0.9 else self.literal(type_)

    def converted(self, variable: Variable, type_: str) -> str:
        if variable.type == type_:
            return variable.name
        self.used.add("cast")
        text = self.cast(variable.name, variable.type, type_)
        plain = f"({type_})"
        return text if self.chance(0.7) else text.replace(plain, f"static_cast<{type_}>(", 1) + ")"

    def cast(self, text: str, type_: str, wanted: str) -> str:
        """Return a conversion whose result C++ defines."""
        if type_ not in FLOATING or wanted not in INTEGERS:
            return f"({wanted})({text})"
        suffix = "f" if type_ == "float" else ""
        least, most = (bound + suffix for bound in _CONVERTIBLE[wanted])
        return f"({wanted})(fmin{suffix}(fmax{suffix}({text}, {least}), {most}))"

    def combined(self, type_: str, first: str, symbol: str, second: str) -> str:
        """Return a sum, difference or product, which wraps around if it is one of integers."""
        wide = _WRAPPING.get(type_)
        if wide is None:
            return f"({first} {symbol} {second})"
        return f"({type_})(({wide})({first}) {symbol} ({wide})({second}))"

    def expression(self, type_: str, depth: int = 2) -> str:
        """Return an expression whose value converts to a type."""
        if depth == 0 or self.chance(0.15):
            return self.leaf(type_)
        if type_ == "bool":
            return self.condition(depth - 1)
        return self.rng.choice(self._forms(type_))(type_, depth - 1)

    def condition(self, depth: int = 1) -> str:
        """Return an expression that is true for some threads and false for others, as far as chance has it."""
        draw = self.rng.random()
        if depth > 0 and draw < 0.2:
            return f"({self.condition(depth - 1)} {self.pick('&&', '||')} {self.condition(depth - 1)})"
        if depth > 0 and draw < 0.28:
            return f"!({self.condition(depth - 1)})"
        if draw < 0.4:
            return f"i % {self.pick('2', '3', '5', '7')} {self.pick('==', '!=')} {self.pick('0', '1')}"
        type_ = self.pick("int", "float", "double", "unsigned", "long long")
        comparison = self.pick("<", "<=", ">", ">=", "!=") if type_ in INTEGERS else self.pick("<", ">")
        bound = {"float": "0.5f", "double": "0.25", "unsigned": "0x80000000u"}.get(
            type_, self.pick("0", "1", "100")
        )
        return f"{self.expression(type_, depth)} {comparison} {bound}"

    def _forms(self, type_: str) -> list[Callable[[str, int], str]]:
        common: list[Callable[[str, int], str]] = [
            self._arithmetic,
            self._arithmetic,
            self._ternary,
            self._cast,
        ]
        if type_ in FLOATING:
            return [*common, self._arithmetic, self._division, self._function, self._call]
        return [*common, self._bitwise, self._shift, self._quotient, self._minimum, self._call]

    def _arithmetic(self, type_: str, depth: int) -> str:
        self.used.add("wrap" if type_ in INTEGERS else "floating")
        return self.combined(
            type_, self.expression(type_, depth), self.pick("+", "-", "*"), self.expression(type_, depth)
        )

    def _ternary(self, type_: str, depth: int) -> str:
        self.used.add("ternary")
        first, second = self.expression(type_, depth), self.expression(type_, depth)
        return f"({self.condition(min(depth, 1))} ? {first} : {second})"

    def _cast(self, type_: str, depth: int) -> str:
        self.used.add("cast")
        source = self.pick(*SCALARS)
        return self.cast(self.expression(source, depth), source, type_)

    def _bitwise(self, type_: str, depth: int) -> str:
        self.used.add("bitwise")
        if self.chance(0.2):
            return f"(~{self.expression(type_, depth)})"
        return f"({self.expression(type_, depth)} {self.pick('&', '|', '^')} {self.expression(type_, depth)})"

    def _shift(self, type_: str, depth: int) -> str:
        self.used.add("shift")
        width = 64 if "long" in type_ else 32
        unsigned, signed = ("unsigned long long", "long long") if width == 64 else ("unsigned", "int")
        value, bits = (
            f"({unsigned})({self.expression(type_, depth)})",
            f"({self.expression('int', 0)} & {width - 1})",
        )
        if type_ in SIGNED and self.chance(0.5):
            return f"(({signed}){value} >> {bits})"
        return f"({type_})({value} {self.pick('<<', '>>')} {bits})"

    def _quotient(self, type_: str, depth: int) -> str:
        """Divide by 2 or more: g++ 12 makes ``a + a / -b`` of ``a - a / b``, which traps for the least a and b = 1."""
        self.used.add("division")
        return f"({self.expression(type_, depth)} {self.pick('/', '%')} (({self.expression(type_, 0)} & 15) + 2))"

    def _division(self, type_: str, depth: int) -> str:
        return f"({self.expression(type_, depth)} / {self.expression(type_, depth)})"

    def _minimum(self, type_: str, depth: int) -> str:
        wide = type_ if BITS[type_] >= 32 else "int"
        name = self.pick("min", "max")
        return f"{name}(({wide})({self.expression(type_, depth)}), ({wide})({self.expression(type_, depth)}))"

    def _function(self, type_: str, depth: int) -> str:
        suffix = "f" if type_ == "float" else ""
        inner = f"({type_})({self.expression(type_, depth)})"
        if self.has_math and self.chance(0.5):
            self.used.add("math")
            return f"{self.pick('exp', 'sin', 'cos', 'tanh', 'cbrt', 'atan')}{suffix}({inner})"
        self.used.add("exact function")
        name = self.pick("fabs", "floor", "sqrt", "rint", "fmin", "fma")
        if name == "sqrt":
            return f"sqrt{suffix}(fabs{suffix}({inner}))"
        if name == "fmin":
            return f"{self.pick('fmin', 'fmax')}{suffix}({inner}, {self.literal(type_)})"
        if name == "fma":
            return f"fma{suffix}({inner}, {self.leaf(type_)}, ({type_}){self.leaf(type_)})"
        return f"{name}{suffix}({inner})"

    def _call(self, type_: str, depth: int) -> str:
        if not self.functions:
            return self._arithmetic(type_, depth)
        self.used.add("device function")
        name, result, parameters = self.rng.choice(self.functions)
        arguments = ", ".join(self.expression(each, min(depth, 1)) for each in parameters)
        call = f"{name}({arguments})"
        return call if result == type_ else self.cast(call, result, type_)
