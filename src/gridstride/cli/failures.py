"""One way for commands to fail: a message on the error stream, no traceback, and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable

from gridstride.errors import GridstrideError, SymbolNotFound

#: Exit codes: the world failed; the call was wrong; the user pressed Ctrl-C.
FAILED, WRONG, INTERRUPTED = 1, 2, 130


def report(command: str, action: Callable[[], int]) -> int:
    """Return an action's exit code, or that of its failure after saying what failed."""
    try:
        return action()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the whole program ends quietly
        raise
    except (SymbolNotFound, TypeError, ValueError, OverflowError, NotImplementedError) as error:
        return _failed(command, error, WRONG)
    except (GridstrideError, OSError, MemoryError, ImportError) as error:
        return _failed(command, error, FAILED)


def _failed(command: str, error: Exception, code: int) -> int:
    sys.stdout.flush()
    print(f"gridstride {command}: {error}", file=sys.stderr)
    return code
