"""Statements with which threads work together, each with what it means for a block in lockstep."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from generated_kernels import lockstep
from generated_kernels.composer import Composer, Lanes, braces
from generated_kernels.lockstep import DTYPES, WARP, Array, Block, Expression, Statement
from generated_kernels.values import REAL, TYPES, WHOLE, Local, SharedArray
from generated_kernels.writer import ATOMICS, COUNTER_BINS, COUNTERS, OUTPUTS

Feature = Callable[[Composer], None]


# ---- what each thread does by itself ----


def update(to: Composer) -> None:
    known = to.values.locals(*TYPES, mutable=True)
    target = to.rng.choice(known)
    if target.type == "int" or to.values.chance(0.5):
        value, symbol = to.values.expression(target.type), ""
        changed = value
    else:
        value, symbol = to.values.expression(target.type, 1), to.rng.choice("+-")
        changed = to.values.combined(to.values.of(target), symbol, value)
        if target.type == "long long":  # might overflow
            value, symbol = changed, ""
    to.emit(
        f"{target.name} {symbol}= {value.text};",
        lambda block: block.assign(target.name, target.type, changed.value(block)),
    )


def declare(to: Composer) -> None:
    to.declare(to.values.expression(to.rng.choice(TYPES)), is_mutable=to.values.chance(0.8))


def keep(to: Composer, value: Expression) -> None:
    """Declare a variable, and mix it into one that lasts longer."""
    known = to.values.locals(*TYPES, mutable=True)
    local = to.declare(value)
    if not known or to.values.chance(0.2):
        return
    target = to.rng.choice(known)
    added = to.values.converted(to.values.of(local), target.type)
    mixed = to.values.combined(to.values.of(target), "+", added)
    to.emit(
        f"{target.name} = {mixed.text};",
        lambda block: block.assign(target.name, target.type, mixed.value(block)),
    )


def store(to: Composer) -> None:
    name = to.rng.choice([name for name, type_ in OUTPUTS.items() if type_ in TYPES])
    _store_as(to, name, to.values.expression(OUTPUTS[name], 1))


def _store_as(to: Composer, name: str, value: Expression) -> None:
    def run(block: Block) -> None:
        place = block.index * block.threads + block.place[block.active]
        block.memory[name][place] = value.value(block)[block.active]

    to.emit(f"{name}[g] = {value.text};", run)


def store_all(to: Composer) -> None:
    """Store what a kernel's variables hold in the end."""
    for name, type_ in OUTPUTS.items():
        known = [to.values.of(each) for each in to.values.locals(*(REAL if type_ in REAL else WHOLE))]
        if type_ not in TYPES or not known:
            continue
        value = to.values.converted(known[0], type_)
        for each in known[1:]:
            value = to.values.combined(value, "+", to.values.converted(each, type_))
        _store_as(to, name, value)


def branch(to: Composer) -> None:
    to.used.add("divergent branch")
    _conditional(to, to.values.condition(2), thread_statements)


def loop(to: Composer) -> None:
    """A loop that each thread makes as often as it likes."""
    to.used.add("divergent loop")
    count = to.values.below("5", lambda block: 5)
    with to.nested() as body:
        counter = to.values.bring(Local(to.values.name(), "int", is_mutable=False))
        thread_statements(to, 1)
        if to.values.chance(0.4):
            _leave(to, to.values.condition())
            thread_statements(to, 1)
    _counted(to, counter, count, body)


# ---- shared and global memory ----


def shared_store(to: Composer) -> None:
    arrays = [each for each in to.values.arrays if each.phase == "own"]
    if not arrays:
        return update(to)
    array = to.rng.choice(arrays)
    place, value = array.own(), to.values.expression(array.type, 1)
    to.used.add("shared memory")
    to.emit(
        f"{array.element(place.text)} = {value.text};",
        lambda block: block.tiles[array.name].write(block, place.value(block), value.value(block)),
    )
    return None


def shared_read(to: Composer) -> None:
    arrays = [each for each in to.values.arrays if each.phase == "read"]
    if not arrays:
        return update(to)
    keep(to, to.values.read(to.rng.choice(arrays)))
    return None


def shared_atomic(to: Composer) -> None:
    arrays = [each for each in to.values.arrays if each.phase in ATOMICS]
    if not arrays:
        return update(to)
    array = to.rng.choice(arrays)
    most = to.rng.choice((1, min(4, array.size), array.size))
    place, value = to.values.below(str(most), lambda block: most), to.values.expression(array.type, 1)
    operation = lockstep.ATOMICS[array.phase]
    to.used.add("shared atomic")
    to.emit(
        f"{array.phase}(&{array.element(place.text)}, {value.text});",
        lambda block: block.tiles[array.name].change(
            block, operation, place.value(block), value.value(block)
        ),
    )
    return None


def global_atomic(to: Composer) -> None:
    name, function = to.rng.choice(list(COUNTERS)), to.rng.choice(ATOMICS)
    first = ATOMICS.index(function) * COUNTER_BINS
    place = to.values.below(str(COUNTER_BINS), lambda block: COUNTER_BINS)
    value = to.values.expression(COUNTERS[name], 1)

    def run(block: Block) -> None:
        places = first + place.value(block)[block.active]
        lockstep.ATOMICS[function].at(block.memory[name], places, value.value(block)[block.active])

    to.used.add("global atomic")
    to.emit(f"{function}(&{name}[{first} + {place.text}], {value.text});", run)


# ---- warps ----


def shuffle(to: Composer) -> None:
    to.used.add("shuffle")
    value = to.values.expression(to.rng.choice(TYPES), 1)
    text, source = _shuffled_from(to, value)
    _declare_shuffled(to, value, text, source)


def _shuffled_from(to: Composer, value: Expression) -> tuple[str, Callable[[Block], Array]]:
    """Return the call of a shuffle, and from which lane of the warp each thread takes a value."""
    mask, count = to.lanes
    width = (
        to.rng.choice([each for each in (2, 4, 8, 16, 32, 32, 32) if each <= count]) if to.is_full else WARP
    )
    if width < WARP:
        to.used.add("shuffle of part of a warp")
    ending = f", {width})" if width < WARP or to.values.chance(0.1) else ")"
    step, kind = (
        to.rng.randint(1, width - 1),
        to.rng.choice(("", "", "_up", "_down", "_xor") if to.is_full else ("", "_up")),
    )
    if kind == "":
        lane = to.values.below(*(("32", lambda block: WARP) if to.is_full else ("live", _live)))
        call = f"__shfl_sync({mask}, {value.text}, {lane.text}{ending}"
        return call, lambda block: block.lane // width * width + lane.value(block) % width
    moved: dict[str, Callable[[Array], Array]] = {
        "_up": lambda lane: np.where(lane % width >= step, lane - step, lane),
        "_down": lambda lane: np.where(lane % width + step < width, lane + step, lane),
        "_xor": lambda lane: lane ^ step,
    }
    call = f"__shfl{kind}_sync({mask}, {value.text}, {step}{ending}"
    return call, lambda block: moved[kind](block.lane)


def _declare_shuffled(to: Composer, value: Expression, text: str, source: Callable[[Block], Array]) -> None:
    keep(
        to,
        Expression(
            value.type,
            text,
            lambda block: block.shuffled(value.value(block), block.warp * WARP + source(block)),
        ),
    )


def vote(to: Composer) -> None:
    to.used.add("vote")
    lanes, predicate = to.lanes, to.values.condition(2)
    votes: dict[str, tuple[str, str, Callable[[Block, Array], Array]]] = {
        "__any_sync": (
            "int",
            " != 0",
            lambda block, held: block.reduced(np.logical_or, held, lanes.group(block), False),
        ),
        "__all_sync": (
            "int",
            " != 0",
            lambda block, held: block.reduced(np.logical_and, held, lanes.group(block), True),
        ),
        "__ballot_sync": ("unsigned", "", lambda block, held: block.ballot(held, lanes.group(block))),
    }
    name = to.rng.choice(list(votes))
    type_, ending, held = votes[name]
    keep(
        to,
        Expression(
            type_,
            f"({name}({lanes.mask}, {predicate.text}){ending})",
            lambda block: held(block, predicate.value(block)),
        ),
    )


def match(to: Composer) -> None:
    to.used.add("match")
    lanes, type_ = to.lanes, to.rng.choice(("unsigned", "int", "unsigned long long"))
    value, rest = to.values.expression(type_, 1), to.rng.choice((1, 3, 7))
    keep(
        to,
        Expression(
            "unsigned",
            f"__match_any_sync({lanes.mask}, {value.text} & {rest})",
            lambda block: block.matching(value.value(block) & DTYPES[type_].type(rest), lanes.group(block)),
        ),
    )


def warp_reduction(to: Composer) -> None:
    to.used.add("warp reduction")
    lanes, type_ = to.lanes, to.rng.choice(("unsigned", "unsigned", "int"))
    limits = np.iinfo(DTYPES[type_])
    operations = {"min": (np.minimum, limits.max), "max": (np.maximum, limits.min)}
    if type_ == "unsigned":
        operations |= {
            "add": (np.add, 0), "and": (np.bitwise_and, limits.max),
            "or": (np.bitwise_or, 0), "xor": (np.bitwise_xor, 0),
        }  # fmt: skip
    kind = to.rng.choice(list(operations))
    operation, start = operations[kind]
    value = to.values.expression(type_, 1)
    keep(
        to,
        Expression(
            type_,
            f"__reduce_{kind}_sync({lanes.mask}, {value.text})",
            lambda block: block.reduced(operation, value.value(block), lanes.group(block), start),
        ),
    )


def warp_exchange(to: Composer) -> None:
    """An exchange through shared memory that only the threads of a warp wait for."""
    to.used.add("warp barrier")
    type_, step = to.rng.choice(TYPES), to.rng.randint(1, WARP - 1)
    array, value = to.share(type_, is_dedicated=True), to.values.expression(type_, 1)
    to.emit(f"{array.name}[t] = {value.text};\n__syncwarp(mask);", _nothing)
    text = f"{array.name}[(t & ~31) + (lane + {step}) % live]"
    _declare_shuffled(to, value, text, lambda block: (block.lane + step) % _live(block))
    to.emit("__syncwarp(mask);", _nothing)


def warp_function(to: Composer) -> None:
    """A device function whose threads shuffle."""
    to.used.add("warp function")
    type_, name = to.rng.choice(("unsigned", "unsigned long long", *REAL)), f"{to.name}_{to.values.name()}"
    of, head = ("T", "template <typename T> ") if to.values.chance(0.6) else (type_, "")
    is_scan = not to.is_full or to.values.chance(0.4)
    steps = "int d = 1; d < 32; d <<= 1" if is_scan else "int d = 16; d > 0; d >>= 1"
    step = (
        f"const {of} other = __shfl_up_sync(mask, value, d); if (lane >= d) value += other;"
        if is_scan
        else "value += __shfl_xor_sync(mask, value, d);"
    )
    to.preamble.append(
        f"{head}__device__ {of} {name}({of} value, unsigned mask, int lane) {{\n"
        f"    for ({steps}) {{ {step} }}\n    return value;\n}}"
    )
    value = to.values.expression(type_, 1)

    def run(block: Block) -> Array:
        sums, first = value.value(block), block.warp * WARP
        for d in (1, 2, 4, 8, 16) if is_scan else (16, 8, 4, 2, 1):
            source = np.maximum(block.lane - d, 0) if is_scan else block.lane ^ d
            other = block.shuffled(sums, first + source)
            sums = np.where(block.lane >= d, sums + other, sums) if is_scan else sums + other
        return sums

    keep(to, Expression(type_, f"{name}({value.text}, mask, lane)", run))


def halves(to: Composer) -> None:
    """Two halves of each warp go two ways, and the lanes of each work together."""
    to.used.add("halves of a warp")
    bodies = []
    for mask in ("0x0000ffffu", "0xffff0000u"):
        before, to.lanes = to.lanes, Lanes(mask, WARP // 2)
        with to.nested() as body:
            _some(to, (*_THREAD, *_LANES, *_LANES), 2)
        bodies.append(body)
        to.lanes = before
    chosen = Expression("bool", "(lane < 16)", lambda block: block.lane < WARP // 2)
    _emit_conditional(to, chosen, *bodies)


def warp_condition(to: Composer) -> None:
    """Whole warps go different ways."""
    to.used.add("warp condition")
    rest = to.rng.choice((0, 1))
    chosen = Expression("bool", f"((warp & 1) == {rest})", lambda block: (block.warp & 1) == rest)
    if to.values.chance(0.6):
        return _conditional(to, chosen, warp_statements)
    count = Expression("int", "((warp + b) & 3)", lambda block: (block.warp + block.index) & 3)
    with to.nested() as body:
        counter = to.values.bring(Local(to.values.name(), "int", is_mutable=False))
        warp_statements(to, 2)
    return _counted(to, counter, count, body)


# ---- blocks ----


def barrier(to: Composer) -> None:
    to.used.add("barrier")
    to.barrier()
    block_exchange = [each for each in to.values.arrays if each.phase == "read"]
    if block_exchange and to.values.chance(0.5):
        keep(to, to.values.read(to.rng.choice(block_exchange)))


def uniform_branch(to: Composer) -> None:
    to.used.add("barrier in a condition")
    phases = to.phases()
    bodies = []
    for _ in range(to.rng.choice((1, 2))):
        with to.nested() as body:
            block_statements(to, 2)
            to.barrier(phases)
        bodies.append(body)
    _emit_conditional(to, to.values.uniform_condition(), *bodies)


def uniform_loop(to: Composer) -> None:
    to.used.add("barrier in a loop")
    phases, count = to.phases(), to.values.uniform()
    with to.nested() as body:
        counter = to.values.bring(Local(to.values.name(), "int", is_uniform=True, is_mutable=False))
        block_statements(to, 2)
        to.barrier(phases)
        if to.values.chance(0.6):
            to.used.add("uniform break")
            _leave(to, to.values.uniform_condition())
            block_statements(to, 1)
            to.barrier(phases)
    _counted(to, counter, _limited(count), body)


def do_while(to: Composer) -> None:
    """A loop that goes on as long as any thread asks for it, three times at most."""
    to.used.add("do while over a barrier")
    phases, counter = to.phases(), to.values.name()
    to.emit(f"int {counter} = 0;", lambda block: block.assign(counter, "int", np.zeros(1)))
    with to.nested() as body:
        block_statements(to, 2)
        to.barrier(phases)
    again = to.counted("_or")

    def test(block: Block) -> Array:
        goes_on = again.value(block) != 0
        block.assign(counter, "int", block.variables[counter] + goes_on)
        return goes_on & (block.variables[counter] < 3)

    to.emit(
        braces("do", body) + f" while ({again.text} && ++{counter} < 3);",
        lambda block: block.loop(test, lambda block: block.run(body), _nothing, is_entered=True),
    )


def tree_reduction(to: Composer) -> None:
    array = _array_after_barrier(to, "own", ("unsigned", "unsigned long long", *REAL))
    to.used.add("tree reduction")
    value, half = to.values.expression(array.type, 1), 1 << max(0, (to.threads - 1).bit_length() - 1)
    element, place = array.element, array.own()
    to.emit(
        f"{element(place.text)} = {value.text};\n__syncthreads();\n"
        f"for (int k = {half}; k > 0; k >>= 1) {{\n"
        f"    if (t < k && t + k < threads) {element('t')} += {element('t + k')};\n    __syncthreads();\n}}",
        lambda block: _reduce(block, array, place.value(block), value.value(block), half),
    )
    array.phase = "read"


def _reduce(block: Block, array: SharedArray, place: Array, value: Array, half: int) -> None:
    tile = block.tiles[array.name]
    tile.write(block, place, value)
    block.barrier()
    while half:
        with block.only((block.place < half) & (block.place + half < block.threads)):
            other = tile.read(block, np.minimum(block.place + half, block.threads - 1))
            tile.write(block, block.place, tile.read(block, block.place) + other)
        block.barrier()
        half >>= 1


def scan(to: Composer) -> None:
    array = _array_after_barrier(to, "read", ("unsigned", "unsigned long long", *REAL))
    to.used.add("scan")
    own, left = array.element("t"), array.element("t - d")
    to.emit(
        "for (int d = 1; d < threads; d <<= 1) {\n"
        f"    const {array.type} other = t >= d ? {left} : ({array.type})0;\n    __syncthreads();\n"
        f"    {own} += other;\n    __syncthreads();\n}}",
        lambda block: _scan(block, array),
    )


def _scan(block: Block, array: SharedArray) -> None:
    tile, d = block.tiles[array.name], 1
    while d < block.threads:
        other = np.where(
            block.place >= d, tile.read(block, np.maximum(block.place - d, 0)), tile.values.dtype.type(0)
        )
        block.barrier()
        tile.write(block, block.place, tile.read(block, block.place) + other)
        block.barrier()
        d <<= 1


def barrier_function(to: Composer) -> None:
    """A device function with barriers, once or in a loop, for one type or for any."""
    to.used.add("device function with a barrier")
    type_, name = to.rng.choice(("unsigned", "unsigned long long", *REAL)), f"{to.name}_{to.values.name()}"
    array, steps, shift = to.share(type_, is_dedicated=True), to.rng.randint(1, 3), to.rng.randint(1, 40)
    of, head = type_, ""
    if to.values.chance(0.6):
        to.used.add("template with a barrier")
        of, head = (
            "T",
            "template <typename T, int STEPS> " if to.values.chance(0.5) else "template <typename T> ",
        )
    bound, given = ("STEPS", f"<{type_}, {steps}>") if "STEPS" in head else (str(steps), "")
    to.preamble.append(
        f"{head}__device__ {of} {name}({of}* tile, {of} value, int t, int threads) {{\n"
        f"    for (int k = 0; k < {bound}; ++k) {{\n        tile[t] = value;\n        __syncthreads();\n"
        f"        value += tile[(t + {shift} + k) % threads];\n        __syncthreads();\n    }}\n    return value;\n}}"
    )
    value = to.values.expression(type_, 1)

    def run(block: Block) -> Array:
        tile, sums = block.tiles[array.name], value.value(block)
        for k in range(steps):
            tile.write(block, block.place, sums)
            block.barrier()
            sums = sums + tile.read(block, (block.place + shift + k) % block.threads)
            block.barrier()
        return sums

    keep(to, Expression(type_, f"{name}{given}({array.name}, {value.text}, t, threads)", run))


def threads_return(to: Composer) -> None:
    """Some threads of a warp return; the others go on and meet at barriers."""
    to.used.add("threads that return")
    rest = to.rng.choice((3, 5))
    _return(to, Expression("bool", f"(t % {rest} == 1 && {(held := to.values.condition()).text})",
                           lambda block: (block.place % rest == 1) & held.value(block)))  # fmt: skip
    to.is_ragged = to.is_thinned = True


def warps_return(to: Composer) -> None:
    to.used.add("warps that return")
    warp = to.rng.randint(0, max(0, to.threads // WARP - 1))
    _return(
        to,
        Expression(
            "bool", f"(warp == {warp} && b != 1)", lambda block: (block.warp == warp) & (block.index != 1)
        ),
    )
    to.is_thinned = True


def _return(to: Composer, chosen: Expression) -> None:
    with to.nested() as body:
        store(to)
        to.emit("return;", Block.leave_kernel)
    _emit_conditional(to, chosen, body)


# ---- statements of a level ----

_THREAD: tuple[Feature, ...] = (
    declare,
    update,
    update,
    store,
    shared_store,
    shared_read,
    shared_atomic,
    global_atomic,
)
_LANES: tuple[Feature, ...] = (shuffle, shuffle, vote, match, warp_reduction)
_WARP: tuple[Feature, ...] = (*_LANES, warp_exchange, warp_function)
_BLOCK: tuple[Feature, ...] = (
    barrier,
    barrier,
    uniform_branch,
    uniform_loop,
    do_while,
    tree_reduction,
    scan,
    barrier_function,
)
_DEEPEST = 3


def thread_statements(to: Composer, count: int) -> None:
    """Write statements that threads execute by themselves."""
    _some(to, (*_THREAD, branch, loop) if to.depth < _DEEPEST else _THREAD, count)


def warp_statements(to: Composer, count: int) -> None:
    """Write statements that whole warps execute."""
    _some(to, _THREAD if to.is_ragged else (*_THREAD, *_WARP), count)


def block_statements(to: Composer, count: int) -> None:
    """Write statements that all threads of a block execute that have not returned."""
    if to.depth >= _DEEPEST - 1:
        return warp_statements(to, count)
    return _some(to, (*_THREAD, *_BLOCK, *(() if to.is_ragged else _WARP)), count)


def _some(to: Composer, features: tuple[Feature, ...], count: int) -> None:
    for _ in range(count):
        to.rng.choice(features)(to)


# ---- parts ----


def _conditional(to: Composer, chosen: Expression, fill: Callable[[Composer, int], None]) -> None:
    bodies = []
    for _ in range(to.rng.choice((1, 2))):
        with to.nested() as body:
            fill(to, 2)
        bodies.append(body)
    _emit_conditional(to, chosen, *bodies)


def _emit_conditional(
    to: Composer, chosen: Expression, body: list[Statement], otherwise: list[Statement] | None = None
) -> None:
    def run(block: Block) -> None:
        holds = chosen.value(block)
        with block.only(holds):
            block.run(body)
        with block.only(~holds):
            block.run(otherwise or [])

    text = braces(f"if ({chosen.text})", body)
    to.emit(text + (braces(" else", otherwise) if otherwise else ""), run)


def _counted(to: Composer, counter: Local, count: Expression, body: list[Statement]) -> None:
    name = counter.name

    def run(block: Block) -> None:
        block.assign(name, "int", np.zeros(1))
        block.loop(
            lambda block: block.variables[name] < count.value(block),
            lambda block: block.run(body),
            lambda block: block.assign(name, "int", block.variables[name] + 1),
        )

    to.emit(braces(f"for (int {name} = 0; {name} < {count.text}; ++{name})", body), run)


def _leave(to: Composer, chosen: Expression) -> None:
    word, leave = to.rng.choice((("break", Block.leave_loop), ("continue", Block.skip_step)))
    _emit_conditional(to, chosen, [Statement(f"{word};", leave)])


def _array_after_barrier(to: Composer, phase: str, types: tuple[str, ...]) -> SharedArray:
    """Write a barrier behind which a shared array has a phase."""
    arrays = [each for each in to.values.arrays if each.type in types]
    array = to.rng.choice(arrays)
    to.barrier()
    array.phase, array.is_reversed = phase, False
    return array


def _limited(count: Expression) -> Expression:
    return Expression("int", f"min({count.text}, 3)", lambda block: np.minimum(count.value(block), 3))


def _live(block: Block) -> Array:
    return np.minimum(WARP, block.threads - block.warp * WARP)


def _nothing(block: Block) -> None:
    pass
