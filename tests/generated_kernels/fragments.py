"""Pieces of kernels, one for each feature; each changes variables whose values are stored in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generated_kernels.writer import (
    ATOMICS,
    COUNTER_BINS,
    COUNTERS,
    FLOATING,
    INPUTS,
    INTEGERS,
    OUTPUTS,
    SCALARS,
    Variable,
    Writer,
)

if TYPE_CHECKING:
    from generated_kernels.indexing import Index


class Place:
    """What surrounds a kernel's body: its name, what stands before it and behind it, and its index."""

    index: Index

    def __init__(self, name: str) -> None:
        self.name = name
        self.preamble: list[str] = []
        self.ending: list[str] = []

    def define(self, head: str, body: str) -> None:
        self.preamble.append(f"#define {head} {body}")
        self.ending.append(f"#undef {head.partition('(')[0]}")


def device_functions(writer: Writer, place: Place) -> None:
    """One or two functions of numbers, with branches, loops and several returns."""
    for k in range(writer.rng.randint(1, 2)):
        name = f"{place.name}_f{k}"
        result = writer.pick("int", "float", "double", "unsigned")
        types = tuple(writer.rng.choices(("int", "float", "unsigned", "double"), k=writer.rng.randint(1, 3)))
        names = "pqr"[: len(types)]
        parameters = ", ".join(f"{type_} {name_}" for type_, name_ in zip(types, names, strict=True))
        first, last = names[0], names[-1]
        one, two = (
            writer.cast(name_, type_, result) for name_, type_ in ((first, types[0]), (last, types[-1]))
        )
        step = writer.combined(result, one, "*", f"({result})k")
        bodies = (
            f"return {writer.combined(result, one, '+', two)};",
            f"if ({first} > 1) return {two}; return {writer.combined(result, one, '*', one)};",
            f"{result} sum = 0; for (int k = 0; k < 4; ++k) {{ if (k == 2) continue; "
            f"sum = {writer.combined(result, 'sum', '+', step)}; }} return sum;",
            f"for (int k = 0; k < 5; ++k) {{ if ({first} < k) return ({result})k; }} return {two};",
        )
        qualifier = writer.pick("__device__", "__device__ inline", "static __device__ __forceinline__")
        place.preamble.append(f"{qualifier} {result} {name}({parameters}) {{ {writer.pick(*bodies)} }}")
        writer.functions.append((name, result, types))


def counted_loop(writer: Writer, place: Place) -> None:
    with writer.block(_for(writer, f"{writer.expression('int', 1)} & 7")):
        _update(writer)


def uniform_loop(writer: Writer, place: Place) -> None:
    with writer.block(
        _for(writer, writer.pick("5", "12", writer.parameter("m"), f"{writer.parameter('m')} * 2"))
    ):
        _update(writer)
        if writer.chance(0.4):
            _update(writer)


def loop_with_break(writer: Writer, place: Place) -> None:
    with writer.block(_for(writer, writer.pick("6", "9", writer.parameter("m")))):
        if writer.chance(0.5):
            _update(writer)
        writer.line(f"if ({_loop_condition(writer)}) break;")
        _update(writer)


def loop_with_continue(writer: Writer, place: Place) -> None:
    with writer.block(_for(writer, writer.pick("6", "9", writer.parameter("m")))):
        writer.line(f"if ({_loop_condition(writer)}) continue;")
        _update(writer)


def loop_with_return(writer: Writer, place: Place) -> None:
    """A loop that some threads leave for good, with or without a store before."""
    with writer.block(_for(writer, writer.pick("4", writer.parameter("m")))):
        _update(writer)
        condition = f"{_loop_condition(writer)} && i % {writer.pick('3', '4', '7')} == 1"
        if writer.chance(0.5):
            with writer.block(f"if ({condition})"):
                _store(writer, place)
                writer.line("return;")
        else:
            writer.line(f"if ({condition}) return;")


def while_loop(writer: Writer, place: Place) -> None:
    counter = writer.name()
    writer.line(f"int {counter} = {writer.expression('int', 1)} & 7;")
    with writer.block(f"while ({counter}-- > 0)"):
        writer.bring(counter, "int")
        _update(writer)
        if writer.chance(0.3):
            writer.line(f"if ({writer.condition()}) {writer.pick('break', 'continue')};")


def do_while_loop(writer: Writer, place: Place) -> None:
    counter = writer.name()
    writer.line(f"unsigned {counter} = {writer.expression('unsigned', 1)} % 5;")
    with writer.block("do"):
        _update(writer)
    writer.lines[-1] += f" while ({counter}-- > 0);"


def nested_loops(writer: Writer, place: Place) -> None:
    with (
        writer.block(_for(writer, writer.pick("3", writer.parameter("m")))),
        writer.block(_for(writer, writer.pick("4", f"{writer.expression('int', 0)} & 3"))),
    ):
        _update(writer)
        if writer.chance(0.5):
            writer.line(f"if ({_loop_condition(writer)}) {writer.pick('break', 'continue')};")
            _update(writer)


def branch(writer: Writer, place: Place) -> None:
    with writer.block(f"if ({writer.condition(2)})"):
        _update(writer)
        _update(writer)
    if writer.chance(0.6):
        with writer.block("else" if writer.chance(0.6) else f"else if ({writer.condition()})"):
            _update(writer)


def switch(writer: Writer, place: Place) -> None:
    with writer.block(f"switch ({writer.expression('int', 1)} & 3)"):
        writer.line("case 0:")
        _update(writer)
        writer.line("break;")
        writer.line("case 1:")
        _update(writer)
        if writer.chance(0.5):
            writer.line("break;")
        writer.line("default:")
        _update(writer)


def early_return(writer: Writer, place: Place) -> None:
    condition = f"i % {writer.pick('3', '5')} == 0 && {writer.condition()}"
    if writer.chance(0.4):
        with writer.block(f"if ({condition})"):
            _store(writer, place)
            writer.line("return;")
    else:
        writer.line(f"if ({condition}) {place.index.leave};")


def capital_names(writer: Writer, place: Place) -> None:
    """Variables that look like constants, in the places where constants would stand."""
    bound = writer.declare(
        "int", f"{writer.expression('int', 1)} & 7", mutable=writer.chance(0.5), capital=True
    )
    if writer.chance(0.5):
        with writer.block(_for(writer, bound.name)):
            _update(writer)
    else:
        with writer.block(f"if (i % 8 < {bound.name})"):
            _update(writer)
    type_ = writer.pick("float", "unsigned")
    writer.declare(type_, writer.expression(type_, 1), capital=True)


def index_variable(writer: Writer, place: Place) -> None:
    """An index that is a variable of its own, changed in one of many ways before it is used, or not."""
    name = writer.name(capital=writer.chance(0.2))
    writer.line(
        f"{writer.pick('int', 'int', 'auto', 'long long')} {name} = i + {writer.pick('1', '2', '7')};"
    )
    change = f"{place.name}_move{len(place.preamble)}"
    statements = {
        "": "",
        "assigned": f"if ({writer.condition()}) {name} += 2;",
        "reference": f"auto& {name}r = {name}; {name}r += 3;",
        "pointer": f"auto* {name}p = &{name}; *{name}p += 1;",
        "counted": f"for (int k = 0; k < 3; ++k) {name}++;",
        "passed": f"{change}({name});",
    }
    chosen = writer.rng.choice(list(statements))
    if chosen == "passed":
        place.preamble.append(
            f"template <typename T> __device__ void {change}(T& p) {{ if (p % 2) p += 1; }}"
        )
    if statements[chosen]:
        writer.line(statements[chosen])
    array = writer.pick("in_int", "in_float", "in_short")
    writer.declare(INPUTS[array], f"{writer.parameter(array)}[{name}]")
    if writer.chance(0.4):
        writer.declare("float", f"{writer.parameter('in_float')}[{name} * 2 - i]")


def reference(writer: Writer, place: Place) -> None:
    target = _target(writer)
    name = writer.name()
    writer.line(f"{target.type}& {name} = {target.name};")
    writer.line(f"{name} = {writer.expression(target.type)};")
    _update(writer)
    _change(writer, target._replace(name=name), "+=", 1)


def reference_parameter(writer: Writer, place: Place) -> None:
    """A device function that changes what it is given by reference or pointer."""
    first, second = _target(writer), _target(writer)
    name = f"{place.name}_change{len(place.preamble)}"
    bounded = "" if first.type in FLOATING else "p &= 1023; "
    if first.name != second.name and writer.chance(0.5):
        place.preamble.append(
            f"__device__ void {name}({first.type}& p, {second.type}* q) "
            f"{{ {bounded}p += ({first.type})2; if (p > 3) *q = 5; }}"
        )
        writer.line(f"{name}({first.name}, &{second.name});")
    else:
        place.preamble.append(
            f"__device__ bool {name}({first.type}& p, int k) "
            f"{{ if (k & 1) return false; {bounded}p = p * 3; return true; }}"
        )
        with writer.block(f"if ({name}({first.name}, {writer.expression('int', 1)}))"):
            _change(writer, first, "+=", 0)


def pointer_to_local(writer: Writer, place: Place) -> None:
    target = _target(writer)
    name = writer.name()
    writer.line(f"{target.type}* {name} = &{target.name};")
    writer.line(f"*{name} = {writer.expression(target.type)};")
    if writer.chance(0.5):
        bounded = "" if target.type in FLOATING else f"*{name} &= 1023; "
        writer.line(f"if ({writer.condition()}) {{ {bounded}*{name} += 2; }}")


def local_array(writer: Writer, place: Place) -> None:
    type_, name, k = writer.pick("int", "float", "unsigned"), writer.name(), writer.name()
    writer.line(f"{type_} {name}[4] = {{{_narrowed(writer, type_)}, 2, 3}};")
    with writer.block(f"for (int {k} = 0; {k} < {writer.pick('4', '6')}; ++{k})"):
        writer.bring(k, "int")
        symbol = "^=" if type_ == "int" else "+="
        writer.line(f"{name}[({k} + i) & 3] {symbol} {writer.expression(type_, 1)};")
    element = f"{name}[{writer.expression('int', 0)} & 3]"
    writer.declare(type_, writer.combined(type_, element, "+", f"{name}[1]"))


def vector_type(writer: Writer, place: Place) -> None:
    element, count = writer.pick("float", "int", "double", "uchar"), writer.pick("2", "3", "4")
    scalar = {"uchar": "unsigned char"}.get(element, element)
    name = writer.name()
    values = ", ".join(f"({scalar})({writer.expression(scalar, 1)})" for _ in range(int(count)))
    writer.line(f"{element}{count} {name} = make_{element}{count}({values});")
    writer.line(f"{name}.y = {writer.expression(scalar, 1)};")
    if writer.chance(0.5):
        sum_ = writer.combined(scalar, f"{name}.x", "-", f"{name}.y")
        writer.line(f"if ({writer.condition()}) {name}.x = {sum_};")
    product = writer.combined(scalar, f"{name}.y", "*", f"{name}.{'xyzw'[int(count) - 1]}")
    writer.declare(scalar, writer.combined(scalar, f"{name}.x", "+", product))


def atomic(writer: Writer, place: Place) -> None:
    name = writer.pick(*COUNTERS)
    type_ = COUNTERS[name]
    function = writer.pick("atomicAdd", *ATOMICS)
    first = ATOMICS.index(function) * COUNTER_BINS
    where = f"&{writer.parameter(name)}[{first} + (({writer.expression('int', 1)}) & {COUNTER_BINS - 1})]"
    statement = f"{function}({where}, ({type_})({writer.expression(type_, 1)}));"
    writer.line(f"if ({writer.condition()}) {statement}" if writer.chance(0.4) else statement)


def narrow_types(writer: Writer, place: Place) -> None:
    for type_ in writer.rng.sample(("short", "unsigned char", "signed char", "unsigned short", "bool"), 2):
        variable = writer.declare(type_, writer.expression(type_))
        if type_ != "bool":
            _change(writer, variable, writer.pick("+=", "*=", "-=", "^="), 1)


def compound_assignments(writer: Writer, place: Place) -> None:
    for _ in range(2):
        target = _target(writer)
        operators = ("+=", "-=", "*=") if target.type in FLOATING else ("+=", "-=", "*=", "&=", "|=", "^=")
        _change(writer, target, writer.pick(*operators), 2)


def increments(writer: Writer, place: Place) -> None:
    target = _target(writer, *INTEGERS)
    writer.line(f"{target.name} &= 0xffff;")
    form = writer.pick("{0}++;", "--{0};", "++{0};", "if ({1}) {0}--;")
    writer.line(form.format(target.name, writer.condition()))
    other = writer.declare("int", f"(int)({target.name}++ & 0xffff) + 1")
    writer.line(f"{other.name} -= --{target.name} & 3;")


def thread_numbers(writer: Writer, place: Place) -> None:
    """Uses of the built-in variables beyond the global index."""
    value = writer.pick(
        "threadIdx.x & 7", "blockIdx.x + threadIdx.x", "threadIdx.x == 0 ? blockIdx.x : gridDim.x", "threadIdx.x % 32",
        "blockDim.x - threadIdx.x", "threadIdx.x / warpSize", "blockIdx.x * gridDim.x",
    )  # fmt: skip
    writer.declare(writer.pick("int", "unsigned"), value)
    if writer.chance(0.4):
        with writer.block(
            f"if ({writer.pick('threadIdx.x < 5', 'blockIdx.x == 1', 'threadIdx.x % 2 == 0')})"
        ):
            _update(writer)


def structure(writer: Writer, place: Place) -> None:
    name, local = f"{place.name}_pair{len(place.preamble)}", writer.name()
    place.preamble.append(
        f"struct {name} {{ int whole; float part; __device__ int both(int k) const "
        "{ return (int)((unsigned)whole * (unsigned)k + 1u); } };"
    )
    writer.line(f"{name} {local} = {{{_narrowed(writer, 'int')}, {_narrowed(writer, 'float')}}};")
    writer.line(f"{local}.whole {writer.pick('^=', '|=')} {writer.expression('int', 1)};")
    writer.declare("int", f"{local}.both({writer.expression('int', 0)})")
    writer.declare("float", f"{local}.part * 2.0f")


def lambda_(writer: Writer, place: Place) -> None:
    target, name = _target(writer), writer.name()
    capture = writer.pick("=", "&")
    writer.line(f"auto {name} = [{capture}](int k) {{ return (int)((unsigned)k + ({target.name} > 1)); }};")
    _update(writer)
    writer.declare("int", f"{name}({writer.expression('int', 1)})")


def store_between(writer: Writer, place: Place) -> None:
    _store(writer, place)
    _update(writer)


def macro(writer: Writer, place: Place) -> None:
    """A macro that is a number, more seldom one with an argument, and one that hides a statement."""
    name = f"{place.name}_{len(place.preamble)}".upper()
    if writer.chance(0.7):
        place.define(f"COUNT_{name}", writer.pick("4", "(2 + 3)"))
        with writer.block(_for(writer, f"COUNT_{name}")):
            _update(writer)
        return
    place.define(f"MIX_{name}(a, b)", "((a) * 3 + (b))")
    arguments = f"(unsigned)({writer.expression('int', 1)}), {writer.expression('unsigned', 0)}"
    writer.declare("int", f"(int)MIX_{name}({arguments})")
    if writer.chance(0.5):
        place.define(f"SKIP_{name}(condition)", f"if (condition) {place.index.leave}")
        writer.line(f"SKIP_{name}({writer.condition()} && i % 5 == 2);")


def own_element(writer: Writer, place: Place, name: str) -> str:
    """Return an element of an output that no other thread writes."""
    return f"{writer.parameter(name)}[i]"


def _for(writer: Writer, bound: str) -> str:
    """Return the head of a loop whose counter nobody changes; the block that follows knows it as k."""
    step = writer.pick("++k", "k++", "k += 1", "k += 2")
    if writer.chance(0.15):
        return f"for (int k = {bound}; k > 0; --k)"
    return f"for (int k = {writer.pick('0', '0', '1')}; k < ({bound}); {step})"


def _loop_condition(writer: Writer) -> str:
    return writer.pick(
        writer.condition(),
        f"k == {writer.expression('int', 0)} % 5",
        "k > i % 4",
        f"k * 3 > {_count(writer)}",
    )


def _count(writer: Writer) -> str:
    return f"({writer.expression('int', 1)} & 15)"


def _update(writer: Writer) -> None:
    target = _target(writer)
    if writer.chance(0.5):
        writer.line(f"{target.name} = {writer.expression(target.type)};")
    else:
        _change(writer, target, writer.pick("+=", "-="), 1)


def _change(writer: Writer, target: Variable, symbol: str, depth: int) -> None:
    """Write a compound assignment, of small numbers where others might overflow."""
    value = writer.expression(target.type, depth)
    if symbol in ("+=", "-=", "*=") and target.type not in (*FLOATING, "unsigned", "unsigned long long"):
        value = f"(({value}) & 255)"
        if target.type in ("int", "long long"):
            writer.line(f"{target.name} &= 0xffff;")
    writer.line(f"{target.name} {symbol} {value};")


def _store(writer: Writer, place: Place) -> None:
    name = writer.pick(*OUTPUTS)
    writer.line(f"{own_element(writer, place, name)} = {writer.expression(OUTPUTS[name], 1)};")


def _target(writer: Writer, *types: str) -> Variable:
    """Return a variable to change, a new one where there is none."""
    wanted = types or tuple(each for each in SCALARS if each != "bool")
    known = writer.variables(*wanted, mutable=True)
    if known:
        return writer.rng.choice(known)
    type_ = writer.pick(*wanted)
    return writer.declare(type_, writer.expression(type_, 1))


def _narrowed(writer: Writer, type_: str) -> str:
    return f"({type_})({writer.expression(type_, 1)})"
