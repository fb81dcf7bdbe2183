"""Counts test cases over runs of `bazel test` and says so in one line.

Usage: tally.py STATUS EVENTS.json... [NAME.failures]

STATUS is what Bazel returned; EVENTS are files of --build_event_json_file. Each <testcase> of a
target's test.xml counts; a target that did not build, or that failed without a failed case in its
file (a crash outside a case, a leak at exit), counts as one failure, and so does each line of a
file of failures. A file of events may be missing, or end within a line: Bazel could not start, or
was ended, which STATUS says. Failures are listed; the last line is `N passed, N failed`. Exit
status: 0 when at least one case passed and none failed and STATUS is 0.
"""

import json
import os
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def cases_of(path):
    """Returns [(name, passed)] of one test.xml; an unreadable file has no cases."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return []
    return [
        (case.get("name"), case.find("failure") is None and case.find("error") is None)
        for case in root.iter("testcase")
    ]


def xml_path(result):
    for output in result.get("testActionOutput", []):
        if output["name"] == "test.xml":
            return urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
    return ""


def read_run(path):
    """Returns (passed cases, failures) of one run; a failure is a line to print."""
    passed, failures = 0, []
    attempts = {}  # (label, run, shard) -> the last attempt's result
    if not os.path.exists(path):
        return 0, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            kind = event["id"]
            if "testResult" in kind and "testResult" in event:
                id = kind["testResult"]
                attempts[(id["label"], id.get("run"), id.get("shard"))] = event["testResult"]
            elif "targetCompleted" in kind and not event.get("completed", {}).get("success"):
                failures.append(f"{kind['targetCompleted']['label']}: did not build")
    for (label, _, _), result in attempts.items():
        cases = cases_of(xml_path(result))
        passed += sum(1 for _, good in cases if good)
        bad = [name for name, good in cases if not good]
        failures += [f"{label}: {name}" for name in bad]
        if result["status"] not in ("PASSED", "FLAKY") and not bad:
            failures.append(f"{label}: {result['status'].lower()} outside its test cases")
    return passed, failures


def read_failures(path):
    """Returns what read_run() does, for a file with a failure a line."""
    with open(path, encoding="utf-8") as lines:
        return 0, [line.rstrip("\n") for line in lines if line.strip()]


def main(arguments):
    status = int(arguments[0])
    passed, failed = 0, 0
    for path in arguments[1:]:
        name, kind = os.path.splitext(os.path.basename(path))
        run_passed, failures = read_failures(path) if kind == ".failures" else read_run(path)
        for failure in failures:
            print(f"FAILED [{name}] {failure}")
        print(f"{name}: {run_passed} passed, {len(failures)} failed")
        passed += run_passed
        failed += len(failures)
    if status != 0 and failed == 0:
        print(f"FAILED bazel ended with status {status}")
        failed = 1
    if passed == 0 and failed == 0:
        print("FAILED no test ran")
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
