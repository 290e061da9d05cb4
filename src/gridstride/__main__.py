"""Run the command line as ``python -m gridstride``."""

from __future__ import annotations

import sys

from gridstride.cli import main

if __name__ == "__main__":
    sys.exit(main())
