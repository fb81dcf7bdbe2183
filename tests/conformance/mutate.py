"""Breaks the library in many small ways, one at a time, and reports which tests notice.

Usage: mutate.py [--only NAME,...] [--area AREA,...] [--rounds N] [--trees] [--list]

The breakages stand in mutations.toml. Works on a copy of HEAD in a temporary folder: the
checkout is not touched. First the unbroken tests of the areas must pass; then, for each breakage,
the text `find`, which must be there exactly once, becomes `replace`, and the tests of its areas are
built and run. A breakage is *caught* when a test case fails, hangs or crashes, and has *survived*
when all pass.

With --trees the random trees of tests/sim are the judge instead, of the breakages of supervisors:
it shows that their model sees what it says it sees. What a tree does not do (delete a child, say)
survives there.

Prints a line for each breakage with the rows that caught it; the last line is
`N caught, N survived`. Status: 0 when none survived, 1 when one did, 2 when a breakage cannot be
applied or does not compile.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TIMEOUT = 120  # seconds for one test program: a broken library often waits for ever


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="names of breakages, separated by commas")
    parser.add_argument("--area", default="", help="only breakages of these areas, as sig,sup")
    parser.add_argument("--rounds", default="50", help="of the tests that repeat (default 50)")
    parser.add_argument("--trees", action="store_true", help="let only the random trees judge")
    parser.add_argument("--list", action="store_true", help="only print the names")
    return parser.parse_args()


def chosen(options):
    with open(os.path.join(HERE, "mutations.toml"), "rb") as file:
        breakages = tomllib.load(file)["breakage"]
    names = [each["name"] for each in breakages]
    if len(set(names)) != len(names):
        sys.exit("mutations.toml: a name is there twice")
    only = set(filter(None, options.only.split(",")))
    areas = {"sup"} if options.trees else set(filter(None, options.area.split(",")))
    if only - set(names):
        sys.exit(f"--only: unknown: {', '.join(sorted(only - set(names)))}")
    return [
        each
        for each in breakages
        if (not only or each["name"] in only) and (not areas or areas & set(each["areas"]))
    ]


class Copy:
    """A copy of HEAD in which the library is broken and tested."""

    def __init__(self, folder, rounds, trees):
        self.folder = os.path.join(folder, "copy")
        self.rounds = rounds
        self.trees = trees
        subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, self.folder], check=True)
        listed = subprocess.run(
            ["bazel", "query", "tests(//tests/conformance:all)"],
            cwd=self.folder, capture_output=True, text=True, check=True,
        ).stdout.split()
        self.targets = sorted(each for each in listed if each.endswith("_test"))

    def targets_of(self, areas):
        if self.trees:
            return ["//tests/sim:random_tree_test"]
        found = [
            target
            for target in self.targets
            if any(re.match(area + r"[a-z_]*_test$", target.split(":")[1]) for area in areas)
        ]
        if not found:
            sys.exit(f"no tests for areas {areas}")
        return found

    def path(self, breakage):
        return os.path.join(self.folder, breakage["file"])

    def bazel(self, command, targets, *flags):
        return subprocess.run(
            ["bazel", command, "--keep_going", "--jobs=2",
             "--disk_cache=" + os.path.expanduser("~/.cache/otp-bazel"),
             *flags, *targets],
            cwd=self.folder, capture_output=True, text=True,
        )

    def run(self, areas):
        """Returns (what failed, or None when it does not compile; the compiler's words)."""
        targets = self.targets_of(areas)
        built = self.bazel("build", targets)
        if built.returncode != 0:
            return None, built.stderr[-2000:]
        done = self.bazel("test", targets, f"--test_timeout={TIMEOUT}",
                          f"--test_env=OTP_ROUNDS={self.rounds}", "--test_output=all")
        pattern = r"OTP_SEED=\d+" if self.trees else r"^ROW (\S+) FAIL"
        failed = sorted(set(re.findall(pattern, done.stdout, re.MULTILINE)))
        if done.returncode != 0 and not failed:
            failed = [f"{target} (crash or hang)" for target in targets
                      if re.search(re.escape(target) + r"\s+.*(FAILED|TIMEOUT)", done.stdout)]
            failed = failed or ["a crash or hang"]
        return failed, ""


def try_one(copy, breakage):
    """Breaks the copy, tests it and mends it; prints the outcome. Returns its first word."""
    started = time.monotonic()
    with open(copy.path(breakage), encoding="utf-8") as file:
        text = file.read()
    name = breakage["name"]
    if text.count(breakage["find"]) != 1:
        print(f"UNUSABLE {name}: `find` is not exactly once in {breakage['file']}")
        return "UNUSABLE"
    with open(copy.path(breakage), "w", encoding="utf-8") as file:
        file.write(text.replace(breakage["find"], breakage["replace"]))
    failed, words = copy.run(breakage["areas"])
    with open(copy.path(breakage), "w", encoding="utf-8") as file:
        file.write(text)
    took = f"{time.monotonic() - started:.0f} s"
    if failed is None:
        print(f"UNUSABLE {name}: does not compile\n{words}")
        return "UNUSABLE"
    if failed:
        print(f"caught   {name}: by {', '.join(failed)} ({took})")
        return "caught"
    print(f"SURVIVED {name}: {breakage['file']} ({took})")
    return "SURVIVED"


def main():
    options = arguments()
    breakages = chosen(options)
    if options.list:
        print("\n".join(each["name"] for each in breakages))
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(folder, options.rounds, options.trees)
        failed, words = copy.run(sorted({area for each in breakages for area in each["areas"]}))
        if failed != []:
            print(f"the unbroken library does not build or pass: {failed} {words}")
            return 2
        for each in breakages:
            outcomes.append(try_one(copy, each))
            sys.stdout.flush()
        subprocess.run(["bazel", "shutdown"], cwd=copy.folder, capture_output=True, check=False)
    print(f"{outcomes.count('caught')} caught, {outcomes.count('SURVIVED')} survived")
    return 2 if "UNUSABLE" in outcomes else 1 if "SURVIVED" in outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
