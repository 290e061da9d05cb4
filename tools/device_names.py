"""Sort the device names of NVIDIA's public headers into the table of names.

    python tools/device_names.py FOLDER...     # where the headers of the wheels are: .../nvidia/cu13/include

Names alone are read. A name that the table does not refuse counts as supported, and the tests of the
table then ask for its values.
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parents[1] / "src" / "gridstride" / "targets" / "cpu" / "device_names.toml"

#: Every header that is read, and what marks a line that declares a device name in it.
_FUNCTIONS = r"__device__|_DECL__|_DEVICE_FUNC__|QUALIFIERS|_QUALIFIER\b|_CCCL_HOST_DEVICE"
_HEADER_NAMES = """
crt/device_functions.h crt/math_functions.h crt/device_double_functions.h crt/common_functions.h crt/sm_70_rt.h
crt/sm_80_rt.h crt/sm_90_rt.h crt/sm_100_rt.h crt/device_fp128_functions.h crt/mma.h device_atomic_functions.h
sm_20_atomic_functions.h sm_32_atomic_functions.h sm_60_atomic_functions.h sm_20_intrinsics.h sm_30_intrinsics.h
sm_32_intrinsics.h sm_61_intrinsics.h vector_functions.h vector_types.h device_launch_parameters.h cuda_fp16.h
cuda_bf16.h cuda_fp8.h cuda_fp6.h cuda_fp4.h cuda_tf32.h cuComplex.h math_constants.h cooperative_groups.h
cooperative_groups/reduce.h cooperative_groups/scan.h cooperative_groups/memcpy_async.h
cooperative_groups/details/reduce.h cooperative_groups/details/scan.h cooperative_groups/details/async.h
cooperative_groups/details/partitioning.h cooperative_groups/details/functional.h
cooperative_groups/details/invoke.h cuda_pipeline_primitives.h cuda_awbarrier_primitives.h
texture_indirect_functions.h surface_indirect_functions.h cuda_device_runtime_api.h curand_kernel.h curand_normal.h
curand_lognormal.h curand_uniform.h curand_poisson.h curand_discrete2.h curand_philox4x32_x.h curand_mtgp32_kernel.h
curand_globals.h cccl/thrust/complex.h
"""

#: Names that are not for users: parts of the headers themselves, names of host compilers and of old compilers.
_INTERNAL = re.compile(
    r"_[A-Z]\w*|__\w*DEPRECATED\w*|__NV_\w*|\w+_impl|__cudaPushCallConfiguration|_[df]?sign|_ldsign|_hypotf?"
    r"|__libcpp_\w+|__(?:FLOAT|DOUBLE)_BITS|__pow_helper|__cmath_power|__nv_aligned_\w+|_alloca|_wassert|throw|new|delete"
    r"|d(?:mul|add|sub)|(?:int|uint|ll|ull|float)2double|double2(?:int|uint|ll|ull)|syncthreads_\w+|__u128Atomic\w+"
    r"|__nv_associate_access_property|__nv_memcpy_async_shared_\w+|__assert\w*|if|defined|\w+_ptsz|_(?:curand|skip|philox)\w+"
    r"|__cu?rand?_\w+|__cr_\w+|cur?nand_MRG\w*|curand_MRG\w+|curand_M2\w*|curand_mtgp32_s\w+|para_rec|temper\w*"
    r"|curand__\w+|curand_binary_search\w*|curand_poisson_\w+|mulhilo32|Philox_State\w*|curand_Philox4x32_10"
    r"|curand_box_muller\w*|__get_\w+matrix|__signbitl|__finitel|__is(?:inf|nan)l|__isfinite[fd]?|__is(?:inf|nan)d|__signbitd|__isnanl|__isinfl|__finitel|__curand\w+|__cudaCDP2\w+|\w+DeprecationAvoidance|tag|__signbitl"
    r"|_packLanes|_get_tiled_threads|build_mask|get_type|\w*multi_warp\w*|collectives_scheme|get_sync_location"
    r"|get_scratch_location|tiled_partition_\w+|__get_storage_value|_fdsign|thread_group_base|atomic_\w+|inline_copy|copy|accelerated_async_copy|find_best_alignment|copy_like|__align__"
    r"|_(?:async|memcpy)_\w+|_Segment"
)
#: Classes of cooperative groups that users name; its tiles are put together from many others.
_GROUPS = ("thread_group", "grid_group", "cluster_group", "thread_block", "coalesced_group")


class Rule(NamedTuple):
    """Put the names that match, of headers that match, into a section."""

    section: str
    header: str
    name: str = r".*"


#: The first rule that fits decides.
RULES = (
    Rule("simd", r"crt/device_functions\.h", r"__v\w+"),
    Rule(
        "rounding",
        r"crt/device_.*|sm_20_intr.*",
        r"__(?:[fd](?:add|sub|mul|div|rcp|sqrt|rsqrt)|fmaf?(?:_ieee)?)_r[nzud]",
    ),
    Rule(
        "casts",
        r"crt/device_.*|sm_20_intr.*",
        r"__\w+2\w+_r[nzud]|__\w+_as_\w+|__double2(?:hi|lo)int|__hiloint2double",
    ),
    Rule("fast", r"crt/device_functions\.h", r"__?(?:fdivid|sin|cos|tan|exp|log|pow|sat)\w*|fdivid\w+"),
    Rule(
        "barriers",
        r"crt/device_functions\.h|sm_[23]0_intr.*",
        r"__syncthreads\w*|__threadfence\w*|__barrier_\w+",
    ),
    Rule(
        "warp",
        r"sm_30_intr.*|crt/sm_[78]0_rt\.h",
        r"__(?:shfl|all|any|uni|ballot|match|reduce|activemask|syncwarp)\w*",
    ),
    Rule(
        "runtime",
        r"crt/.*|sm_20_intr.*",
        r"__(?:pm[0-3]|prof_trigger|brkpt|nanosleep)|clock(?:64)?|printf|malloc|free|mem\w+",
    ),
    Rule(
        "memory",
        r"sm_20_intr.*|crt/sm_90_rt\.h",
        r"__is(?:Global|Shared|Constant|Local|GridConstant|CtaShared)|__cvta_\w+",
    ),
    Rule("clusters", r"crt/sm_90_rt\.h", r"__\w*[cC]luster\w*"),
    Rule("atomics", r"(?:device|sm_\d+)_atomic_functions\.h|crt/sm_[79]0_rt\.h", r"atomic\w+"),
    Rule("sm_100", r"crt/sm_100_rt\.h"),
    Rule("quadruple", r"crt/device_fp128_functions\.h"),
    Rule("integer", r"crt/math_functions\.h", r"l?l?abs|(?:u|ll|ull)?(?:min|max)"),
    Rule("classification", r"crt/math_functions\.h", r"(?:__)?(?:is(?:nan|inf|finite)|signbit|finite)[fdl]*"),
    Rule("double", r"crt/math_functions\.h", r"modf|erf|normcdf"),
    Rule("single", r"crt/math_functions\.h", r"\w+f"),
    Rule("double", r"crt/math_functions\.h|crt/device_double.*", r"\w+"),
    Rule("memory", r"sm_32_intr.*", r"__(?:ld|st)\w+"),
    Rule("integer", r"crt/device_functions\.h|sm_\d\d_intr.*"),
    Rule("vectors", r"vector_\w+\.h"),
    Rule("variables", r"device_launch_parameters\.h"),
    Rule("half", r"cuda_fp16\.h"),
    Rule("bfloat16", r"cuda_bf16\.h"),
    Rule("narrow", r"cuda_(?:fp[864]|tf32)\.h"),
    Rule("cuComplex", r"cuComplex\.h"),
    Rule("constants", r"math_constants\.h"),
    Rule("clusters", r"cooperative_groups.*", r"cooperative_groups::(?:cluster_group.*|this_cluster)"),
    Rule("groups", r"cooperative_groups.*"),
    Rule("pipelines", r"cuda_(?:pipeline|awbarrier)_primitives\.h"),
    Rule("textures", r"texture_.*"),
    Rule("surfaces", r"surface_.*"),
    Rule("matrices", r"crt/mma\.h"),
    Rule("device-runtime", r"cuda_device_runtime_api\.h"),
    Rule(
        "curand-others",
        r"curand.*",
        r"curandState(?!Philox)\w*|skipahead_subsequence|curandDirectionVectors\w*|curandDiscrete\w+",
    ),
    Rule("curand", r"curand.*"),
    Rule("complex", r"cccl/thrust/complex\.h"),
)

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONTINUED = re.compile(r"\\\n")
_OPEN = re.compile(rf"^([^\n#(;{{}}]*(?:{_FUNCTIONS})[^\n(;{{}}]*)\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r"__\w+\(\d+\)|__attribute__\(\(.*?\)\)|_LIBCUDACXX\w*\([^)]*\)")
_CALL = re.compile(r"(operator\b\s*[^\w\s(]+|operator\(\)|[A-Za-z_]\w*)\s*\(")


def names_of(header: str, text: str) -> Iterator[str]:
    """Yield the names that a header declares for device code, in order, with repetitions."""
    text = _OPEN.sub(r"\1 ", _CONTINUED.sub(" ", _COMMENT.sub("", text)))
    if header == "math_constants.h":
        yield from re.findall(r"#define\s+(CUDART_\w+)\s+\S", text)
    elif header == "vector_types.h":
        yield "dim3"
        yield from re.findall(
            r"\bstruct (?:__device_builtin__ )?(?:\w+\([^)]*\) )?(u?[a-z]+[1-4]\w*)\b(?! \w+;)", text
        )
        yield from re.findall(r"^__cuda_builtin_vector_align8\((\w+)", text, re.MULTILINE)
    elif header == "device_launch_parameters.h":
        yield from re.findall(r"^\w+ __device_builtin__ __STORAGE__ (\w+);", text, re.MULTILINE)
    elif header.startswith("curand"):
        yield from re.findall(r"^typedef struct \w+ (curand\w+)\s*;", text, re.MULTILINE)
        yield from (name for _, name in _declared(text))
    elif header.startswith("cooperative_groups"):
        yield from (f"cooperative_groups::{name}" for name in _names_of_groups(text))
    else:
        namespace = {"cccl/thrust/complex.h": "thrust::", "crt/mma.h": "nvcuda::wmma::"}.get(header, "")
        yield from (f"{namespace}{name}" for _, name in _declared(text))


def _declared(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that declare functions, and the functions' names."""
    for line in text.splitlines():
        if line.lstrip().startswith("#") or not re.search(_FUNCTIONS, line):
            continue
        called = _CALL.search(_ATTRIBUTE.sub("", line))
        if called and not _INTERNAL.fullmatch(name := called[1].replace(" ", "")):
            yield line, name


def _names_of_groups(text: str) -> Iterator[str]:
    """Yield functions, and members as ``class::member``; what all tiles are made of counts as a tile's."""
    scope = ""
    yield from re.findall(r"struct (plus|less|greater|bit_and|bit_or|bit_xor)\b", text)
    for chunk in re.split(r"^(?=(?:class|struct) \w|\};|\S.*_CG_\w*QUALIFIER)", text, flags=re.MULTILINE):
        if opened := re.match(r"(?:class|struct) (\w+)(?=[^;]*\{)", chunk):
            scope = opened[1]
            if scope in (*_GROUPS, "thread_block_tile"):
                yield scope
        elif chunk.startswith("};"):
            scope = ""
        for line, name in _declared(chunk):
            if (
                line.lstrip().startswith("friend")
                or "operator" in name
                or name == scope
                or "::" in line.split("(")[0]
            ):
                continue
            if not scope and line[0] == " ":
                continue  # in a namespace of details
            owner = "" if not scope or line[0] != " " else scope if scope in _GROUPS else "thread_block_tile"
            yield f"{owner}::{name}" if owner else name


def sort(headers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names of headers, given by name and text, by section."""
    sections: dict[str, dict[str, None]] = {rule.section: {} for rule in RULES}
    placed: set[tuple[str, str]] = set()
    for header, text in headers:
        for name in names_of(header, text):
            rule = next(
                (
                    rule
                    for rule in RULES
                    if re.fullmatch(rule.header, header) and re.fullmatch(rule.name, name)
                ),
                None,
            )
            if rule is None:
                raise SystemExit(f"{header}: no section takes {name}")
            sections[rule.section].setdefault(name)
            placed.add((header, name))
    return {section: list(names) for section, names in sections.items()}


def read(folders: list[Path]) -> list[tuple[str, str]]:
    """Return the headers of the list that the folders have, by name and text."""
    found = []
    for header in _HEADER_NAMES.split():
        path = next((folder / header for folder in folders if (folder / header).is_file()), None)
        if path is not None:
            found.append((header, path.read_text(errors="replace")))
        else:
            print(f"not found: {header}", file=sys.stderr)
    return found


def merged(table: str, names: dict[str, list[str]]) -> str:
    """Return the table's text with the names of its sections replaced; what is new is listed as undecided."""
    known = tomllib.loads(table)["section"]
    for section in (section for section in known if section["key"] in names):
        block = "\n".join(textwrap.wrap(" ".join(names[section["key"]]), 118, break_on_hyphens=False))
        table = table.replace(section["names"].strip("\n"), block, 1)
    missing = set(names) - {section["key"] for section in known}
    if missing:
        raise SystemExit(f"{TABLE} has no section {', '.join(sorted(missing))}")
    return table


if __name__ == "__main__":
    found = sort(read([Path(argument) for argument in sys.argv[1:]]))
    TABLE.write_text(merged(TABLE.read_text(), found))
    print(f"{sum(map(len, found.values()))} names in {len(found)} sections")
