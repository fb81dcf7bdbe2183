"""10,000 jobs from 64 clients at once; and the same while the service is killed five times."""

import os
import signal
import sys
import tempfile
import unittest

from service import children, eventually
from trial import (
    CONCURRENCY,
    FINAL,
    INTERRUPTIONS_MAX,
    RATE,
    Submission,
    TrialService,
    Watcher,
    most_at_once,
    recorded_starts,
    wait_for_the_last,
)

PROGRAM = os.path.abspath(sys.argv.pop(1))
JOBS = 10000
KILLS = 5


class Trial(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.service = TrialService(PROGRAM, self.folder.name)
        self.service.start()
        self.watcher = Watcher(self.service)
        self.watcher.start()
        self.hanging = []

    def tearDown(self):
        self.watcher.over.set()
        self.watcher.join()
        if self.service.process.poll() is None:
            self.service.kill()
        self.folder.cleanup()

    def test_each_of_10000_jobs_ends_once_within_its_limits(self):
        submission = Submission(self.service, JOBS)
        submission.start()
        submission.join()
        jobs, runs = self.finish(submission)
        self.assertEqual(len(jobs), JOBS)
        for job_id, (kind, token) in submission.accepted.items():
            attempts = 2 if kind == "refused" else 1
            self.assertEqual(jobs[job_id]["attempts"], attempts)
            self.assertEqual(len(runs[token]), attempts, jobs[job_id])
        ended = sum(
            float(line.split()[-1])
            for line in self.service.ask("GET", "/metrics").body.decode().splitlines()
            if line.startswith("jobs_ended_total{")
        )
        self.assertEqual(ended, JOBS)

    def test_nothing_is_lost_when_the_service_is_killed_five_times(self):
        submission = Submission(self.service, JOBS)
        submission.start()
        for kill in range(1, KILLS + 1):
            self.hang_some()
            eventually(
                lambda: len(submission.accepted) >= kill * JOBS // (KILLS + 1), "some are accepted"
            )
            self.kill_all(with_guardian=kill % 2 == 0)
            self.service.start()  # which looks for commands of an earlier life
        submission.join()
        for job_id in self.hanging:
            self.service.ask("DELETE", "/jobs/" + job_id)
        jobs, runs = self.finish(submission)
        self.assertLessEqual({jobs[job_id]["state"] for job_id in self.hanging},
                             {"cancelled", "failed"})
        self.assertEqual(self.service.commands(), [])
        again = 0
        for job_id, (_, token) in submission.accepted.items():
            self.assertLessEqual(len(runs[token]), jobs[job_id]["attempts"], jobs[job_id])
            again += jobs[job_id]["attempts"] > 1 and jobs[job_id]["kind"] != "refused"
        self.assertGreater(again, 0, "no job was interrupted")
        self.assertGreater(self.service.life, KILLS)

    def hang_some(self):
        """Two commands that run until they are killed."""
        ids = [self.service.submit("hang", "hang%d\n" % self.service.life) for _ in range(2)]
        for job_id in ids:
            self.service.wait(job_id, "running")
        self.hanging += ids

    def kill_all(self, with_guardian):
        guardians = children(self.service.process.pid)
        os.kill(self.service.process.pid, signal.SIGKILL)
        for pid in guardians if with_guardian else ():
            os.kill(pid, signal.SIGKILL)
        self.service.wait_for_end()

    def finish(self, submission):
        """Waits for the end of all jobs and checks what holds of any."""
        wait_for_the_last(self.service)
        jobs, runs = self.service.all_jobs(), self.service.runs()
        self.watcher.compare(jobs.values())
        self.assertEqual(self.watcher.changed[:3], [])
        for job_id, (kind, token) in submission.accepted.items():
            job = jobs[job_id]
            self.assertEqual(job["kind"], kind)
            self.assertIn(job["state"], FINAL)
            self.check_end(job, runs[token])
        self.check_limits(submission, runs)
        return jobs, runs

    def check_end(self, job, runs):
        """The state says what happened."""
        if job["error"].startswith("interrupted"):
            self.assertEqual(job["state"], "failed", job)
            retries = job["kind"] == "refused"  # an attempt that failed by itself comes on top
            attempts = range(INTERRUPTIONS_MAX, INTERRUPTIONS_MAX + retries + 1)
            self.assertIn(job["attempts"], attempts, job)
        elif job["kind"] == "refused":
            self.assertEqual((job["state"], job["exit_status"]), ("failed", 3), job)
            self.assertGreaterEqual(job["attempts"], 2, job)
            self.assertGreaterEqual(len(runs), 2, job)
        else:
            self.assertEqual((job["state"], job["exit_status"]), ("done", 0), job)
            self.assertGreaterEqual(len(runs), 1, job)

    def check_limits(self, submission, runs):
        starts = recorded_starts(self.folder.name)
        for kind, rate in RATE.items():
            pairs = zip(starts[kind], starts[kind][rate:])
            self.assertGreaterEqual(min(last - first for first, last in pairs), 1000)
        for kind in ("narrow", "paced", "refused"):  # by the commands' own clock
            mine = [runs[token] for of, token in submission.accepted.values() if of == kind]
            whole = [run for each in mine for run in each if run[1] is not None]
            self.assertGreater(len(whole), 0)
            self.assertLessEqual(most_at_once(whole), CONCURRENCY[kind], kind)


if __name__ == "__main__":
    unittest.main(verbosity=2)
