"""Arrays whose elements lie unaligned are worked on as copies, where a place does not reach their elements."""

from __future__ import annotations

from collections.abc import Sequence

from gridstride._arguments.place import Place
from gridstride._array_pipeline.copies import copied, copy, lies_aligned
from gridstride._array_pipeline.operands import Operand


def aligned(kernel: str, operands: tuple[Operand, ...], place: Place, stream: int) -> tuple[Operand, ...]:
    """Return the operands with copies in place of arrays whose elements lie unaligned; the same object without such.

    Raises
    ------
    TypeError
        For a raw array that lies so: the body may go anywhere from it.
    """
    if all(lies_aligned(each, place) for each in operands):
        return operands
    for each in operands:
        if each.role.kind == "raw" and not lies_aligned(each, place):
            raise each.passed.wrong(
                kernel,
                f"raw {each.role.ctype}",
                f"Its elements do not lie at multiples of {each.role.alignment} bytes, where the device reads and "
                f"writes them: pass x.copy()",
            )
    return tuple(
        each if lies_aligned(each, place) else each._replace(view=copied(kernel, each, place, stream))
        for each in operands
    )


def hand_back(
    kernel: str, outputs: Sequence[Operand], written: Sequence[Operand], place: Place, stream: int
) -> None:
    """Copy what was written to copies of outputs to the outputs themselves."""
    for output, copy_of_it in zip(outputs, written, strict=True):
        if output.written and output is not copy_of_it:
            assert output.view is not None
            copy(kernel, copy_of_it, output.view, place, stream)
