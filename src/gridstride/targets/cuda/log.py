"""Make a compiler's messages speak of what the user wrote."""

from __future__ import annotations

import re

from gridstride._syntax.quoting import with_caret

#: Where requested names are evaluated: NVRTC's own file for them, and ours for nvcc.
_NAME_FILE = re.compile(r"(?:__nv_name_map|name expressions)\(\d+\): ")
#: What stands around a requested kernel, variable or constant there.
_WRAPPINGS = tuple(
    re.compile(rf"( *)(?:{start})(.*?)(?:{end})")
    for start, end in (
        (r"#pragma nv_mangled_name gridstride_signature<gridstride_arguments_t<decltype\(&", r"\)>>"),
        (r"#pragma nv_mangled_name gridstride_constant<\(long long\)\(", r"\)>"),
        (r"#pragma nv_mangled_name &?", "$"),
        (
            r"template \S+ char gridstride_signature_at<\d+, gridstride_arguments_t<decltype\(&",
            r"\)>>;",
        ),
        (r"template \S+ char gridstride_constant_at<\d+, \(long long\)\(", r"\)>;"),
        (r"template \S+ char gridstride_entity_at<\d+, decltype\(&", r"\), .*"),
    )
)
_REMARK = re.compile(r"^Remark: The warnings can be suppressed.*$", re.MULTILINE)
#: Says a second time what the block before it said.
_ECHO = "Error in parsing name expression for lowered name lookup"
_COUNT = re.compile(r"\d+ errors? detected in the compilation of ")
_SHOWN_COLUMNS = 400
_PTX_WORD = re.compile(r"^ptxas .*?\berror\s*:.*?'([^']+)'", re.MULTILINE)
_ERROR = re.compile(r"\b(?:fatal |catastrophic )?error(?: #\S+)?:")


def readable_log(log: str) -> str:
    """Return a log in which the lines that ask for names show only the names."""
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", _REMARK.sub("", log)) if block.strip()]
    blocks = [_readable_block(block) for block in blocks if _ECHO not in block and not _COUNT.match(block)]
    # An error in a requested name repeats wherever the name is used, and entails errors in our traits.
    telling = [block for block in dict.fromkeys(blocks) if "gridstride_a" not in block]
    return "\n\n".join(telling or blocks)


def first_error(log: str) -> str:
    """Return the first error with its source line and caret, or the whole log if there is none."""
    shown = next((block for block in log.split("\n\n") if _ERROR.search(block)), log)
    lines: list[str] = []
    for line in shown.split("\n"):
        if line.strip() == "^" and lines:
            lines[-1:] = with_caret(lines[-1], line.index("^"))
        else:
            lines.append(line)
    return "\n".join(
        line if len(line) <= _SHOWN_COLUMNS else f"{line[:_SHOWN_COLUMNS]} ..." for line in lines
    )


def place_of_ptx(log: str, text: str, path: str) -> str:
    """Return where a text has what the assembler of PTX complains of, which counts lines of its own; else ""."""
    lines = text.split("\n") if "asm" in text else []
    for word in _PTX_WORD.findall(log):
        for number, line in enumerate(lines, 1):
            found = re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", line)
            if found:
                column = len(line[: found.start()].encode())
                return "\n".join(
                    [f"{path}({number}): error: in inline PTX: {word}", *with_caret(line, column)]
                )
    return ""


def _readable_block(block: str) -> str:
    message, *quoted = block.split("\n")
    if not _NAME_FILE.match(message) or not quoted:
        return block
    message = _NAME_FILE.sub("name expression: ", message)
    for wrapping in _WRAPPINGS:
        found = wrapping.match(quoted[0])
        if found:
            removed = found.start(2) - len(found[1])
            quoted = [found[1] + found[2], *(_moved_left(line, removed) for line in quoted[1:])]
            break
    return "\n".join([message, *quoted])


def _moved_left(line: str, columns: int) -> str:
    return line[min(columns, len(line) - len(line.lstrip())) :]
