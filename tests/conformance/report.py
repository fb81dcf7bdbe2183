"""Says which rows of the contract held in a run, and sees that docs/conformance.md says the same.

Usage: report.py [--write] [--failures FILE] EVENTS.json...

EVENTS are files of --build_event_json_file, one for each build, named after it: default.json,
asan.json, tsan.json. The ROW lines come from the logs of their tests, the names of the test cases
from the sources. A row of priority P0 that did not pass, and any other that neither passed nor has
a reason in deviations.tsv, is a failure; so is a docs/conformance.md that is out of date. --write
writes that file instead; `./test conformance` does it. Failures go to FILE, a line each, or else
to the output. Exit status: 0 without failures.
"""

import argparse
import json
import os
import re
import sys
import urllib.parse

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCUMENT = "docs/conformance.md"
ROW = re.compile(r"^ROW ([A-Z]{2,4}-\d{3}) (pass|FAIL)$", re.M)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def contract_of(text):
    """Returns [(area title, [(row, priority)])] of contract.md."""
    areas = []
    for line in text.split("\n"):
        if title := re.match(r"## ([A-Z]{2,4} - .*)", line):
            areas.append((title[1], []))
        elif row := re.match(r"\| ([A-Z]{2,4}-\d{3}) \| (P[012]) \|", line):
            areas[-1][1].append((row[1], row[2]))
    return areas


def deviations_of(text):
    """Returns {row: reason}."""
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    return dict(line.split("\t", 1) for line in lines)


def rows_in(name):
    """Splits a test case's name into the ids at its front and the rest."""
    words = name.split(" ")
    count = 0
    while count < len(words) and re.fullmatch(r"[A-Z]{2,4}-\d{3}", words[count]):
        count += 1
    return words[:count], " ".join(words[count:])


def cases_of(source):
    """Returns the names of the test cases in a C++ source."""
    literal = r'"((?:[^"\\]|\\.)*)"'
    for case in re.finditer(rf"\bTEST_CASE\(\s*({literal}(?:\s*{literal})*)", source):
        yield "".join(part[1] for part in re.finditer(literal, case[1]))


def python_cases_of(source):
    """Yields the same of a Python source, whose functions are marked: @row("APP-010")."""
    for row, name in re.findall(r'@row\("([A-Z]{2,4}-\d{3})"\)\s+def test_(\w+)', source):
        yield row + " " + name.replace("_", " ")


def tests_of(folder):
    """Returns {row: [(file, what the test says)]} of the sources in `folder`."""
    tests = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(("_test.cc", "_test.py")):
            continue
        cases = cases_of if file.endswith(".cc") else python_cases_of
        for name in cases(read(folder, file)):
            rows, words = rows_in(name)
            for row in rows:
                tests.setdefault(row, []).append((file, words))
    return tests


def logs_of(events):
    """Yields the text of each test.log that the events name; of several attempts the last."""
    paths = {}
    for line in events.split("\n"):
        event = json.loads(line) if line else {}
        id = event.get("id", {}).get("testResult")
        for output in event.get("testResult", {}).get("testActionOutput", []):
            if output["name"] == "test.log":
                path = urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
                paths[(id["label"], id.get("run"), id.get("shard"))] = path
    for path in paths.values():
        with open(path, encoding="utf-8", errors="replace") as log:
            yield log.read()


def results_of(logs):
    """Returns {row: "pass" or "FAIL"}: a row fails if one of its test cases does."""
    results = {}
    for log in logs:
        for row, result in ROW.findall(log):
            if results.get(row) != "FAIL":
                results[row] = result
    return results


def failures_of(areas, results, deviations):
    """Returns a line for each row that should have passed and did not."""
    failures = []
    known = {row for _, rows in areas for row, _ in rows}
    for row in sorted(set(deviations) - known):
        failures.append(f"{row}: has a reason in deviations.tsv and is no row of the contract")
    for build in results:
        for row in sorted(set(results[build]) - known):
            failures.append(f"{row}: a test names it and it is no row of the contract")
    for row, priority in [each for _, rows in areas for each in rows]:
        passed = [build for build in results if results[build].get(row) == "pass"]
        failed = [build for build in results if results[build].get(row) == "FAIL"]
        if failed:
            failures.append(f"{row} ({priority}): failed in {', '.join(failed)}")
        elif not passed and (priority == "P0" or row not in deviations):
            failures.append(f"{row} ({priority}): no test passed, and deviations.tsv has no reason")
    return failures


def document_of(areas, tests, results, deviations):
    """Returns the text of docs/conformance.md."""
    rows = [row for _, each in areas for row, _ in each]
    passed = [row for row in rows if any(results[b].get(row) == "pass" for b in results)]
    text = [
        "# Conformance: OTP's semantics, row by row",
        "",
        "Written by `./test conformance` from what the tests said; do not edit. The rows are in",
        "[tests/conformance/contract.md](../tests/conformance/contract.md), the tests beside it.",
        "Rows about order and races passed under 1,000 seeds in the Simulator and in 1,000 rounds",
        "on two cores, in each build.",
        "",
        f"{len(passed)} of {len(rows)} rows have a test that passed. What differs from a row, or",
        "why it has no test, stands at the end of its area.",
    ]
    for title, each in areas:
        text += ["", f"## {title}", ""]
        text += [f"| Row | Pr | Test | {' | '.join(results)} |"]
        text += ["| --- | --- | --- |" + " --- |" * len(results)]
        for row, priority in each:
            where = "; ".join(f"`{file}`: {words}" for file, words in tests.get(row, []))
            said = " | ".join(results[build].get(row, "-") for build in results)
            text.append(f"| {row} | {priority} | {where.replace('|', '/') or '-'} | {said} |")
        notes = [f"- {row}: {deviations[row]}" for row, _ in each if row in deviations]
        text += ["", *notes] if notes else []
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--failures")
    parser.add_argument("events", nargs="+")
    options = parser.parse_args()
    builds = {os.path.splitext(os.path.basename(path))[0]: path for path in options.events}
    order = sorted(builds, key=lambda name: (name != "default", name))
    results = {name: results_of(logs_of(read(builds[name]))) for name in order}
    areas = contract_of(read(HERE, "contract.md"))
    deviations = deviations_of(read(HERE, "deviations.tsv"))
    for row in [row for _, rows in areas for row, _ in rows]:
        said = {results[build][row] for build in results if row in results[build]}
        if said:
            print(f"ROW {row} {'FAIL' if 'FAIL' in said else 'pass'}")
    failures = failures_of(areas, results, deviations)
    text = document_of(areas, tests_of(HERE), results, deviations)
    path = os.path.join(ROOT, DOCUMENT)
    if options.write:
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
    elif not any("FAIL" in each.values() for each in results.values()):
        if not os.path.exists(path) or read(path) != text:
            failures.append(f"{DOCUMENT} is out of date: run `./test conformance`, commit it")
    if options.failures:
        with open(options.failures, "w", encoding="utf-8") as out:
            out.writelines(f"{failure}\n" for failure in failures)
    else:
        print("".join(f"FAILED {failure}\n" for failure in failures), end="")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
