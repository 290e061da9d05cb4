"""Object code as bytes: one tuple of plain values in Python's own format for them.

It is read several times as fast as JSON, which counts: a program that finds its kernel in the cache
does little else before the first launch. Format 4 is that of every Python that the package runs on.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import partial
from typing import Any

from gridstride import _dtypes
from gridstride.targets.base import CType, FunctionRecord, ObjectCode, Parameter, Signature, TierObstacle

_FORMAT = 4


def encode(object_code: ObjectCode) -> bytes:
    """Return the bytes of an entry; `decode` is the inverse."""
    description = (
        object_code.format,
        object_code.code,
        {
            name: (
                record.lowered_name,
                _encode_signature(record.signature),
                record.tier,
                tuple(map(tuple, record.obstacles)),
            )
            for name, record in object_code.functions.items()
        },
        dict(object_code.globals),
        dict(object_code.constants),
        object_code.dependencies,
        object_code.log,
    )
    return marshal.dumps(description, _FORMAT)


def decode(data: bytes) -> ObjectCode:
    """Return the object code of an entry; ValueError, TypeError or EOFError for anything else."""
    form, code, functions, globals_, constants, dependencies, log = marshal.loads(data)
    records = {name: _decode_record(*record) for name, record in functions.items()}
    return ObjectCode(form, code, records, globals_, constants, dependencies, log)


def _decode_record(
    lowered_name: str, signature: tuple[Any, ...] | None, tier: str, obstacles: tuple[Any, ...]
) -> FunctionRecord:
    found = tuple([TierObstacle(*item) for item in obstacles]) if obstacles else ()
    return FunctionRecord(lowered_name, _decode_signature(signature), tier, found)


def _encode_signature(signature: Signature | None) -> tuple[Any, ...] | None:
    if signature is None:
        return None
    return tuple((parameter.name, _encode_type(parameter.type), parameter.offset) for parameter in signature)


def _decode_signature(items: tuple[Any, ...] | None) -> Signature | None:
    if items is None:
        return None
    return tuple([_make_parameter((name, _decode_type(ctype), offset)) for name, ctype, offset in items])


def _encode_type(ctype: CType) -> tuple[Any, ...]:
    return (
        ctype.kind,
        ctype.name,
        ctype.size,
        ctype.alignment,
        None if ctype.dtype is None else _dtypes.name_of_dtype(ctype.dtype),
        ctype.components,
        ctype.const,
        None if ctype.pointee is None else _encode_type(ctype.pointee),
    )


def _decode_type(items: tuple[Any, ...]) -> CType:
    kind, name, size, alignment, dtype, components, const, pointee = items
    dtype = None if dtype is None else _dtypes.dtype_of_name(dtype)
    pointee = None if pointee is None else _decode_type(pointee)
    return _make_type((kind, name, size, alignment, dtype, components, const, pointee))


#: In half the time that the classes themselves take.
_make_type: Callable[[tuple[Any, ...]], CType] = partial(tuple.__new__, CType)
_make_parameter: Callable[[tuple[Any, ...]], Parameter] = partial(tuple.__new__, Parameter)
