"""Every example in a public docstring runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import gridstride


def examples() -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    public = [(name, getattr(gridstride, name)) for name in gridstride.__all__]
    public += [(f"cuda.{name}", getattr(gridstride.cuda, name)) for name in gridstride.cuda.__all__]
    for name, value in public:
        if not inspect.ismodule(value):
            yield from (test for test in finder.find(value, name, module=False, globs={}) if test.examples)


EXAMPLES = list(examples())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_docstring_example(example: doctest.DocTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDSTRIDE_TARGET", "cpu")
    monkeypatch.setenv("GRIDSTRIDE_BACKEND", "numpy")
    example.globs.update(gs=gridstride, np=np)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    output: list[str] = []
    runner.run(example, out=output.append)
    assert not runner.failures, "".join(output)


def test_the_main_class_has_an_example() -> None:
    assert "RawKernel" in {example.name for example in EXAMPLES}
