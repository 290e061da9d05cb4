"""The part of the source pass that translates inline PTX: the instructions it knows become C++, the rest is refused.

``asm volatile("bfe.u32 %0, %1, 4, 8;" : "=r"(y) : "r"(x));`` becomes a call of a lambda in which every
instruction is a block of its own. ``templates/ptx.txt`` says what an instruction becomes; loads, stores,
atomics and copies, which have many spellings of one thing, are put together here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from gridstride._syntax import lexical
from gridstride.targets.cpu.edits import Edit, Refusal

_TABLE = Path(__file__).parent / "templates" / "ptx.txt"
_ASM = re.compile(rb"\b(?:asm|__asm__|__asm)\b(?:\s*\b(?:volatile|__volatile__)\b)?\s*(?=\()")
_STRING = re.compile(
    rb'R"(?P<mark>[^\s()\\]{0,16})\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:\\.|[^"\\])*)"', re.DOTALL
)
_OPERAND = re.compile(rb'\s*(?:\[\s*(\w+)\s*\])?\s*"([^"]*)"\s*(?=\()')
_PTX_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INSTRUCTION = re.compile(
    r"(?:@(?P<negated>!?)(?P<guard>[%\w]+)\s+)?(?P<mnemonic>[a-z][\w.:]*)(?P<operands>.*)", re.DOTALL
)
_REGISTERS = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+(?P<names>.*)", re.DOTALL)
_ALTERNATIVES = re.compile(r"<([\w,]+)>")

#: PTX's types: what they are in C++.
_TYPES = {
    "b8": "unsigned char", "u8": "unsigned char", "s8": "signed char", "b16": "unsigned short", "u16": "unsigned short",
    "s16": "short", "b32": "unsigned", "u32": "unsigned", "s32": "int", "b64": "unsigned long long",
    "u64": "unsigned long long", "s64": "long long", "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
_UNSIGNED = {"s32": "unsigned", "u32": "unsigned", "s64": "unsigned long long", "u64": "unsigned long long"}
_WIDER = {"u16": "unsigned", "s16": "int", "u32": "unsigned long long", "s32": "long long",
          "u64": "unsigned __int128", "s64": "__int128"}  # fmt: skip

_MODIFIERS = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|nc|weak|L[12]::[\w:]+))*"
_SPACE = r"(?:\.(?P<space>global|shared|shared::cta|local|const))?"
_LOAD = re.compile(
    rf"ld(?P<order>\.volatile|\.relaxed|\.acquire)?(?:\.(?:cta|gpu|sys))?{_SPACE}{_MODIFIERS}(?:\.v[24])?\.(?P<type>[busf]\d+)"
)
_STORE = re.compile(
    rf"st(?P<order>\.volatile|\.relaxed|\.release)?(?:\.(?:cta|gpu|sys))?{_SPACE}{_MODIFIERS}(?:\.v[24])?\.(?P<type>[busf]\d+)"
)
_ATOMIC = re.compile(
    rf"(?P<form>atom|red)(?:\.(?:relaxed|acquire|release|acq_rel))?(?:\.(?:cta|gpu|sys))?{_SPACE}"
    r"\.(?P<operation>add|min|max|inc|dec|and|or|xor|exch|cas)\.(?P<type>[busf]\d+)"
)
_CARRIES = re.compile(r"(?:add|sub|mad(?:\.lo|\.hi)?)\.cc\b|(?:add|sub|mad)c\.")
_ATOMICS = {"add": "Add", "min": "Min", "max": "Max", "inc": "Inc", "dec": "Dec", "and": "And", "or": "Or",
            "xor": "Xor", "exch": "Exch", "cas": "CAS"}  # fmt: skip
_COPY = re.compile(r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::[\w:]+)*")
_WAITS = re.compile(r"cp\.async\.(?:commit_group|wait_all|wait_group)")


class _Unknown(Exception):
    """Say what of a piece of PTX is not known."""


class _Row(NamedTuple):
    """An instruction of the table: its operands' names and types, T and T2, the statement."""

    operands: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    statement: str


def asm_edits(source: bytes, code: bytes) -> list[Edit]:
    """Return the edits that replace the inline PTX of a text; `code` is the same text, masked.

    Raises
    ------
    Refusal
        For an instruction that is not known, at its statement.
    """
    return [_edit(source, code, match) for match in _ASM.finditer(code)]


def has_asm(code: bytes) -> bool:
    """Return whether a masked text has inline PTX."""
    return _ASM.search(code) is not None


def mnemonics() -> tuple[str, ...]:
    """Return the instructions and special registers of the table."""
    return tuple(dict.fromkeys(name for name, _ in _table()))


def _edit(source: bytes, code: bytes, match: re.Match[bytes]) -> Edit:
    end = lexical.closing(code, match.end())
    try:
        text = _Statement(source[match.end() + 1 : end - 1], code[match.end() + 1 : end - 1]).translated()
    except _Unknown as unknown:
        raise Refusal(
            match.start(),
            f"inline PTX: {unknown} cannot run on the CPU target: use the CUDA intrinsic for it",
        ) from None
    return Edit(match.start(), end, text.encode() + b"\n" * source.count(b"\n", match.start(), end))


class _Statement:
    """One asm statement: its template, its operands, the registers it declares."""

    def __init__(self, source: bytes, code: bytes) -> None:
        (self.template, _), *sections = _sections(source, code)
        self.operands: dict[str, str] = {}  # by number and by name: the C++ name
        self.registers: dict[str, str] = {}
        self.lines = list(self._bind(sections[:2]))
        self.has_carry = False

    def translated(self) -> str:
        text = _PTX_COMMENT.sub(" ", "".join(map(_unescaped, _STRING.finditer(self.template))))
        for part in re.split(r"[;{}](?![^\[\]]*\])", _protected(text)):
            self.lines += self._instruction(_restored(part).strip())
        body = " ".join(self.lines)
        return f'[&] {{ {body} asm volatile("" ::: "memory"); }}()'

    def _bind(self, sections: list[tuple[bytes, bytes]]) -> Iterator[str]:
        """Yield the declarations of the operands: references to outputs, copies of inputs."""
        for is_input, (source, code) in enumerate(sections):
            position = 0
            while match := _OPERAND.match(source, position):
                end = lexical.closing(code, match.end())
                name = f"gridstride_ptx_{len([key for key in self.operands if key.isdigit()])}"
                self.operands[name.rpartition("_")[2]] = name
                if match[1]:
                    self.operands[f"[{match[1].decode()}]"] = name
                expression = " ".join(source[match.end() : end].decode().split())
                yield f"{'const auto' if is_input else 'auto&&'} {name} = {expression};"
                comma = code.find(b",", end)
                position = len(source) if comma < 0 else comma + 1

    # ---- instructions ----

    def _instruction(self, text: str) -> Iterator[str]:
        if not text:
            return
        if declared := _REGISTERS.fullmatch(text):
            yield from self._declared(declared["type"], declared["names"])
            return
        match = _INSTRUCTION.fullmatch(text)
        if match is None:
            raise _Unknown(f"{text!r}")
        guard = f"if ({match['negated']}{self._read('bool', match['guard'])}) " if match["guard"] else ""
        yield f"{guard}{{ {self._body(match['mnemonic'], _split(match['operands']))} }}"

    def _declared(self, kind: str, names: str) -> Iterator[str]:
        for name in map(str.strip, names.split(",")):
            counted = re.fullmatch(r"(%?\w+)<(\d+)>", name)
            each = [f"{counted[1]}{k}" for k in range(int(counted[2]))] if counted else [name]
            for register in each:
                self.registers[register.lstrip("%")] = f"gridstride_ptx_of_{register.lstrip('%')}"
                yield f"{self._type(kind)} {self.registers[register.lstrip('%')]}{{}};"

    def _body(self, mnemonic: str, operands: list[str]) -> str:
        if match := _LOAD.fullmatch(mnemonic):
            return self._load(match, operands)
        if match := _STORE.fullmatch(mnemonic):
            return self._store(match, operands)
        if match := _ATOMIC.fullmatch(mnemonic):
            return self._atomic(match, operands)
        if _COPY.fullmatch(mnemonic):
            return self._copy(operands)
        if _WAITS.fullmatch(mnemonic):
            return ""
        if mnemonic in ("mov.b32", "mov.b64") and "{" in "".join(operands):
            return self._packed(mnemonic, operands)
        return self._from_table(mnemonic, operands)

    def _from_table(self, mnemonic: str, operands: list[str]) -> str:
        plain = mnemonic.replace(".ftz", "")
        if operands and "|" in operands[0]:
            operands = [*map(str.strip, operands[0].split("|")), *operands[1:]]
        self._carry(plain)
        rows = [row for name, row in _table() if name == plain]
        row = next(
            (row for row in rows if len(row.operands) - _skipped(row, operands) == len(operands)), None
        )
        if row is None:
            raise _Unknown(f"{mnemonic} with {len(operands)} operands" if rows else mnemonic)
        names = [item for item in row.operands if item[0] != "p" or not _skipped(row, operands)]
        flushed = plain != mnemonic
        before, after = [self._using(row)], []
        if _skipped(row, operands):
            before.append("bool p; (void)p;")
        for (name, kind), operand in zip(names, operands, strict=True):
            ctype = kind if kind in ("T", "T2", "W") else "auto" if kind == "address" else self._type(kind)
            if name in ("d", "p"):
                before.append(f"{ctype} {name};")
                value = f"gridstride_ptx_flushed({name})" if flushed and self._is_float(kind, row) else name
                after.append(self._write(operand, value))
            elif kind == "address":
                before.append(f"const auto {name} = {self._address(operand, 'char', '')};")
            else:
                value = self._read(ctype, operand)
                value = f"gridstride_ptx_flushed({value})" if flushed and self._is_float(kind, row) else value
                before.append(f"const {ctype} {name} = {value};")
        return " ".join([*filter(None, before), f"{row.statement};", *after])

    def _carry(self, mnemonic: str) -> None:
        """Declare the carry where the first instruction sets it; one from another statement is not known."""
        if _CARRIES.match(mnemonic) and not self.has_carry:
            if re.match(r"\w+c\.", mnemonic):
                raise _Unknown(f"{mnemonic} with the carry of another statement")
            self.lines.insert(0, "unsigned carry = 0;")
            self.has_carry = True

    def _using(self, row: _Row) -> str:
        names = zip(("T", "T2"), (kind for kind in row.types if kind in _TYPES), strict=False)
        lines = [f"typedef {_TYPES[kind]} {name};" for name, kind in names]
        for name, types in (("W", _WIDER), ("U", _UNSIGNED)):
            if row.types and row.types[0] in types:
                lines.append(f"typedef {types[row.types[0]]} {name};")
        return " ".join(lines)

    @staticmethod
    def _is_float(kind: str, row: _Row) -> bool:
        place = {"T": 0, "T2": 1}.get(kind)
        return kind == "f32" or (place is not None and row.types[place : place + 1] == ("f32",))

    # ---- memory ----

    def _load(self, match: re.Match[str], operands: list[str]) -> str:
        ctype = self._type(match["type"])
        results, address = _listed(operands[0]), operands[1]
        waits = match["order"] is not None or ".cv" in match[0]
        value = "gridstride_ptx_volatile(m + {})" if waits else "m[{}]"
        loads = [f"const {ctype} v{k} = {value.format(k)};" for k in range(len(results))]
        writes = [self._write(result, f"v{k}") for k, result in enumerate(results)]
        fence = ["__atomic_thread_fence(__ATOMIC_SEQ_CST);"] if match["order"] == ".acquire" else []
        start = f"const {ctype}* m = {self._address(address, ctype, match['space'])};"
        return " ".join([start, *loads, *fence, *writes])

    def _store(self, match: re.Match[str], operands: list[str]) -> str:
        ctype = self._type(match["type"])
        values = _listed(operands[1])
        fence = ["__atomic_thread_fence(__ATOMIC_SEQ_CST);"] if match["order"] == ".release" else []
        start = f"volatile {ctype}* m = {self._address(operands[0], ctype, match['space'])};"
        stores = [f"m[{k}] = {self._read(ctype, value)};" for k, value in enumerate(values)]
        return " ".join([start, *fence, *stores])

    def _atomic(self, match: re.Match[str], operands: list[str]) -> str:
        kind, operation = match["type"], match["operation"]
        if kind == "s64" and operation == "add":
            kind = "u64"
        ctype = self._type(kind)
        result = operands.pop(0) if match["form"] == "atom" else "_"
        address = self._address(operands[0], ctype, match["space"])
        values = ", ".join(self._read(ctype, operand) for operand in operands[1:])
        return (
            f"const {ctype} v = atomic{_ATOMICS[operation]}({address}, {values}); {self._write(result, 'v')}"
        )

    def _copy(self, operands: list[str]) -> str:
        to = self._address(operands[0], "char", "shared")
        source = self._address(operands[1], "const char", "")
        size = self._read("unsigned", operands[2])
        given = self._read("unsigned", operands[3]) if len(operands) > 3 else size
        return (
            f"char* to = {to}; const char* from = {source}; const unsigned size = {size}, given = {given}; "
            "for (unsigned i = 0; i < size; ++i) to[i] = i < given ? from[i] : 0;"
        )

    def _address(self, operand: str, ctype: str, space: str | None) -> str:
        match = re.fullmatch(r"\[\s*([%\w\[\]]+)\s*(?:([+-])\s*(\w+))?\s*\]", operand)
        if match is None:
            raise _Unknown(f"the address {operand!r}")
        offset = f" {match[2]} {match[3]}" if match[2] else ""
        kind = "shared" if (space or "").startswith("shared") else "memory"
        return f"gridstride_ptx_{kind}<{ctype}>(gridstride_ptx_number({self._name(match[1])}){offset})"

    def _packed(self, mnemonic: str, operands: list[str]) -> str:
        whole, part, bits = (
            ("unsigned long long", "unsigned", 32)
            if mnemonic == "mov.b64"
            else ("unsigned", "unsigned short", 16)
        )
        if operands[0].startswith("{"):
            parts = _listed(operands[0])
            writes = [self._write(name, f"({part})(v >> {bits * k})") for k, name in enumerate(parts)]
            return " ".join([f"const {whole} v = {self._read(whole, operands[1])};", *writes])
        low, high = _listed(operands[1])
        value = f"({whole}){self._read(part, low)} | ({whole}){self._read(part, high)} << {bits}"
        return f"const {whole} v = {value}; {self._write(operands[0], 'v')}"

    # ---- operands ----

    def _type(self, kind: str) -> str:
        if kind not in _TYPES:
            raise _Unknown(f"the type .{kind}")
        return _TYPES[kind]

    def _read(self, ctype: str, operand: str) -> str:
        if re.fullmatch(r"-?\d+U?|-?0[xX][0-9a-fA-F]+U?", operand):
            return f"({ctype}){operand.rstrip('U')}{'ull' if operand[0] != '-' else 'll'}"
        if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            return f"gridstride_ptx_read<{ctype}>(__uint_as_float(0x{match[1]}u))"
        if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
            return f"gridstride_ptx_read<{ctype}>(__longlong_as_double(0x{match[1]}ll))"
        if operand == "WARP_SZ":
            return f"({ctype})32"
        return f"gridstride_ptx_read<{ctype}>({self._name(operand)})"

    def _write(self, operand: str, value: str) -> str:
        return (
            f"(void){value};" if operand == "_" else f"gridstride_ptx_write({self._name(operand)}, {value});"
        )

    def _name(self, operand: str) -> str:
        """Return the C++ expression of an operand, a declared register or a special one."""
        bare = operand.lstrip("%")
        if operand.startswith("%") and bare in self.operands:
            return self.operands[bare]
        if bare in self.registers:
            return self.registers[bare]
        row = next((row for name, row in _table() if name == f"%{bare}"), None)
        if row is None:
            raise _Unknown(f"the register {'%' if operand[0] == '%' else ''}{bare}")
        statement = row.statement.replace("T", row.types[0]) if row.types else row.statement
        return f"[] {{ {self._type(row.operands[0][1])} {statement}; return d; }}()"


def _skipped(row: _Row, operands: list[str]) -> int:
    """Return 1 where the predicate that an instruction may also write is left out."""
    return int(any(name == "p" for name, _ in row.operands) and len(operands) == len(row.operands) - 1)


@cache
def _table() -> tuple[tuple[str, _Row], ...]:
    rows = []
    for line in _TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, operands, statement = re.split(r"\s*\|\s*", line, maxsplit=2)
            pairs = tuple(tuple(item.split(":")) for item in operands.split())
            for name, types in _spelled(pattern):
                rows.append((name, _Row(tuple((pair[0], pair[1]) for pair in pairs), types, statement)))
    return tuple(rows)


def _spelled(pattern: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the mnemonics of a pattern with the alternatives chosen."""
    match = _ALTERNATIVES.search(pattern)
    if match is None:
        yield pattern, ()
        return
    for choice in match[1].split(","):
        for name, rest in _spelled(pattern[: match.start()] + choice + pattern[match.end() :]):
            yield name, (choice, *rest)


def _sections(source: bytes, code: bytes) -> list[tuple[bytes, bytes]]:
    """Split the inside of an asm statement at its colons, into pairs of source and masked text."""
    cuts, depth = [-1], 0
    for position, character in enumerate(code):
        depth += (character in b"([{") - (character in b")]}")
        if character == ord(":") and depth == 0:
            cuts.append(position)
    return [
        (source[start + 1 : end], code[start + 1 : end])
        for start, end in zip(cuts, [*cuts[1:], len(code)], strict=True)
    ]


def _unescaped(match: re.Match[bytes]) -> str:
    if match["raw"] is not None:
        return match["raw"].decode()
    text = match["text"].decode()
    return re.sub(
        r"\\(.)", lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), text, flags=re.DOTALL
    )


def _split(operands: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, character in enumerate(operands):
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append(operands[start:position])
            start = position + 1
    return [part.strip() for part in [*parts, operands[start:]] if part.strip()]


def _listed(operand: str) -> list[str]:
    return [part.strip() for part in operand.strip("{} ").split(",")]


def _protected(text: str) -> str:
    """Hide the braces of vector operands, which do not open a scope: they hold names and commas alone."""
    return re.sub(
        r"\{([\s%\w,]*)\}", lambda match: f"\x01{match[1]}\x02" if match[1].strip() else match[0], text
    )


def _restored(text: str) -> str:
    return text.replace("\x01", "{").replace("\x02", "}")
