"""The option vocabulary."""

import pytest

from gridstride.targets.options import CompileOptions, parse_options


def parse(*options, **keywords):
    return parse_options(options, target="here", **keywords)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), CompileOptions()),
        (
            ("-DN=4", "-D", "M", "--define-macro=K=a b"),
            CompileOptions(defines=(("N", "4"), ("M", None), ("K", "a b"))),
        ),
        (("-DN=4", "-UN"), CompileOptions(undefines=("N",))),
        (("-DN=4", "-UN", "-DN=5"), CompileOptions(defines=(("N", "5"),))),
        (("-Ia", "-I", "b", "--include-path=c"), CompileOptions(include_dirs=("a", "b", "c"))),
        (("--std=c++14",), CompileOptions(std="c++14")),
        (("-std=gnu++20",), CompileOptions(std="c++20")),
        (("-O3",), CompileOptions(optimization="3")),
        (("-G", "-lineinfo"), CompileOptions(debug=True, line_info=True)),
        (("--fmad=false",), CompileOptions(contraction=False)),
        (("-fmad=true",), CompileOptions()),
        (("--use_fast_math",), CompileOptions(fast_math=True)),
        (("--use_fast_math=false",), CompileOptions()),
        (("--maxrregcount=32",), CompileOptions(max_registers=32)),
        (("--extra-device-vectorization",), CompileOptions(extra_vectorization=True)),
        (("-w",), CompileOptions(warnings=False)),
        (("--disable-warnings",), CompileOptions(warnings=False)),
    ],
)
def test_known_options(options, expected):
    assert parse(*options) == expected


@pytest.mark.parametrize(
    "option", ["--unknown", "-O9", "-fopenmp", "--fmad=maybe", "x.cu", "--maxrregcount=many"]
)
def test_unknown_option_names_itself_and_the_target(option):
    with pytest.raises(ValueError, match="here") as error:
        parse(option)
    assert option in str(error.value)


def test_unknown_standard_lists_the_standards():
    with pytest.raises(ValueError, match=r"c\+\+17"):
        parse("-std=c++99")


def test_missing_value():
    with pytest.raises(ValueError, match="needs a value"):
        parse("-D")


def test_a_bare_string_is_refused():
    with pytest.raises(TypeError, match="tuple of strings"):
        parse_options("-DN=4", target="here")


def test_cooperative_and_compiler_are_kept():
    assert parse(cooperative=True, compiler="nvcc") == CompileOptions(cooperative=True, compiler="nvcc")


@pytest.mark.parametrize("options", [("--unknown",), ("-std=c++99",), ("-D",), "-DN", (3,)])
def test_errors_name_the_kernel(options):
    with pytest.raises((TypeError, ValueError), match=r"^`wave`: "):
        parse_options(options, target="here", kernel="wave")


@pytest.mark.parametrize(
    ("given", "defines"),
    [
        ((), (("GRIDSTRIDE_DEBUG", None),)),
        (("-DN=4",), (("N", "4"), ("GRIDSTRIDE_DEBUG", None))),
        (("-DGRIDSTRIDE_DEBUG=2",), (("GRIDSTRIDE_DEBUG", "2"),)),
        (("-UGRIDSTRIDE_DEBUG",), ()),
    ],
)
def test_indices_are_checked_unless_the_options_say_something(
    given: tuple[str, ...], defines: tuple[tuple[str, str | None], ...]
) -> None:
    assert parse(*given, checks_indices=True).defines == defines
