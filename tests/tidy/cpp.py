"""Just enough of C++ for the rules: text without comments and literals, and where functions are."""

import bisect
import re

_TOKEN = re.compile(
    r"""
    (?P<line>//[^\n]*)
  | (?P<block>/\*.*?\*/)
  | (?P<raw>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<char>(?<![0-9A-Fa-f])'(?:[^'\\\n]|\\.)+')
    """,
    re.VERBOSE | re.DOTALL,
)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def code_only(text):
    """Returns `text` with comments and the insides of literals blanked; positions stay."""

    def replace(match):
        whole = match.group()
        if match.lastgroup in ("line", "block"):
            return _blank(whole)
        if whole.startswith("R"):
            return '""' + _blank(whole[2:])
        return whole[0] + _blank(whole[1:-1]) + whole[-1]

    return _TOKEN.sub(replace, text)


class Lines:
    """Turns offsets of a text into line numbers, from 1."""

    def __init__(self, text):
        self._starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def of(self, offset):
        return bisect.bisect_right(self._starts, offset)


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?!.*[)=]\s*$)", re.DOTALL)


def functions(code):
    """Yields (first offset, last offset) of each function's body, lambdas inside it included.

    `code` comes from code_only(). A body is a block that opens in a namespace or a class and is
    neither of them, nor an initialiser after `=`.
    """
    code = _DIRECTIVE.sub(lambda match: _blank(match.group()), code)
    stack = []  # of (offset, "scope" | "function" | "other")
    head = 0  # where the text that introduces the next block starts
    for match in re.finditer(r"[{};]", code):
        offset, mark = match.start(), match.group()
        inside = stack[-1][1] if stack else "scope"
        if mark == "{":
            introduction = code[head:offset]
            if inside != "scope":
                kind = "other"
            elif _SCOPE.search(introduction):
                kind = "scope"
            else:
                kind = "other" if introduction.rstrip().endswith("=") else "function"
            stack.append((offset, kind))
        elif mark == "}" and stack:
            start, kind = stack.pop()
            if kind == "function":
                yield start, offset
        head = offset + 1


def awaited(code):
    """Yields (offset, operand) of each co_await; a `;`, `,` or closing bracket ends the operand."""
    for match in re.finditer(r"(?<!operator )\bco_await\b", code):
        depth, end = 0, match.end()
        while end < len(code):
            mark = code[end]
            if mark in "([{":
                depth += 1
            elif mark in ")]}":
                depth -= 1
            if depth < 0 or (depth == 0 and mark in ";,"):
                break
            end += 1
        yield match.start(), code[match.end() : end]
