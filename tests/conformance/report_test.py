"""report.py misses no row: one that has to hold and did not pass is a failure with its name."""

import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import report  # noqa: E402

CONTRACT = """# Title
## AB - First area
| Id | Pr | Given |
| AB-001 | P0 | a |
| AB-002 | P1 | b |
## CDE - Second area
| CDE-001 | P2 | c |
"""
AREAS = [("AB - First area", [("AB-001", "P0"), ("AB-002", "P1")]),
         ("CDE - Second area", [("CDE-001", "P2")])]
ALL = {"AB-001": "pass", "AB-002": "pass", "CDE-001": "pass"}


class ReportTest(unittest.TestCase):
    def failures(self, results, deviations=None):
        return report.failures_of(AREAS, results, deviations or {})

    def test_the_rows_of_the_contract_are_found(self):
        self.assertEqual(report.contract_of(CONTRACT), AREAS)

    def test_the_contract_in_the_tree_has_all_its_rows(self):
        areas = report.contract_of(report.read(report.HERE, "contract.md"))
        priorities = [priority for _, rows in areas for _, priority in rows]
        counts = [priorities.count(each) for each in ("P0", "P1", "P2")]
        self.assertEqual((len(areas), counts), (9, [150, 87, 29]))
        reasons = report.deviations_of(report.read(report.HERE, "deviations.tsv"))
        self.assertLessEqual(set(reasons), {row for _, rows in areas for row, _ in rows})

    def test_names_of_test_cases_are_read_from_sources(self):
        source = 'TEST_CASE("AB-001 AB-002 it \\"holds\\"", "[a]") {}\n' \
                 'TEST_CASE("CDE-001 long "\n          "name", "[b]") {}'
        names = list(report.cases_of(source))
        self.assertEqual(names[0], 'AB-001 AB-002 it \\"holds\\"')
        self.assertEqual(report.rows_in(names[0])[0], ["AB-001", "AB-002"])
        self.assertTrue(names[1].startswith("CDE-001 long name"))

    def test_a_row_fails_if_one_of_its_test_cases_does(self):
        logs = ["ROW AB-001 FAIL\nROW AB-002 pass\n", "x\nROW AB-001 pass\n  ROW CDE-001 pass\n"]
        self.assertEqual(report.results_of(logs), {"AB-001": "FAIL", "AB-002": "pass"})

    def test_all_rows_passing_is_no_failure(self):
        self.assertEqual(self.failures({"default": ALL, "asan": {}}), [])

    def test_a_missing_row_is_named(self):
        failures = self.failures({"default": {}})
        self.assertEqual([line[:6] for line in failures], ["AB-001", "AB-002", "CDE-00"])

    def test_a_reason_excuses_any_but_p0(self):
        reasons = {"AB-001": "x", "AB-002": "y", "CDE-001": "z"}
        failures = self.failures({"default": {}}, reasons)
        self.assertEqual([line[:6] for line in failures], ["AB-001"])

    def test_a_failure_in_one_build_counts_and_no_reason_excuses_it(self):
        results = {"default": ALL, "tsan": {"AB-002": "FAIL"}}
        self.assertEqual(self.failures(results, {"AB-002": "y"}), ["AB-002 (P1): failed in tsan"])

    def test_what_is_no_row_is_named(self):
        results = {"default": {**ALL, "AB-009": "pass"}}
        self.assertEqual(len(self.failures(results)), 1)
        self.assertEqual(len(self.failures({"default": ALL}, {"AB-010": "why"})), 1)

    def test_the_document_says_row_test_and_results(self):
        tests = {"AB-001": [("ab_test.cc", "it holds")]}
        results = {"default": ALL, "asan": {"AB-001": "pass"}}
        text = report.document_of(AREAS, tests, results, {"CDE-001": "a reason"})
        self.assertIn("| AB-001 | P0 | `ab_test.cc`: it holds | pass | pass |", text)
        self.assertIn("| CDE-001 | P2 | - | pass | - |", text)
        self.assertIn("- CDE-001: a reason", text)

    def test_logs_are_found_through_the_events(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "test log")
            with open(path, "w", encoding="utf-8") as log:
                log.write("ROW AB-001 pass\n")
            event = {
                "id": {"testResult": {"label": "//a", "run": 1}},
                "testResult": {"testActionOutput": [
                    {"name": "test.log", "uri": "file://" + path.replace(" ", "%20")}]},
            }
            logs = list(report.logs_of(json.dumps(event) + "\n"))
        self.assertEqual(logs, ["ROW AB-001 pass\n"])


if __name__ == "__main__":
    unittest.main()
