#!/usr/bin/env python3
"""Writes compile_commands.json at the root, for clangd and other tools: bazel/compile_commands.py.

Asks Bazel for its compile actions (nothing is built) and writes one entry for each source of this
checkout.
"""

import json
import os
import subprocess
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def compile_actions():
    query = 'mnemonic("CppCompile", //...)'
    out = subprocess.run(
        ["bazel", "aquery", "--output=jsonproto", "--ui_event_filters=-info", query],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(out.stdout).get("actions", [])


def reading_only(arguments):
    """Drops what names files that only a build makes: layering_check's module maps, outputs."""
    kept = []
    rest = iter(arguments)
    for argument in rest:
        if argument in ("-o", "-MF"):
            next(rest)
        elif argument != "-MD" and not argument.startswith(("-fmodule", "-Wprivate-header")):
            kept.append(argument)
    return kept


def entry(action):
    arguments = action["arguments"]
    source = arguments[arguments.index("-c") + 1]
    return {"directory": _ROOT, "file": source, "arguments": reading_only(arguments)}


def main():
    own = {
        item["file"]: item
        for item in map(entry, compile_actions())
        if not item["file"].startswith(("external/", "bazel-"))
    }
    path = os.path.join(_ROOT, "compile_commands.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump([own[name] for name in sorted(own)], out, indent=1)
        out.write("\n")
    print(f"{path}: {len(own)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
