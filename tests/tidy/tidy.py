"""Lints the whole tree: tidy.py [ROOT]. Prints `path:line: message [rule]` for each finding.

Under Bazel it finds the tree through its own place in it, and reports each rule as one test case.
"""

import os
import sys
import xml.sax.saxutils

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import rules  # noqa: E402

_SUFFIXES = (".h", ".cc", ".py", ".sh", ".bzl", ".md", ".yaml", ".bazelrc", ".clang-format")
_NAMES = {"BUILD", "WORKSPACE", "LICENSE", "test", "run", ".bazelrc", ".gitignore"}
_SKIPPED = {".git", ".cache", ".clangd", "__pycache__"}


# Files that are wrong on purpose.
_WRONG = os.path.join("tests", "data")


def read_tree(root):
    files = []
    for folder, folders, names in os.walk(root):
        if os.path.relpath(folder, root) == _WRONG:
            continue
        folders[:] = sorted(
            name for name in folders if name not in _SKIPPED and not name.startswith("bazel-")
        )
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not (name in _NAMES or name.endswith(_SUFFIXES)):
                continue
            with open(path, encoding="utf-8", newline="") as stream:
                files.append(rules.File(os.path.relpath(path, root), stream.read()))
    return files


def check(files):
    """Returns {rule: [finding]} with each finding as a line of text."""
    found = {}
    for rule in rules.RULES:
        found[rule] = [
            f"{file.path}:{line}: {message}" for file in files for line, message in rule(file)
        ]
    for rule in rules.TREE_RULES:
        found[rule] = [f"{path}:{line}: {message}" for path, line, message in rule(files)]
    return found


def write_xml(path, found):
    failures = sum(1 for findings in found.values() if findings)
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<testsuite name="tidy" tests="{len(found)}" failures="{failures}">\n')
        for rule, findings in found.items():
            name = xml.sax.saxutils.quoteattr(f"tidy: {rule.__name__}: {rule.__doc__.strip()}")
            failure = f'<failure message="{len(findings)} findings"/>' if findings else ""
            out.write(f"<testcase name={name}>{failure}</testcase>\n")
        out.write("</testsuite>\n")


def main():
    here = os.path.dirname(os.path.realpath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "..")
    files = read_tree(os.path.realpath(root))
    if not any(file.path == "WORKSPACE" for file in files):
        print(f"{root}: not the root of the project")
        return 2
    found = check(files)
    for rule, findings in found.items():
        for finding in findings:
            print(f"{finding} [{rule.__name__}]")
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], found)
    count = sum(len(findings) for findings in found.values())
    print(f"{len(files)} files, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
