"""The jobs program as its clients and its operator meet it."""

import concurrent.futures
import datetime
import hashlib
import os
import signal
import sqlite3
import sys
import tempfile
import unittest

from service import Service, children, eventually, is_alive

PROGRAM = os.path.abspath(sys.argv.pop(1))


class ServiceTest(unittest.TestCase):
    """Each test has a service with a fresh database."""

    environment = {}

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.service = Service(PROGRAM, self.folder.name, self.environment).start()

    def tearDown(self):
        if self.service.process.poll() is None:
            self.service.kill()
        self.folder.cleanup()


class Jobs(ServiceTest):
    def test_a_job_is_run_and_its_output_shown(self):
        job = self.service.wait(self.service.submit("sha256", "hello"), "done")
        self.assertEqual(job["output"], hashlib.sha256(b"hello").hexdigest())
        self.assertEqual((job["attempts"], job["exit_status"], job["error"]), (1, 0, ""))
        self.assertEqual(self.service.ask("DELETE", "/jobs/" + job["id"]).status, 409)

    def test_a_large_input_is_fed_to_the_end(self):
        text = "0123456789" * 10000
        job = self.service.wait(self.service.submit("sha256", text), "done")
        self.assertEqual(job["output"], hashlib.sha256(text.encode()).hexdigest())

    def test_output_beyond_the_limit_is_cut(self):
        job = self.service.wait(self.service.submit("chatty"), "done")
        self.assertEqual((job["output"], job["output_truncated"]), ("x" * 1024, True))

    def test_an_exit_status_that_is_not_zero_fails_the_job(self):
        job = self.service.wait(self.service.submit("fail"), "failed")
        self.assertEqual(job["exit_status"], 3)
        self.assertEqual(job["error"], "failing as asked\n")

    def test_a_failed_job_is_tried_again(self):
        job = self.service.wait(self.service.submit("retried"), "failed")
        self.assertEqual((job["attempts"], job["exit_status"]), (3, 3))

    def test_a_program_that_is_not_there_fails_the_job(self):
        job = self.service.wait(self.service.submit("missing"), "failed")
        self.assertIn("/nonexistent/program", job["error"])

    def test_a_job_that_takes_too_long_is_killed(self):
        job = self.service.wait(self.service.submit("late"), "timeout")
        self.assertEqual(job["output"], "begun\n")
        self.assertIn("timeout", job["error"])

    def test_cancelling_a_running_job_kills_its_process_group(self):
        job_id, pids = self.start_group()
        answer = self.service.ask("DELETE", "/jobs/" + job_id)
        self.assertEqual((answer.status, answer.json["state"]), (200, "cancelled"))
        for pid in pids:
            eventually(lambda: not is_alive(pid), "process %d is gone" % pid)
        self.assertEqual(self.service.job(job_id)["state"], "cancelled")
        self.assertEqual(self.service.ask("DELETE", "/jobs/" + job_id).status, 200)
        self.start_group("second")  # its place is free again

    def test_cancelling_a_queued_job_keeps_it_from_running(self):
        running = self.service.submit("full")
        self.service.wait(running, "running")
        queued = self.service.submit("full")
        self.assertEqual(self.service.ask("DELETE", "/jobs/" + queued).status, 200)
        self.assertEqual(self.service.job(queued)["attempts"], 0)
        self.service.submit("full")  # its place in the queue is free again

    def start_group(self, name="pids"):
        """A running job and the pids of its command."""
        path = os.path.join(self.folder.name, name)
        job_id = self.service.submit("group", path + "\n")
        eventually(lambda: os.path.exists(path), "the command has begun")
        with open(path) as file:
            return job_id, [int(word) for word in file.read().split()]


class Requests(ServiceTest):
    def test_an_answer_ends_with_a_line(self):
        self.assertEqual(self.service.ask("GET", "/").status, 200)
        for target in ("/", "/jobs", "/jobs/99", "/healthz", "/metrics", "/nowhere"):
            body = self.service.ask("GET", target).body
            self.assertTrue(body.endswith(b"\n") and not body.endswith(b"\n\n"), body)

    def test_what_is_wrong_with_a_request_is_told(self):
        ask = self.service.ask
        self.assertEqual(ask("GET", "/jobs/99").status, 404)
        self.assertEqual(ask("GET", "/nowhere").status, 404)
        self.assertEqual(ask("DELETE", "/jobs/99").status, 404)
        self.assertEqual(ask("POST", "/jobs", {"kind": "nothing"}).status, 404)
        self.assertEqual(ask("POST", "/jobs", "{").status, 400)
        self.assertEqual(ask("GET", "/jobs?state=lost").status, 400)
        self.assertEqual(ask("PUT", "/jobs", "{}").status, 405)
        too_large = {"kind": "sha256", "input": "x" * 102401}
        self.assertEqual(ask("POST", "/jobs", too_large).status, 413)
        self.assertEqual(ask("POST", "/jobs", None, {"Content-Length": "99999999"}).status, 413)

    def test_a_full_queue_refuses_and_says_when_to_come_back(self):
        self.service.wait(self.service.submit("full"), "running")
        self.service.submit("full")
        answer = self.service.ask("POST", "/jobs", {"kind": "full"})
        self.assertEqual(answer.status, 429)
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)

    def test_jobs_are_listed_newest_first_page_by_page(self):
        ids = [self.service.submit("sha256", str(i)) for i in range(5)]
        for job_id in ids:
            self.service.wait(job_id, "done")
        first = self.service.ask("GET", "/jobs?state=done&limit=3").json
        self.assertEqual([job["id"] for job in first["jobs"]], ids[:1:-1])
        rest = self.service.ask("GET", "/jobs?before=" + first["next"]).json
        self.assertEqual([job["id"] for job in rest["jobs"]], ids[1::-1])
        self.assertIsNone(rest["next"])

    def test_health_and_metrics(self):
        self.service.wait(self.service.submit("sha256", "x"), "done")
        self.assertEqual(self.service.ask("GET", "/healthz").status, 200)
        text = self.service.ask("GET", "/metrics").body.decode()
        self.assertIn('jobs_submitted_total{kind="sha256"} 1', text)
        self.assertIn('jobs_ended_total{kind="sha256",state="done"} 1', text)

    def test_the_start_line_tells_what_to_try(self):
        self.assertIn("listener", self.service.printed)
        self.assertIn("curl -d", self.service.printed)


class Token(ServiceTest):
    environment = {"JOBS__TOKEN": "a-secret-of-some-length"}

    def test_changes_need_the_token(self):
        body = {"kind": "sha256", "input": "x"}
        self.assertEqual(self.service.ask("POST", "/jobs", body).status, 401)
        right = {"Authorization": "Bearer a-secret-of-some-length"}
        self.assertEqual(self.service.ask("POST", "/jobs", body, right).status, 202)
        self.assertEqual(self.service.ask("GET", "/jobs").status, 200)
        self.assertNotIn("a-secret", self.service.log() + self.service.printed)


class Ends(ServiceTest):
    def test_an_orderly_stop_ends_commands_and_keeps_jobs(self):
        running = self.service.submit("sleep", "1000\n")
        self.service.wait(running, "running")
        self.assertEqual(self.service.stop(), 0)
        self.service.start()
        self.assertIn(self.service.job(running)["state"], ("queued", "running"))

    def test_what_was_accepted_survives_kill_9(self):
        long = self.service.submit("sleep", "1000\n")
        self.service.wait(long, "running")
        accepted = {}
        for i in range(40):
            accepted[self.service.submit("sha256", str(i))] = str(i)
        self.service.kill()
        self.service.start()
        for job_id, text in accepted.items():
            job = self.service.wait(job_id, "done")
            self.assertEqual(job["output"], hashlib.sha256(text.encode()).hexdigest())
        self.assertEqual(self.service.wait(long, "running")["attempts"], 2)
        self.assertGreater(int(self.service.submit("sha256", "x")), max(map(int, accepted)))

    def test_commands_end_with_a_node_that_is_killed(self):
        path = os.path.join(self.folder.name, "pids")
        self.service.submit("group", path + "\n")
        eventually(lambda: os.path.exists(path), "the command has begun")
        self.service.kill()
        with open(path) as file:
            for pid in map(int, file.read().split()):
                eventually(lambda: not is_alive(pid), "process %d is gone" % pid)


class Faults(ServiceTest):
    def test_a_database_that_is_locked_by_others_is_no_accepted_job(self):
        other = sqlite3.connect(os.path.join(self.folder.name, "jobs.db"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = self.service.ask("POST", "/jobs", {"kind": "sha256", "input": "x"})
        self.assertEqual(answer.status, 503)
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(self.service.ask("GET", "/healthz").status, 503)
        other.execute("ROLLBACK")
        other.close()
        self.wait_for_health(200)
        job_id = self.service.submit("sha256", "x")
        self.assertEqual(self.service.wait(job_id, "done")["id"], "1")

    def test_the_end_of_an_attempt_waits_for_a_locked_database(self):
        path = os.path.join(self.folder.name, "jobs.db")
        job_id = self.service.submit("sleep", "0.2\n")
        self.service.wait(job_id, "running")
        other = sqlite3.connect(path, isolation_level=None, timeout=60)
        other.execute("BEGIN IMMEDIATE")
        self.wait_for_health(503)  # until the writer has given up, what was known is the answer
        other.execute("ROLLBACK")
        other.close()
        self.assertEqual(self.service.wait(job_id, "done")["attempts"], 1)

    def wait_for_health(self, status):
        eventually(
            lambda: self.service.ask("GET", "/healthz").status == status, "health %d" % status
        )

    def test_a_guardian_that_is_killed_is_replaced(self):
        job_id = self.service.submit("sleep", "1000\n")
        self.service.wait(job_id, "running")
        guardians = children(self.service.process.pid)
        self.assertEqual(len(guardians), 1)
        os.kill(guardians.pop(), signal.SIGKILL)

        def runs_again():
            try:
                return self.service.job(job_id)["attempts"] == 2
            except OSError:
                return False  # its connections end with the listener, which comes after the spawner

        eventually(runs_again, "it runs again")
        self.service.wait(self.service.submit("sha256", "x"), "done")

    def test_a_second_node_on_the_database_does_not_start(self):
        second = Service(PROGRAM, self.folder.name)
        with self.assertRaisesRegex(AssertionError, "did not start"):
            second.start()
        self.assertEqual(second.wait_for_end(), 1)
        self.assertIn("jobs.db", self.service.log())
        self.service.wait(self.service.submit("sha256", "x"), "done")


class GivesUp(unittest.TestCase):
    def test_past_its_intensity_it_stops_in_order_and_says_who_gave_up(self):
        with tempfile.TemporaryDirectory() as folder:
            service = Service(PROGRAM, folder)
            service.intensity = 2
            service.start()
            job_id = service.submit("sleep", "1000\n")
            service.wait(job_id, "running")
            killed = set()

            def kill_the_guardian():
                for pid in children(service.process.pid) - killed:
                    killed.add(pid)
                    os.kill(pid, signal.SIGKILL)
                return service.process.poll() is not None

            eventually(kill_the_guardian, "the service has given up")
            self.assertEqual(service.wait_for_end(), 1)
            self.assertEqual(len(killed), 3)
            log = service.log()
            self.assertRegex(log, "(?s)spawner.*guardian.*lost.*reached_max_restart_intensity")
            service.intensity = 50
            service.start()  # which puts the job back
            self.assertIn(service.job(job_id)["state"], ("queued", "running"))
            self.assertEqual(service.stop(), 0)


class Limits(ServiceTest):
    clients = 64
    jobs = 60

    def test_limits_hold_under_many_clients(self):
        def submit(_):
            return self.service.submit("limited")

        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            ids = list(pool.map(submit, range(self.jobs)))
        self.assertEqual(len(set(ids)), self.jobs)
        jobs = [self.service.wait(job_id, "done") for job_id in ids]
        self.assertTrue(all(job["attempts"] == 1 for job in jobs))
        starts = sorted(milliseconds(job["started_at"]) for job in jobs)
        for first, last in zip(starts, starts[20:]):  # 20 a second: the 21st is a second later
            self.assertGreaterEqual(last - first, 1000)
        changes = sorted(
            [(milliseconds(job["started_at"]), 1) for job in jobs]
            + [(milliseconds(job["finished_at"]), -1) for job in jobs]
        )
        running = most = 0
        for _, change in changes:
            running += change
            most = max(most, running)
        self.assertLessEqual(most, 3)


def milliseconds(text):
    moment = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    return int(moment.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000 + 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
