"""The rules of the tree. Each takes a File and yields (line, message); RULES lists them."""

import dataclasses
import functools
import os
import re

import cpp

LINE_MAX = 100
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
README_LINES_MAX = 40


@dataclasses.dataclass
class File:
    """One text file of the tree. `path` is relative to the root, with `/`."""

    path: str
    text: str

    @property
    def name(self):
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_header(self):
        return self.path.endswith(".h")

    @property
    def is_cpp(self):
        return self.path.endswith((".h", ".cc"))

    @property
    def is_test(self):
        return (
            self.path.startswith("tests/")
            or self.name.endswith("_test.cc")
            or re.match(r"(otp|apps)/.*/testing/", self.path) is not None
        )

    @property
    def is_prose(self):
        return self.path.endswith(".md") or self.name == "LICENSE"

    @functools.cached_property
    def code(self):
        return cpp.code_only(self.text)

    @functools.cached_property
    def lines(self):
        return cpp.Lines(self.text)

    def under(self, *folders):
        return self.path.startswith(tuple(folder + "/" for folder in folders))


def matches(file, text, pattern, message):
    """Yields a finding for each match of `pattern` in `text`, a variant of the file's own text."""
    for match in re.finditer(pattern, text):
        yield file.lines.of(match.start()), message.format(*[match.group()] + list(match.groups()))


# --- Form -----------------------------------------------------------------------------------------


def line_length(file):
    """Lines end within 100 columns."""
    if file.is_prose:
        return
    for number, line in enumerate(file.text.split("\n"), 1):
        if len(line) > LINE_MAX and not re.search(r"https?://\S{60,}", line):
            yield number, f"{len(line)} columns, at most {LINE_MAX}"


def plain_text(file):
    """Text is plain: no tabs, no blanks at line ends, one newline at the end."""
    if file.name == "LICENSE":
        return
    yield from matches(file, file.text, r"\r", "a carriage return")
    yield from matches(file, file.text, r"[ \t]+(?=\n)", "blanks at the end of the line")
    if not file.path.endswith(".md"):
        yield from matches(file, file.text, r"\t", "a tab")
    if file.text and not re.search(r"[^\n]\n\Z", file.text):
        yield file.text.count("\n") + 1, "expected exactly one newline at the end"


def function_length(file):
    """Functions have at most 70 lines."""
    if not file.is_cpp:
        return
    for start, end in cpp.functions(file.code):
        length = file.lines.of(end) - file.lines.of(start) + 1
        if length > FUNCTION_LINES_MAX:
            message = f"a function of {length} lines, at most {FUNCTION_LINES_MAX}"
            yield file.lines.of(start), message


def file_length(file):
    """Files have at most 600 lines, unless their first comment says `long because`."""
    length = file.text.count("\n")
    if not file.is_prose and length > FILE_LINES_MAX:
        if "long because" not in " ".join(file.text.split("\n")[:25]).lower():
            yield 1, f"{length} lines, at most {FILE_LINES_MAX} (or say `long because` at the top)"


def readme_length(file):
    """A folder's README has at most 40 lines."""
    if file.name == "README.md" and "/" in file.path and not file.under("docs"):
        length = file.text.count("\n")
        if length > README_LINES_MAX:
            yield 1, f"{length} lines, at most {README_LINES_MAX}"


def header_guard(file):
    """Headers say #pragma once, and nothing else guards them."""
    if file.is_header:
        if not re.search(r"^#pragma once$", file.text, re.M):
            yield 1, "expected #pragma once"
        yield from matches(file, file.code, r"#ifndef \w+_H_?\b", "an include guard")


def markers(file):
    """No note of unfinished work stays in the tree."""
    if not file.under("tests/tidy"):
        yield from matches(
            file, file.text, r"\b(TODO|FIXME|XXX|HACK)\b", "`{0}`: finish it or write an issue"
        )


def machine_paths(file):
    """Nothing names a place of the machine it was written on."""
    if not file.under("tests/tidy"):
        yield from matches(
            file,
            file.text,
            r"(?<![\w.$}*])/(?:work|home|root)/\w[\w./-]*",
            "`{0}` is a path of one machine",
        )


# --- Includes -------------------------------------------------------------------------------------

# (what is included, who may, why)
_INCLUDES = [
    (
        r"<boost/(?:asio|beast)\b",
        ("otp/io", "apps", "tests", "bench"),
        "Asio belongs to otp/io",
    ),
    (r"<yaml-cpp/", ("otp/config",), "yaml-cpp belongs to otp/config"),
    (r"<sqlite3\.h>", ("apps",), "SQLite belongs to applications"),
    (r"[<\"]catch2/", ("tests", "otp/testing", "bazel"), "Catch2 belongs to tests"),
    (r'"otp/testing/', ("tests", "otp/testing"), "only tests may"),
    (r"<boost/json", ("otp/base", "apps", "tests"), "JSON is otp/base/json.h"),
    (r"<(?:bits/stdc\+\+\.h|regex|iostream|format|expected)>", (), "this header is not used here"),
]

# A folder of these may include itself and the ones before it.
_LAYERS = ["base", "async", "runtime", "behaviour", "supervision"]


def includes(file):
    """A library is included only in the folder that wraps it."""
    if not file.is_cpp:
        return
    for pattern, folders, why in _INCLUDES:
        if file.under(*folders) or ("tests" in folders and file.is_test):
            continue
        yield from matches(file, file.text, r"(?m)^#include " + pattern + ".*", "`{0}`: " + why)
    if file.is_header and file.under("otp") and "/internal/" not in file.path:
        yield from matches(
            file, file.text, r'(?m)^#include [<"]absl/.*', "`{0}`: no Abseil in a public header"
        )
    yield from matches(file, file.text, r'(?m)^#include "\.\./.*', "`{0}`: name it from the root")


def layers(file):
    """A layer includes only the layers above it."""
    match = re.match(r"otp/(\w+)/", file.path)
    if not file.is_cpp or not match or match.group(1) not in _LAYERS or file.is_test:
        return
    allowed = "|".join(_LAYERS[: _LAYERS.index(match.group(1)) + 1])
    yield from matches(
        file,
        file.text,
        rf'(?m)^#include "otp/(?!(?:{allowed})/)\w+/.*',
        "`{0}`: otp/" + match.group(1) + " must not know it",
    )


# --- Calls ----------------------------------------------------------------------------------------

_BANNED = [
    (r"(?:std::)?\batomic_thread_fence\b", "TSan does not see fences"),
    (r"\bmemory_order_consume\b", "use acquire"),
    (r"(?<![\w.>:])(?:::|std::)?s?rand\s*\(\s*\)?", "randomness comes from the System"),
    (r"(?<![\w.>:])(?:::|std::)?system\s*\(\s*\"", "start programs through otp/io"),
    (r"(?<![\w.>:])(?:::|std::)?popen\s*\(", "start programs through otp/io"),
    (r"(?<![\w.>])(?:std::)?\b(?:strcpy|strcat|sprintf|vsprintf|strtok|gets)\s*\(", "not bounded"),
    (r"(?<![\w.>])(?:std::)?\b(?:localtime|gmtime|asctime|ctime)\s*\(", "shared state"),
    (r"(?<![\w.>])(?:std::)?\basync\s*\(\s*std::launch", "starts a thread: use a Task"),
]

_SLEEPS = r"(?:\bsleep_for\b|\bsleep_until\b|(?<![\w.>:])(?:::)?(?:u|nano)?sleep)\s*\("


def banned_calls(file):
    """Calls that are unsafe, global or not deterministic are not made."""
    if not file.is_cpp:
        return
    for pattern, why in _BANNED:
        yield from matches(file, file.code, pattern, "`{0}`: " + why.replace("{", "{{"))
    # Literals are blanked in `code`, so formats are looked for in the text itself.
    yield from matches(file, file.text, r'printf\s*\([^;\n]*"[^"\n]*%n', "%n in a format")
    if file.is_header and not file.is_test:
        yield from matches(file, file.code, r"(?m)^using namespace\b.*", "`{0}` in a header")


def sleeps(file):
    """Tests wait for what they want to see, never for time."""
    if file.is_cpp and file.is_test:
        yield from matches(file, file.code, _SLEEPS, "a sleep in a test: wait for the event itself")


# --- Coroutines -----------------------------------------------------------------------------------


def awaits(file):
    """No braced message and no lambda inside a co_await expression: g++ 12 destroys them twice."""
    if not file.is_cpp or file.is_test or file.under("bench"):
        return
    for offset, operand in cpp.awaited(file.code):
        line = file.lines.of(offset)
        message = re.search(r"\b([A-Z]\w*)\s*\{(?!\s*\})", operand)
        if message:
            name = message.group(1)
            yield line, f"`{name}{{...}}` inside co_await: build it in a client function"
        if re.search(r"[(,=]\s*\[[^\]\n]*\]\s*[({]", operand):
            yield line, "a lambda inside co_await: name it before"


def coroutine_lambdas(file):
    """A lambda that is a coroutine captures nothing; co_await is not taken apart by auto [a, b]."""
    if not file.is_cpp or file.is_test:
        return
    yield from matches(
        file,
        file.code,
        r"\[[^\[\]\n]+\]\s*\([^()]*\)\s*(?:mutable\s*)?->\s*(?:otp::)?Async<",
        "a coroutine lambda with captures: they die with the lambda; pass arguments",
    )
    yield from matches(
        file, file.code, r"auto&?&?\s*\[[^\]]*\]\s*=\s*co_await", "`{0}`: name the result first"
    )


# --- Names ----------------------------------------------------------------------------------------

_CALLBACKS = (
    "handle_call",
    "handle_cast",
    "handle_info",
    "handle_continue",
    "terminate",
    "format_status",
    "code_change",
)
_WORDS = {"terminated", "terminates", "terminating"}


def distance(a, b):
    """Returns the edit distance of two words: insertions, deletions, changes, swaps."""
    rows = [list(range(len(b) + 1))]
    for i, left in enumerate(a, 1):
        row = [i]
        for j, right in enumerate(b, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def callback_names(file):
    """No function is nearly, but not quite, named as a callback: it would never be called."""
    if not file.is_cpp:
        return
    for match in re.finditer(r"(?<![.>\w])([a-z]\w{6,16})\s*\(", file.code):
        word = match.group(1)
        if word in _CALLBACKS or word in _WORDS:
            continue
        near = [name for name in _CALLBACKS if distance(word, name) <= (2 if len(name) > 9 else 1)]
        if near:
            line = file.lines.of(match.start())
            yield line, f"`{word}` is nearly `{near[0]}`: which is meant?"


def test_names(file):
    """A test is named by a behaviour in words and carries a tag."""
    if not file.is_cpp:
        return
    for match in re.finditer(r'(?m)^TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', file.text):
        line = file.lines.of(match.start())
        if " " not in match.group(1):
            yield line, f'"{match.group(1)}": expected a behaviour in words'
        if not re.match(r'(?:\s*"(?:[^"\\]|\\.)*")*\s*,\s*"\[', file.text[match.end() :]):
            yield line, f'"{match.group(1)}": expected a tag, "[area]"'


RULES = [
    line_length,
    plain_text,
    function_length,
    file_length,
    readme_length,
    header_guard,
    markers,
    machine_paths,
    includes,
    layers,
    banned_calls,
    sleeps,
    awaits,
    coroutine_lambdas,
    callback_names,
    test_names,
]


# --- The tree as a whole --------------------------------------------------------------------------


def dead_files(files):
    """Every source belongs to a target: a BUILD file of its folder or above names it."""
    builds = {os.path.dirname(file.path): file.text for file in files if file.name == "BUILD"}
    for file in files:
        if not file.is_cpp or not file.under("otp", "apps", "tests", "bench", "bazel"):
            continue
        folder = os.path.dirname(file.path)
        while folder and folder not in builds:
            folder = os.path.dirname(folder)
        relative = os.path.relpath(file.path, folder or ".")
        build = builds.get(folder, "")
        names = (f'"{relative}"', f'"{os.path.splitext(relative)[0]}"')
        if not any(name in build for name in names) and "glob(" not in build:
            yield file.path, 1, "no BUILD file names it"


def readmes(files):
    """Each part of the library and each application says in a README what it is."""
    paths = {file.path for file in files}
    parts = {
        "/".join(file.path.split("/")[:2])
        for file in files
        if file.under("otp", "apps") and file.path.count("/") > 1
    }
    for part in sorted(parts):
        if part + "/README.md" not in paths:
            yield part + "/README.md", 1, "missing"


def own_header_first(files):
    """A source includes its own header before all others: so that header compiles alone."""
    headers = {file.path for file in files if file.is_header}
    for file in files:
        header = os.path.splitext(file.path)[0] + ".h"
        if not file.path.endswith(".cc") or header not in headers:
            continue
        first = re.search(r'^#include\s+["<](.*)[">]', file.text, re.MULTILINE)
        if first is None or first.group(1) != header:
            line = file.lines.of(first.start()) if first else 1
            yield file.path, line, f"{header} is not its first include"


TREE_RULES = [dead_files, readmes, own_header_first]
