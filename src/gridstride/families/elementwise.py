"""Elementwise kernels: one expression for every element of the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridstride import _array_pipeline, _native
from gridstride._arguments.parameters import declare
from gridstride._source.elementwise import ElementwiseSource
from gridstride.families.declared import DeclaredKernel
from gridstride.families.names import checked_kernel_name, checked_options, checked_texts, may_assign

if TYPE_CHECKING:
    from gridstride._source.reduction import ReductionSource


class ElementwiseKernel(DeclaredKernel):
    """Calculate each element of the outputs from the elements of the inputs, with a few lines of CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Declarations separated by commas, such as ``"T x, raw float32 table, int64 k"``. A type is a
        placeholder (an upper-case letter, digits may follow) that the arguments decide, a dtype's
        name, a C++ type, or a type that a preamble declares. The body sees an element of each
        parameter under its name; of a ``raw`` one the whole array, which it indexes.
    operation : str
        Statements that assign the outputs. Besides the parameters there are ``i``, the element's
        number, ``n``, how many there are, and ``_ind`` with ``size()`` and ``get()``, its index
        along each axis. ``return`` and ``continue`` end the element.
    name : str
        Of the kernel, a C++ identifier; in messages, in profiles and in the text.
    reduce_dims : bool
        Accepted: axes are always walked in the fewest loops, and the body sees nothing of it.
    preamble, type_preamble : str
        CUDA C++ text before the kernel: functions, and types that parameters have.
    no_return : bool
        Whether calls return None.
    return_tuple : bool
        Whether calls return a tuple also for one output.
    options : sequence of str
        Compiler options, as for `RawKernel`.
    loop_prep, after_loop : str
        Statements that every thread runs before and after its elements.

    Raises
    ------
    TypeError, ValueError
        For declarations or names that are not understood. Compiling waits until the first call.

    Notes
    -----
    A call is ``kernel(*inputs)`` or ``kernel(*inputs, *outputs)``, with ``size`` (how many elements, where
    all arrays are raw), ``block_size`` (from 1 to 1024, without effect) and ``stream`` by name. It returns
    the only output, or a tuple of them.

    Inputs are arrays of any shape and layout that broadcast as in NumPy, or numbers. Dtypes are bool,
    (u)int8 to (u)int64, float16, bfloat16, float32, float64, complex64, complex128 and structures. A
    placeholder stands for what NumPy 2 gives to an operation on all its arguments: Python numbers take the
    dtype of the arrays, NumPy scalars and arrays without axes keep theirs. Outputs are made C-contiguous,
    in the library of the first array, on the stream of the launch; those that are passed have the shape
    to which the inputs broadcast and may be strided. An input that overlaps an output otherwise than
    element for element is copied first. Without elements nothing is compiled or launched.

    A wrong call is a TypeError (count, dtype, something that is no array), a ValueError (shapes, size,
    outputs that share memory) or an OverflowError (a Python number that the dtype cannot hold); nothing
    was written then. A text that the compiler refuses is a `CompileError` at the first call that needs it.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> axpy = gs.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "axpy")
    >>> axpy(2, np.arange(4, dtype=np.float32), np.ones(4, np.float32))
    array([1., 3., 5., 7.], dtype=float32)
    """

    _source: ElementwiseSource

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        type_preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        options: Sequence[str] = (),
        loop_prep: str = "",
        after_loop: str = "",
    ) -> None:
        checked_texts(
            name, operation=operation, preamble=preamble, type_preamble=type_preamble, loop_prep=loop_prep,
            after_loop=after_loop,
        )  # fmt: skip
        declaration = declare(
            checked_kernel_name(name), in_params, out_params, f"{type_preamble}\n{preamble}"
        )
        if not declaration.outputs:
            raise ValueError(f"`{name}`: out_params must declare at least one output")
        outputs = [parameter.name for parameter in declaration.outputs]
        options = checked_options(name, options)
        texts = f"{operation} {loop_prep} {after_loop}"
        if not may_assign(texts, f"{type_preamble} {preamble}", options, outputs):
            raise ValueError(
                f"`{name}`: operation {operation!r} assigns none of the outputs: write {outputs[0]} = ..."
            )
        source = ElementwiseSource(
            declaration,
            operation,
            preamble,
            type_preamble,
            loop_prep,
            after_loop,
            options,
        )
        self._adopt(source, reduce_dims, bool(no_return), bool(return_tuple))

    def _adopt(
        self,
        source: ElementwiseSource | ReductionSource,
        reduce_dims: bool,
        no_return: bool = False,
        return_tuple: bool = False,
    ) -> None:
        super()._adopt(source, reduce_dims)
        self._return_tuple = return_tuple
        if no_return:
            self._form = _native.NOTHING
        elif return_tuple:
            self._form = _native.TUPLE

    if TYPE_CHECKING:

        def __call__(
            self, *args: Any, size: int | None = None, block_size: int | None = None, stream: Any = None
        ) -> Any: ...

    def _launch(
        self,
        *args: Any,
        size: int | None = None,
        block_size: int | None = None,
        stream: Any = None,
        **unknown: Any,
    ) -> _array_pipeline.FinishedCall:
        """Run the kernel through the pipeline: what a call does where it is no replay of an earlier one.

        Parameters
        ----------
        *args : array or number
            The inputs, or the inputs and the outputs.
        size : int, optional
            Of the loop, where all arrays are raw.
        block_size : int, optional
            Checked and otherwise without effect: the loops choose their blocks.
        stream : stream, optional
            By default the current one of the library the arrays belong to.

        Raises
        ------
        TypeError, ValueError, OverflowError
            The call is wrong; nothing was written.
        CompileError, CUDAError, LaunchError, TargetUnavailable
            The text, the device, the kernel or the target failed.
        """
        if unknown:
            self._refuse(unknown)
        if block_size is not None and (
            isinstance(block_size, bool) or not isinstance(block_size, int | np.integer)
        ):
            raise TypeError(f"`{self.name}`: block_size must be an int from 1 to 1024, got {block_size!r}")
        if block_size is not None and not 1 <= block_size <= 1024:
            raise ValueError(f"`{self.name}`: block_size must be from 1 to 1024, got {block_size}")
        return _array_pipeline.run_elementwise(self._source, self._known, args, size, stream, self._form)

    @property
    def no_return(self) -> bool:
        """Whether calls return None."""
        return self._form == _native.NOTHING

    @property
    def return_tuple(self) -> bool:
        """Whether calls return a tuple also for one output."""
        return self._return_tuple

    @property
    def operation(self) -> str:
        """The statements of the body."""
        return self._source.operation

    @property
    def loop_prep(self) -> str:
        """The statements that every thread runs before its elements."""
        return self._source.loop_prep

    @property
    def after_loop(self) -> str:
        """The statements that every thread runs after its elements."""
        return self._source.after_loop

    def __reduce__(self) -> tuple[Any, ...]:
        made_of = (type(self), self._source, self.reduce_dims, self.no_return, self.return_tuple)
        return _restore, made_of, self._attributes()


def create_elementwise_kernel(
    in_params: str, out_params: str, operation: str, name: str = "kernel", **kwargs: Any
) -> ElementwiseKernel:
    """Return an `ElementwiseKernel`; parameters and errors are its own.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> gs.create_elementwise_kernel("T x", "T y", "y = x * x", "square")(np.arange(4))
    array([0, 1, 4, 9])
    """
    return ElementwiseKernel(in_params, out_params, operation, name, **kwargs)


def _restore(
    cls: type[ElementwiseKernel],
    source: ElementwiseSource,
    reduce_dims: bool,
    no_return: bool,
    return_tuple: bool,
) -> ElementwiseKernel:
    kernel = cls.__new__(cls)
    kernel._adopt(source, reduce_dims, no_return, return_tuple)
    return kernel
