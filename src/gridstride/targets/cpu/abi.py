"""The structures of ``include/gridstride_cpu/abi.h`` and ``_native/launch_abi.h``, field by field."""

from __future__ import annotations

import ctypes
import enum

ABI_VERSION = 3


class Kind(enum.IntEnum):
    """Kinds of C++ types in a signature table."""

    VOID = 0
    BOOL = 1
    CHAR = 2
    SIGNED = 3
    UNSIGNED = 4
    FLOAT = 5
    BFLOAT16 = 6
    COMPLEX = 7
    VECTOR = 8
    STRUCT = 9
    POINTER = 10
    FUNCTION = 11
    ENUM = 12


class FailureCode(enum.IntEnum):
    """What a launch returns besides 0."""

    SEGMENTATION = 1
    BUS = 2
    ARITHMETIC = 3
    ILLEGAL = 4
    STACK_OVERFLOW = 5
    DIVERGENCE = 6
    ASSERTION = 7
    TRAP = 8
    TIMEOUT = 9
    INTERRUPTED = 10
    TOO_MANY_BLOCKS = 11
    OUT_OF_MEMORY = 12
    UNSUPPORTED = 13


class Type(ctypes.Structure):
    """Mirror ``gridstride_type``."""


Type._fields_ = [
    ("kind", ctypes.c_uint),
    ("is_const", ctypes.c_uint),
    ("size", ctypes.c_uint),
    ("alignment", ctypes.c_uint),
    ("components", ctypes.c_uint),
    ("component_kind", ctypes.c_uint),
    ("pointee", ctypes.POINTER(Type)),
    ("pretty", ctypes.c_char_p),
]


class ParameterRecord(ctypes.Structure):
    """Mirror ``gridstride_parameter``."""

    _fields_ = (("offset", ctypes.c_uint), ("type", ctypes.POINTER(Type)))


class Kernel(ctypes.Structure):
    """Mirror ``gridstride_kernel``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        ("run_row", ctypes.c_void_p),
        ("is_merged", ctypes.c_uint),
        ("may_contend", ctypes.c_uint),
        ("parameter_count", ctypes.c_uint),
        ("parameter_bytes", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ParameterRecord)),
        ("code_begin", ctypes.c_void_p),
        ("code_end", ctypes.c_void_p),
    )


class Global(ctypes.Structure):
    """Mirror ``gridstride_global``."""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("size", ctypes.c_ulong))


class Constant(ctypes.Structure):
    """Mirror ``gridstride_constant``."""

    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_longlong))


class SharedSlot(ctypes.Structure):
    """Mirror ``gridstride_shared_slot``."""


SharedSlot._fields_ = [
    ("function", ctypes.c_char_p),
    ("size", ctypes.c_uint),
    ("alignment", ctypes.c_uint),
    ("offset", ctypes.c_uint),
    ("next", ctypes.POINTER(SharedSlot)),
]


class Table(ctypes.Structure):
    """Mirror ``gridstride_library_table``."""

    _fields_ = (
        ("abi_version", ctypes.c_uint),
        ("kernel_count", ctypes.c_uint),
        ("global_count", ctypes.c_uint),
        ("constant_count", ctypes.c_uint),
        ("kernels", ctypes.POINTER(Kernel)),
        ("globals", ctypes.POINTER(Global)),
        ("constants", ctypes.POINTER(Constant)),
        ("shared_slots", ctypes.POINTER(ctypes.POINTER(SharedSlot))),
        ("static_shared_bytes", ctypes.POINTER(ctypes.c_uint)),
    )


class FunctionContext(ctypes.Structure):
    """Mirror ``gridstride_function``."""

    _fields_ = (
        ("kernel", ctypes.POINTER(Kernel)),
        ("name", ctypes.c_char_p),
        ("static_shared_bytes", ctypes.c_uint),
        ("source_path", ctypes.c_char_p),
    )


class Failure(ctypes.Structure):
    """Mirror ``gridstride_failure``."""

    _fields_ = (
        ("code", ctypes.c_int),
        ("block", ctypes.c_uint * 3),
        ("thread", ctypes.c_uint * 3),
        ("has_thread", ctypes.c_uint),
        ("has_address", ctypes.c_uint),
        ("address", ctypes.c_ulong),
        ("message", ctypes.c_char * 4000),
    )


class Configuration(ctypes.Structure):
    """Mirror ``gridstride_configuration``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_mem", ctypes.c_uint),
        ("flags", ctypes.c_uint),
    )
