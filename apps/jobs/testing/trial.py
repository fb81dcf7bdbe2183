"""10,000 jobs from 64 clients at once, and what must hold of each of them.

Every command writes down by itself when it ran, so that what the service says of a job can be held
against what happened.
"""

import collections
import http.client
import os
import random
import sqlite3
import threading
import time

from service import Service, eventually

CLIENTS = 64
FINAL = ("done", "failed", "timeout", "cancelled")
INTERRUPTIONS_MAX = 3

# bash knows the time without another process: "TOKEN begin|end MICROSECONDS". A command whose node
# is killed before it has written the input sees an empty one, until it is killed itself.
NOTE = 'read -r token || exit 9; echo "$token begin $${EPOCHREALTIME/./}" >>"$RUNS"; '
DONE = 'echo "$token end $${EPOCHREALTIME/./}" >>"$RUNS"'

KINDS = """
    plain:
      command: [sh, -c, 'read -r token || exit 9; echo "$token begin 0" >>"$RUNS"']
      max_concurrency: 8
      <common>
    narrow:
      command: [bash, -c, '<note>sleep 0.01; <done>']
      max_concurrency: 2
      <common>
    paced:
      command: [bash, -c, '<note><done>']
      max_concurrency: 3
      rate: 40
      <common>
    refused:
      command: [bash, -c, '<note><done>; exit 3']
      max_concurrency: 4
      retries: 1
      backoff: {min: 20ms, max: 20ms}
      <common>
    hang:  # a group that does not hear SIGTERM, and a child that has left it
      command: [bash, -c, 'trap "" TERM; <note>sleep 1000 & setsid sleep 1000 & wait']
      max_concurrency: 16
      <common>
"""
CONCURRENCY = {"plain": 8, "narrow": 2, "paced": 3, "refused": 4, "hang": 16}
RATE = {"paced": 40}
SHARES = {"plain": 86, "narrow": 5, "paced": 5, "refused": 4}  # of 100 jobs


class TrialService(Service):
    """The service; its commands know which life of it has started them."""

    life = 0

    def kinds(self):
        common = "environment: {RUNS: %s/runs, LIFE: %s/%d}\n      max_queued: 20000" % (
            self.folder,
            self.folder,
            self.life,
        )
        text = KINDS.replace("<note>", NOTE).replace("<done>", DONE)
        return text.replace("<common>", common)

    def start(self):
        self.life += 1
        super().start()
        old = [pid for pid, life in self.commands() if life < self.life]
        assert not old, "commands of an earlier life still run: %r" % old
        return self

    def commands(self):
        """Pairs of pid and life, for every command that runs and its children."""
        mark = ("LIFE=%s/" % self.folder).encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % entry, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue  # it has just ended
            lives = [int(word[len(mark) :]) for word in words if word.startswith(mark)]
            found += [(int(entry), life) for life in lives]
        return found

    def runs(self):
        """What the commands wrote down: by token the pairs of begin and end (None: killed)."""
        runs = collections.defaultdict(list)
        with open(os.path.join(self.folder, "runs")) as file:
            for token, what, moment in map(str.split, file):
                if what == "begin":
                    runs[token].append([int(moment), None])
                else:
                    runs[token][-1][1] = int(moment)
        return runs

    def all_jobs(self):
        """Every job, by id."""
        jobs, before = {}, ""
        while True:
            page = self.ask("GET", "/jobs?limit=1000" + before).json
            jobs.update((job["id"], job) for job in page["jobs"])
            if page["next"] is None:
                return jobs
            before = "&before=" + page["next"]


class Submission:
    """Clients that submit until `count` jobs are accepted."""

    def __init__(self, service, count):
        self.service, self.count = service, count
        self.lock = threading.Lock()
        self.accepted = {}  # id to kind and token
        self.tries = 0
        self.taken = 0
        self.threads = [threading.Thread(target=self._client, daemon=True) for _ in range(CLIENTS)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def join(self):
        for thread in self.threads:
            thread.join()
        assert len(self.accepted) == self.count, "a client has failed"

    def _take(self):
        with self.lock:
            self.taken += 1
            return self.taken <= self.count

    def _client(self):
        client = self.service.client()
        while self._take():
            kind = random.choices(list(SHARES), SHARES.values())[0]
            while not self._submit(client, kind):
                client.close()
                time.sleep(0.02)
                client = self.service.client()  # it may have another port by now
        client.close()

    def _submit(self, client, kind):
        with self.lock:  # a token is of one request: without an answer nobody knows what became
            self.tries += 1  # of it
            token = "t%d" % self.tries
        try:
            answer = client.ask("POST", "/jobs", {"kind": kind, "input": token + "\n"})
        except (OSError, http.client.HTTPException):
            return False
        if answer.status == 503:  # it is starting
            return False
        assert answer.status == 202, (answer.status, answer.body)
        with self.lock:
            assert answer.json["id"] not in self.accepted
            self.accepted[answer.json["id"]] = (kind, token)
        return True


class Watcher(threading.Thread):
    """Looks at ended jobs while the service works: an end stays as it was first seen."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.over = service, threading.Event()
        self.seen, self.changed = {}, []

    def run(self):
        while not self.over.wait(0.25):
            try:
                page = self.service.ask("GET", "/jobs?limit=100&state=" + random.choice(FINAL))
            except (OSError, http.client.HTTPException):
                continue  # it was killed
            if page.status == 200:
                self.compare(page.json["jobs"])

    def compare(self, jobs):
        for job in jobs:
            if job["state"] not in FINAL:
                continue
            if job["state"] == "cancelled":  # what its command leaves comes later
                job = {"state": job["state"], "attempts": job["attempts"], "id": job["id"]}
            if self.seen.setdefault(job["id"], job) != job:
                self.changed.append((self.seen[job["id"]], job))


def most_at_once(intervals):
    """How many of the (begin, end) overlap at most; what ends when another begins does not."""
    changes = [(begin, 1) for begin, _ in intervals] + [(end, -1) for _, end in intervals]
    most = running = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


def recorded_starts(folder):
    """The start times that the service has recorded, by kind, in ms, sorted."""
    database = sqlite3.connect("file:%s/jobs.db?mode=ro" % folder, uri=True)
    starts = collections.defaultdict(list)
    for kind, at in database.execute("SELECT kind, at FROM starts ORDER BY at"):
        starts[kind].append(at)
    database.close()
    return starts


def waiting_and_running(service):
    """How many jobs have not ended, as /metrics tells."""
    text = service.ask("GET", "/metrics").body.decode()
    lines = [line.split() for line in text.splitlines() if line.startswith("jobs_stored{")]
    return sum(float(number) for name, number in lines if 'queued"' in name or 'running"' in name)


def wait_for_the_last(service):
    """Waits until every job has ended, however long it takes as long as some do."""
    left = waiting_and_running(service)
    while left > 0:
        before = left
        eventually(lambda: waiting_and_running(service) < before, "one more job has ended")
        left = waiting_and_running(service)
