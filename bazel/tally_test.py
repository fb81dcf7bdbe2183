"""tally.py counts what happened, and never takes a run that went wrong for a good one."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import tally  # noqa: E402


class TallyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def read(self, events):
        lines = "".join(json.dumps(event) + "\n" for event in events)
        return tally.read_run(self.write("events.json", lines))

    def result(self, label, status, cases, attempt=1):
        xml = self.write(f"{label.strip('/')} {attempt}.xml", f"<testsuites>{cases}</testsuites>")
        return {
            "id": {"testResult": {"label": label, "run": 1, "attempt": attempt}},
            "testResult": {
                "status": status,
                "testActionOutput": [{"name": "test.xml", "uri": "file://" + xml}],
            },
        }

    def test_cases_are_counted(self):
        cases = '<testcase name="a"/><testcase name="b"><failure message="x"/></testcase>'
        passed, failures = self.read([self.result("//a", "FAILED", cases)])
        self.assertEqual((passed, failures), (1, ["//a: b"]))

    def test_a_failure_outside_the_cases_counts(self):
        passed, failures = self.read([self.result("//a", "FAILED", '<testcase name="a"/>')])
        self.assertEqual((passed, failures), (1, ["//a: failed outside its test cases"]))

    def test_a_timeout_without_results_counts(self):
        event = self.result("//a", "TIMEOUT", "")
        event["testResult"]["testActionOutput"] = []
        self.assertEqual(self.read([event]), (0, ["//a: timeout outside its test cases"]))

    def test_a_target_that_does_not_build_counts(self):
        event = {"id": {"targetCompleted": {"label": "//a"}}, "aborted": {"reason": "X"}}
        self.assertEqual(self.read([event]), (0, ["//a: did not build"]))
        event = {"id": {"targetCompleted": {"label": "//a"}}, "completed": {"success": True}}
        self.assertEqual(self.read([event]), (0, []))

    def test_each_line_of_a_file_of_failures_counts(self):
        path = self.write("rows.failures", "SIG-001: no test passed\n\nSIG-002: failed\n")
        failures = ["SIG-001: no test passed", "SIG-002: failed"]
        self.assertEqual(tally.read_failures(path), (0, failures))

    def test_a_run_that_left_no_events_is_a_failure(self):
        half = self.write("half.json", '{"id": {"started": {}}}\n{"id": {"targetComp')
        none = os.path.join(self.folder.name, "none.json")
        for path in half, none:
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = tally.main(["37", path])
            self.assertEqual(status, 1)
            lines = out.getvalue().splitlines()
            self.assertIn("FAILED bazel ended with status 37", lines)
            self.assertEqual(lines[-1], "0 passed, 1 failed")

    def test_only_the_last_attempt_counts(self):
        bad = self.result("//a", "FAILED", '<testcase name="a"><failure/></testcase>', attempt=1)
        good = self.result("//a", "PASSED", '<testcase name="a"/>', attempt=2)
        self.assertEqual(self.read([bad, good]), (1, []))


if __name__ == "__main__":
    unittest.main()
