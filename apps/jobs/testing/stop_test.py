"""The orderly stop of the jobs program while it has work to do."""

import http.client
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest

from service import Client, Service, eventually, is_alive

PROGRAM = os.path.abspath(sys.argv.pop(1))
TARBALL = os.path.abspath(sys.argv.pop(1))
STOP_MAX = 30  # seconds; the shutdown times of the tree, one after the other

KINDS = """
    quick:
      command: [sh, -c, 'read -r text; echo "$text"']
      max_concurrency: 4
      max_queued: 100000
    polite:  # has done its work when it is asked to end
      command:
        - sh
        - -c
        - 'trap "echo told; exit 0" TERM; read -r file; sleep 1000 & echo "$$ $!" >"$file"; wait'
    deaf:
      command:
        - sh
        - -c
        - 'trap "" TERM; read -r file; sleep 1000 & echo "$$ $!" >"$file"; wait'
      kill_after: 300ms
    swallow:
      command: [sh, -c, 'cat >/dev/null']
      max_concurrency: 4
    once:
      command: [sleep, "1000"]
      on_interrupt: fail
"""


class StopService(Service):
    def kinds(self):
        return KINDS


class Flood:
    """Clients that submit as fast as they can, until the service is gone."""

    def __init__(self, port, kind, clients=16):
        self.port = port
        self.body = '{"kind": "%s", "input": "x\\n"}' % kind
        self.accepted = []
        self.threads = [threading.Thread(target=self._submit, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def _submit(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        while True:
            try:
                connection.request("POST", "/jobs", body=self.body)
                response = connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException):
                return connection.close()  # it has stopped
            if response.status == 202:
                self.accepted.append(json.loads(text)["id"])

    def join(self):
        for thread in self.threads:
            thread.join()


class Stop(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.service = StopService(PROGRAM, self.folder.name).start()

    def tearDown(self):
        if self.service.process.poll() is None:
            self.service.kill()
        self.folder.cleanup()

    def running(self, kind):
        """A job that runs, and the pids of its command."""
        path = os.path.join(self.folder.name, kind)
        job_id = self.service.submit(kind, path + "\n")

        def pids():
            if not os.path.exists(path):
                return None
            with open(path) as file:
                return [int(word) for word in file.read().split()]

        found = eventually(pids, "the command has begun")
        os.remove(path)
        return job_id, found

    def test_a_command_is_asked_to_end_and_its_answer_counts(self):
        job_id, pids = self.running("polite")
        self.assertEqual(self.service.stop(), 0)
        self.assertFalse(any(map(is_alive, pids)))
        self.service.start()
        job = self.service.job(job_id)
        self.assertEqual((job["state"], job["attempts"], job["output"]), ("done", 1, "told\n"))

    def test_a_command_that_does_not_hear_is_killed_and_its_job_runs_again(self):
        job_id, pids = self.running("deaf")
        self.running("polite")
        begun = time.monotonic()
        self.assertEqual(self.service.stop(), 0)
        self.assertIn("asked 2 jobs to end; 1 job to run again", self.service.log())
        self.assertLess(time.monotonic() - begun, STOP_MAX)
        self.assertFalse(any(map(is_alive, pids)))
        self.service.start()
        job = self.service.wait(job_id, "running")
        self.assertEqual(job["attempts"], 2)

    def test_a_job_that_must_not_run_twice_says_that_it_was_interrupted(self):
        job_id = self.service.submit("once")
        self.service.wait(job_id, "running")
        self.assertEqual(self.service.stop(), 0)
        self.service.start()
        job = self.service.job(job_id)
        self.assertEqual((job["state"], job["attempts"]), ("failed", 1))
        self.assertIn("the service was stopped", job["error"])

    def test_the_database_is_closed_away_from_the_cores(self):
        reader = sqlite3.connect(os.path.join(self.folder.name, "jobs.db"), isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM jobs").fetchall()  # keeps the log as long as it is
        text = "x" * (1 << 20)
        jobs = [self.service.submit("swallow", text) for _ in range(16)]
        for job_id in jobs:
            self.service.wait(job_id, "done")
        reader.execute("ROLLBACK")
        reader.close()
        self.assertEqual(self.service.stop(), 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "jobs.db-wal")))
        self.assertNotIn("sqlite3WalClose", self.service.log())

    def test_a_stop_under_load_loses_nothing(self):
        flood = Flood(self.service.port, "quick")
        eventually(lambda: len(flood.accepted) > 300, "there is load")
        begun = time.monotonic()
        self.assertEqual(self.service.stop(), 0)
        self.assertLess(time.monotonic() - begun, STOP_MAX)
        flood.join()
        self.service.start()
        for job_id in flood.accepted[:20] + flood.accepted[-20:]:
            job = self.service.wait(job_id, "done")
            self.assertEqual(job["output"], "x\n")
            self.assertLessEqual(job["attempts"], 2)


class StubbornService(StopService):
    def kinds(self):
        return KINDS + "    stubborn: {command: [cat], kill_after: 30s}\n"


class Log(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.service = StubbornService(PROGRAM, self.folder.name).start()

    def tearDown(self):
        self.service.kill()
        self.folder.cleanup()

    def wait_for_log(self, text):
        eventually(lambda: text in self.service.log(), "the log says: " + text)

    def test_the_log_says_who_serves_where_and_what_was_interrupted(self):
        line = "jobs: version 0.1.0 serves http://127.0.0.1:%d\n" % self.service.port
        self.wait_for_log(line)
        self.assertNotIn("interrupted", self.service.log())
        self.service.wait(self.service.submit("once"), "running")
        asleep = os.path.join(self.folder.name, "asleep")
        self.service.wait(self.service.submit("deaf", asleep + "\n"), "running")
        self.service.kill()
        self.service.start()
        self.wait_for_log("interrupted when the service ended: 1 job to run again, 1 job failed")

    def test_a_kind_that_a_stop_would_kill_is_warned_of(self):
        self.wait_for_log("kind stubborn: its kill_after")
        self.assertNotIn("kind deaf", self.service.log())


class FromTheTarball(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        with tarfile.open(TARBALL) as archive:
            archive.extractall(self.folder.name)
        (name,) = os.listdir(self.folder.name)
        self.program = os.path.join(self.folder.name, name, "bin", "jobs")

    def tearDown(self):
        self.run_command("stop")
        self.folder.cleanup()

    def run_command(self, word):
        environment = dict(os.environ, JOBS__LISTEN="127.0.0.1:0")
        return subprocess.run(
            [self.program, word], env=environment, stdout=subprocess.PIPE, timeout=120, text=True
        )

    def test_stop_under_load_ends_within_its_shutdown_times(self):
        started = self.run_command("start")
        self.assertEqual(started.returncode, 0, started.stdout)
        port = int(started.stdout.partition("http://127.0.0.1:")[2].split()[0])
        client = Client(port)
        for _ in range(8):
            sleep = {"kind": "sleep", "input": "1000\n"}
            self.assertEqual(client.ask("POST", "/jobs", sleep).status, 202)
        client.close()
        flood = Flood(port, "sha256")
        eventually(lambda: len(flood.accepted) > 300, "there is load")
        begun = time.monotonic()
        self.assertEqual(self.run_command("stop").returncode, 0)
        self.assertLess(time.monotonic() - begun, STOP_MAX)
        flood.join()
        self.assertNotEqual(self.run_command("status").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
