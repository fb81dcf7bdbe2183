"""tally.py counts what happened, and never takes a run that went wrong for a good one."""

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

    def test_only_the_last_attempt_counts(self):
        bad = self.result("//a", "FAILED", '<testcase name="a"><failure/></testcase>', attempt=1)
        good = self.result("//a", "PASSED", '<testcase name="a"/>', attempt=2)
        self.assertEqual(self.read([bad, good]), (1, []))


if __name__ == "__main__":
    unittest.main()
