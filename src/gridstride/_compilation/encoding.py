"""Object code as bytes: a JSON description of what the compiler said, then the code."""

from __future__ import annotations

from typing import Any

from gridstride import _dtypes
from gridstride.targets.base import CType, FunctionRecord, ObjectCode, Parameter, Signature


def encode(object_code: ObjectCode) -> bytes:
    """Return the bytes of an entry; `decode` is the inverse."""
    import json

    description = {
        "format": object_code.format,
        "functions": {
            name: [record.lowered_name, _encode_signature(record.signature)]
            for name, record in object_code.functions.items()
        },
        "globals": dict(object_code.globals),
        "constants": dict(object_code.constants),
        "dependencies": object_code.dependencies,
        "log": object_code.log,
    }
    head = json.dumps(description).encode()
    return len(head).to_bytes(8, "little") + head + object_code.code


def decode(data: bytes) -> ObjectCode:
    """Return the object code of an entry; ValueError, KeyError or TypeError for anything else."""
    import json

    length = int.from_bytes(data[:8], "little")
    description = json.loads(data[8 : 8 + length])
    dependencies = description["dependencies"]
    return ObjectCode(
        format=description["format"],
        code=data[8 + length :],
        functions={
            name: FunctionRecord(lowered, _decode_signature(signature))
            for name, (lowered, signature) in description["functions"].items()
        },
        globals=description["globals"],
        constants=description["constants"],
        dependencies=None if dependencies is None else tuple((path, digest) for path, digest in dependencies),
        log=description["log"],
    )


def _encode_signature(signature: Signature | None) -> list[Any] | None:
    if signature is None:
        return None
    return [[parameter.name, parameter.offset, _encode_type(parameter.type)] for parameter in signature]


def _decode_signature(items: list[Any] | None) -> Signature | None:
    if items is None:
        return None
    return tuple(Parameter(name, _decode_type(ctype), offset) for name, offset, ctype in items)


def _encode_type(ctype: CType) -> list[Any]:
    return [
        ctype.kind,
        ctype.name,
        ctype.size,
        ctype.alignment,
        None if ctype.dtype is None else _dtypes.name_of_dtype(ctype.dtype),
        ctype.components,
        ctype.const,
        None if ctype.pointee is None else _encode_type(ctype.pointee),
    ]


def _decode_type(items: list[Any]) -> CType:
    kind, name, size, alignment, dtype, components, const, pointee = items
    return CType(
        kind,
        name,
        size,
        alignment,
        None if dtype is None else _dtypes.dtype_of_name(dtype),
        components,
        const,
        None if pointee is None else _decode_type(pointee),
    )
