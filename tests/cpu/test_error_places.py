"""Messages of the CPU target point at the user's file, line and column."""

from __future__ import annotations

from pathlib import Path

import error_places
import pytest

from gridstride.errors import CompileError
from gridstride.targets.cpu import compiler
from gridstride.targets.cpu.columns import in_the_users_line

from .conftest import MakeProgram


@pytest.mark.parametrize("case", error_places.PLACES)
def test_a_message_points_at_the_mistake(make_program: MakeProgram, tmp_path: Path, case: str) -> None:
    place = error_places.PLACES[case]
    program = make_program(place.text, "k", options=(error_places.write_headers(tmp_path), "--std=c++17"))
    with pytest.raises(CompileError) as caught:
        compiler.compile_program(program)
    error_places.check(caught.value, place)


@pytest.mark.parametrize(
    ("users", "compiled", "at", "expected"),
    [
        ("a = b + c;", "a = b + c;", "c", "c"),
        ("a   =\tb + c;", "a = b + c;", "c", "c"),
        ("a = M(b) + c;", "a = ((b) * (b)) + c;", "c", "c"),
        ("a = M(b) + c;", "a = ((wrong)) + c;", "wrong", "b"),
        ("a = M + M2;", "a = 1 + wrong;", "wrong", "M2"),
        ("M", "", "", "M"),
        ("", "a = 1;", "1", ""),
    ],
)
def test_a_column_of_what_is_compiled_becomes_one_of_the_user(users, compiled, at, expected):
    column = in_the_users_line(compiled.index(at) + 1, compiled.encode(), users.encode())
    assert users[column - 1 :].startswith(expected)
