"""What elementwise kernels and reductions have in common: parameters that are declared in text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from gridstride import _array_pipeline, _native
from gridstride._arguments.keywords import unknown_keyword
from gridstride._arguments.parameters import Declaration
from gridstride._source.elementwise import ElementwiseSource

if TYPE_CHECKING:
    from gridstride._source.reduction import ReductionSource


class _SetByInit:
    """Stand for an attribute that `__init__` sets, which comes before this one then."""

    def __get__(self, kernel: object, owner: type) -> Any:
        if kernel is None:
            return self
        kind = type(kernel).__name__
        raise AttributeError(
            f"this {kind} is no kernel yet: make it as {kind}(...); an __init__ of its own has to call super().__init__"
        )


class DeclaredKernel(_native.ArrayLauncher):
    """Show the parameters that a kernel declares, and keep what is known of its calls."""

    name: str
    reduce_dims: bool
    _source: ElementwiseSource | ReductionSource
    _known: _array_pipeline.Known
    _form: int
    if not TYPE_CHECKING:
        name = _source = _SetByInit()

    def _adopt(self, source: ElementwiseSource | ReductionSource, reduce_dims: bool) -> None:
        """Become the kernel of a source, of whose calls nothing is known yet."""
        self.name = source.declaration.name
        self.reduce_dims = bool(reduce_dims)
        self._source = source
        self._known = {}
        self._form = _native.ONE if self.nout == 1 else _native.TUPLE
        self.__signature__ = _call_signature(type(self)._launch)

    def _attributes(self) -> object:
        """Return pickle's state: the attributes that others set, which copies have too; None where there are none."""
        own = type(self).__new__(type(self))
        own._adopt(self._source, self.reduce_dims)
        state = object.__getstate__(self)  # with what is in slots of subclasses
        slots = state[1] if isinstance(state, tuple) else None
        others = {name: value for name, value in vars(self).items() if name not in vars(own)} or None
        return (others, slots) if slots else others

    @property
    def in_params(self) -> tuple[Any, ...]:
        """The inputs, as `ParameterInfo`."""
        return self._declaration.inputs

    @property
    def out_params(self) -> tuple[Any, ...]:
        """The outputs, as `ParameterInfo`."""
        return self._declaration.outputs

    @property
    def nin(self) -> int:
        """Number of inputs."""
        return self._declaration.nin

    @property
    def nout(self) -> int:
        """Number of outputs."""
        return self._declaration.nout

    @property
    def nargs(self) -> int:
        """Number of inputs and outputs."""
        return self._declaration.nargs

    @property
    def params(self) -> tuple[Any, ...]:
        """The inputs and the outputs, as `ParameterInfo`."""
        return self._declaration.parameters

    @property
    def preamble(self) -> str:
        """The text before the kernel."""
        return self._source.preamble

    @property
    def type_preamble(self) -> str:
        """The text before that: types that parameters have."""
        return self._source.type_preamble

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the compiler."""
        return self._source.options

    @property
    def cached_codes(self) -> dict[tuple[Any, ...], str]:
        """The texts of earlier calls by the dtypes of their inputs, to look at; of several layouts one."""
        known = [
            (call, prepared) for call in [*self._known.values()] for prepared in [*call.prepared.values()]
        ]
        return {
            tuple(role.stored for role in call.roles[: self.nin]): prepared.text for call, prepared in known
        }

    @property
    def cached_code(self) -> str:
        """The text of an earlier call, to look at; ValueError where there was none."""
        for text in self.cached_codes.values():
            return text
        raise ValueError(f"`{self.name}` has no text yet: the dtypes of a call decide it")

    @property
    def __name__(self) -> str:
        return self.name

    def _refuse(self, keywords: Iterable[str]) -> None:
        """Raise TypeError for keywords that calls do not have."""
        known = [
            parameter.name
            for parameter in self.__signature__.parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        for keyword in keywords:
            raise unknown_keyword(self.name, keyword, known)

    @property
    def _declaration(self) -> Declaration:
        return self._source.declaration

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


@cache
def _call_signature(launch: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a call, which is that of the pipeline's function."""
    signature = inspect.signature(launch.__get__(object()))
    named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    return signature.replace(parameters=named, return_annotation=Any)
