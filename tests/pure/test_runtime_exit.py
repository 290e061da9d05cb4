import subprocess
import sys

import pytest

PROGRAM = """
import sys
from gridstride import cuda
from gridstride.targets import registry
def deinitialized(*handles, ended=sys.is_finalizing):
    if ended():
        raise RuntimeError("the driver is gone")
target = registry.default()
target.destroy_stream = target.destroy_event = target.free = deinitialized
stream, event, pointer = cuda.Stream(), cuda.Event(), cuda.alloc(64)
current = cuda.Stream().use()
cycle = [cuda.Stream(), cuda.Event(), cuda.alloc(8)]
cycle.append(cycle)
{end}
"""


@pytest.mark.parametrize(
    ("end", "code", "complaint"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise SystemExit", 0, ""),
        ("def f(x):\n    raise KeyError(1)\nf((stream, event, pointer))", 1, "KeyError: 1\n"),
    ],
    ids=["end", "exit", "quiet exit", "traceback"],
)
def test_p48_objects_that_outlive_the_program_go_quietly(end, code, complaint):
    command = [sys.executable, "-X", "dev", "-c", PROGRAM.format(end=end)]
    ended = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env={"GRIDSTRIDE_TARGET": "null", "PYTHONPATH": ":".join(sys.path)},
    )
    assert ended.returncode == code
    assert ended.stderr.endswith(complaint)
    if not complaint:
        assert ended.stderr == ""
    assert "gridstride" not in ended.stderr
