"""Reductions: many elements folded into one, along any axes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gridstride._arguments.parameters import Declaration, declare, is_placeholder
from gridstride._array_pipeline import FinishedCall
from gridstride._array_pipeline.folding import run_reduction
from gridstride._source.reduction import ReductionSource
from gridstride._source.reduction_expressions import (
    assigns,
    assigns_by_macros,
    expression_of,
    is_statement,
    spelled_integer,
)
from gridstride._syntax.words import includes_others, words
from gridstride.families.declared import DeclaredKernel
from gridstride.families.names import (
    checked_kernel_name,
    checked_options,
    checked_texts,
    may_assign,
    may_mention,
)

_DEFAULT_NAME = "reduce_kernel"
_RESERVED = frozenset({"i", "_J", "_in_ind", "_out_ind", "_fold_size", "_type_reduce"})
#: What is folded has these names beside outputs; inputs of such names are those of map_expr.
_FOLDED = frozenset({"a", "b"})


class ReductionKernel(DeclaredKernel):
    """Fold the elements of arrays along axes, with a few expressions of CUDA C++.

    Parameters
    ----------
    in_params, out_params : str
        Declarations as for `ElementwiseKernel`.
    map_expr : str
        What is folded of each element, an expression of the inputs; ``i`` is the element's number and
        ``_J`` its place among those that are folded together.
    reduce_expr : str
        How two such values ``a`` and ``b`` become one. It must be associative and commutative: values
        are joined in any order, which depends on shapes alone.
    post_map_expr : str, optional
        What becomes of the folded value ``a``: statements that assign the outputs, or an expression,
        which is then assigned to the only output. Without it the only output is ``a``.
    identity : str or number, optional
        The value that changes nothing, and what no elements are folded to. Without one, folding no
        elements is an error.
    name : str
        Of the kernel, a C++ identifier.
    reduce_type : str, optional
        The type in which values are folded, ``_type_reduce``: a dtype's name, a C++ type, or one that a
        preamble declares. By default that of the first output; float for float16 and bfloat16.
    reduce_dims : bool
        Accepted: axes are always walked in the fewest loops, and the expressions see nothing of it.
    preamble, type_preamble : str
        CUDA C++ text before the kernel: functions, and types that parameters have.
    options : sequence of str
        Compiler options, as for `RawKernel`.

    Raises
    ------
    TypeError, ValueError
        For declarations, expressions or names that are not understood.

    Notes
    -----
    A call is ``kernel(*inputs)`` or ``kernel(*inputs, *outputs)``, with ``axis`` (an int, a tuple of them in
    any order, None for all axes, ``()`` for none), ``keepdims``, ``dtype`` (of the first output, where it is a
    placeholder's), ``out`` (an array or a tuple) and ``stream`` by name. It returns the only output, or a
    tuple of them.

    Inputs, dtypes, outputs and errors are those of `ElementwiseKernel`; outputs have the shape of the inputs
    without the folded axes. An axis that is not there is NumPy's AxisError, and one that is named twice a
    ValueError. Results do not depend on the number of threads, and repeat bit for bit.

    ``_in_ind.size()`` is the number of input elements, ``_out_ind.size()`` that of results, and
    ``_fold_size`` how many elements are folded into one result.

    A fifth expression that mentions neither ``a`` nor an output cannot be a post-map: it is the identity,
    and a sixth is then the name, as in ``ReductionKernel("T x", "T y", "x", "a + b", "0", "total")``.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> rms = gs.ReductionKernel("T x", "T y", "x * x", "a + b", "sqrt(a / _fold_size)", "0", "rms")
    >>> rms(np.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    array([3.53553391, 7.07106781])
    """

    _source: ReductionSource

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str | None = None,
        identity: str | complex | None = None,
        name: str = _DEFAULT_NAME,
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        type_preamble: str = "",
        options: Sequence[str] = (),
    ) -> None:
        checked_texts(
            name, map_expr=map_expr, reduce_expr=reduce_expr, post_map_expr=post_map_expr or "",
            preamble=preamble, type_preamble=type_preamble, reduce_type=reduce_type or "",
        )  # fmt: skip
        declaration = declare(name, in_params, out_params, f"{type_preamble}\n{preamble}", _RESERVED, _FOLDED)
        outputs = [parameter.name for parameter in declaration.outputs]
        preambles = f"{type_preamble} {preamble}"
        options = checked_options(name, options)
        if post_map_expr is not None and not assigns_by_macros(
            post_map_expr, ["a", *outputs], preambles, options
        ):
            post_map_expr, identity, name = _readings(outputs, post_map_expr, identity, name)
        declaration = declaration._replace(name=checked_kernel_name(name))
        _check_parts(declaration, map_expr=map_expr, reduce_expr=reduce_expr)
        for one in ("a", "b"):
            if not may_mention(reduce_expr, preambles, options, [one]):
                raise ValueError(
                    f"`{name}`: reduce_expr {reduce_expr!r} does not join a and b: it has no {one}"
                )
        _check_reduce_type(declaration, reduce_type, preambles)
        source = ReductionSource(
            declaration,
            map_expr,
            reduce_expr,
            _checked_post(name, outputs, post_map_expr, preambles, options),
            _checked_identity(name, identity),
            reduce_type,
            preamble,
            type_preamble,
            options,
        )
        self._adopt(source, reduce_dims)

    if TYPE_CHECKING:

        def __call__(
            self,
            *args: Any,
            axis: Any = None,
            keepdims: bool = False,
            dtype: Any = None,
            out: Any = None,
            stream: Any = None,
        ) -> Any: ...

    def _launch(
        self,
        *args: Any,
        axis: Any = None,
        keepdims: bool = False,
        dtype: Any = None,
        out: Any = None,
        stream: Any = None,
        **unknown: Any,
    ) -> FinishedCall:
        """Run the reduction through the pipeline: what a call does where it is no replay of an earlier one.

        Parameters
        ----------
        *args : array or number
            The inputs, which broadcast, or the inputs and the outputs.
        axis : int, tuple of int, or None
            The axes along which to fold: all for None, none for ``()``.
        keepdims : bool
            Whether results have the folded axes, with length 1.
        dtype : dtype, optional
            Of the first output, where its type is a placeholder; inputs are read as the placeholder's dtype.
        out : array or tuple of arrays, optional
            The outputs; they may be strided.
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
        if out is not None:
            if len(args) > self._declaration.nin:
                raise TypeError(f"`{self.name}`: outputs are passed twice, by position and as out=")
            args = (*args, *(out if isinstance(out, tuple) else (out,)))
        return run_reduction(self._source, self._known, args, axis, keepdims, dtype, stream, self._form)

    @property
    def map_expr(self) -> str:
        """What is folded of each element."""
        return self._source.map_expr

    @property
    def reduce_expr(self) -> str:
        """How two values become one."""
        return self._source.reduce_expr

    @property
    def post_map_expr(self) -> str:
        """What becomes of the folded value."""
        return self._source.post_map_expr

    @property
    def identity(self) -> str | None:
        """The value that changes nothing."""
        return self._source.identity

    @property
    def reduce_type(self) -> str | None:
        """The type in which values are folded, where it was given."""
        return self._source.reduce_type

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self._source, self.reduce_dims), self._attributes()


def create_reduction_kernel(
    in_params: str, out_params: str, map_expr: str, reduce_expr: str, *args: Any, **kwargs: Any
) -> ReductionKernel:
    """Return a `ReductionKernel`; parameters and errors are its own.

    Examples
    --------
    >>> import gridstride as gs
    >>> import numpy as np
    >>> total = gs.create_reduction_kernel("T x", "T y", "x", "a + b", identity="0", name="total")
    >>> total(np.arange(5))
    array(10)
    """
    return ReductionKernel(in_params, out_params, map_expr, reduce_expr, *args, **kwargs)


def _check_parts(declaration: Declaration, **expressions: str) -> None:
    """Raise ValueError where a reduction lacks something, or has a raw output."""
    name = declaration.name
    if not declaration.outputs:
        raise ValueError(f"`{name}`: out_params must declare at least one output")
    if not declaration.inputs:
        raise ValueError(f"`{name}`: in_params must declare at least one input")
    for parameter in declaration.outputs:
        if parameter.raw:
            raise ValueError(
                f"`{name}`: output {parameter.name!r} of a reduction cannot be raw: write a type and a name"
            )
    for label, text in expressions.items():
        if not text.strip():
            raise ValueError(f"`{name}`: {label} must be an expression, got {text!r}")


def _check_reduce_type(declaration: Declaration, reduce_type: str | None, preambles: str) -> None:
    """Raise ValueError for a type without a name, or one that looks like a placeholder and is none, nor declared."""
    if reduce_type is not None and not reduce_type.strip():
        raise ValueError(
            f"`{declaration.name}`: reduce_type must be a type, such as 'float64' or one that a preamble declares, "
            f"got {reduce_type!r}: leave it out to fold in the type of the first output"
        )
    known = {parameter.ctype for parameter in declaration.parameters} | words(preambles)
    if reduce_type is not None and is_placeholder(reduce_type) and not known & {reduce_type, "include"}:
        raise ValueError(
            f"`{declaration.name}`: no parameter has the reduce_type {reduce_type!r}, and no preamble declares it"
        )


def _readings(
    outputs: Sequence[str], post_map_expr: str, identity: str | complex | None, name: str
) -> tuple[str | None, str | complex | None, str]:
    """Return post-map, identity and name, with the fifth expression taken for what it can be."""
    if not post_map_expr.strip():
        return None, identity, name
    if assigns(post_map_expr, ["a", *outputs]):
        return post_map_expr, identity, name
    if identity is None:
        return None, post_map_expr, name
    if name == _DEFAULT_NAME and re.fullmatch(r"[A-Za-z_]\w*", str(identity)):
        return None, post_map_expr, str(identity)
    raise ValueError(
        f"`{name}`: the fifth expression {post_map_expr!r} mentions neither the folded value a nor an output. Read as "
        f"post_map_expr={post_map_expr!r}, identity={identity!r}, every result would be the same; read as "
        f"identity={post_map_expr!r}, name={identity!r}, there are two names or one that cannot be. Write the ones "
        f"that are meant with their keywords"
    )


def _checked_post(
    name: str, outputs: Sequence[str], text: str | None, preambles: str, options: Sequence[str]
) -> str:
    """Return the post-map, an expression without a semicolon; ValueError where it assigns nothing."""
    if text is None:
        if len(outputs) > 1:
            raise ValueError(f"`{name}`: with {len(outputs)} outputs a post_map_expr must assign them")
        return f"{outputs[0]} = a"
    is_mentioned = assigns(text, outputs)
    if is_mentioned and may_assign(text, preambles, options, outputs):
        return text
    if is_statement(text) and assigns_by_macros(text, outputs, preambles, options):
        return text
    expression = expression_of(text)
    if is_statement(expression) and includes_others(preambles):
        return text
    if is_mentioned or is_statement(expression) or len(outputs) > 1:
        raise ValueError(
            f"`{name}`: post_map_expr {text!r} assigns none of the outputs {', '.join(outputs)}: "
            f"write {outputs[0]} = ..."
        )
    return expression


def _checked_identity(name: str, identity: Any) -> str | None:
    """Return the identity as text, also of a number; None where there is none."""
    if identity is None or isinstance(identity, str):
        return (identity or "").strip() or None
    number = identity.item() if hasattr(identity, "item") else identity
    if not isinstance(number, bool | int | float | complex):
        raise TypeError(
            f"`{name}`: identity must be CUDA C++ text or a number, got {type(identity).__name__}"
        )
    return _spelled(number)


def _spelled(number: complex) -> str:
    """Return a number of Python's in C++."""
    if isinstance(number, bool):
        return str(number).lower()
    if isinstance(number, int):
        return spelled_integer(number)
    if isinstance(number, complex):
        return f"complex<double>({_spelled(number.real)}, {_spelled(number.imag)})"
    if math.isfinite(number):
        return repr(number)
    return "NAN" if math.isnan(number) else f"{'-' if number < 0 else ''}INFINITY"


def _restore(cls: type[ReductionKernel], source: ReductionSource, reduce_dims: bool) -> ReductionKernel:
    kernel = cls.__new__(cls)
    kernel._adopt(source, reduce_dims)
    return kernel
