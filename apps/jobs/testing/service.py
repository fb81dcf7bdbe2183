"""Starts the jobs program for a test, on loopback with a port that the kernel picks."""

import http.client
import json
import os
import re
import resource
import select
import signal
import subprocess
import time

PATIENCE = 60  # seconds; for what ought to take milliseconds on a machine with nothing else to do

KINDS = """
    sha256:
      command: [sh, -c, 's=$(sha256sum) && printf %s "$${s%% *}"']
      max_concurrency: 4
      max_queued: 10000
      max_input: 100KiB
    sleep:
      command: [sh, -c, 'read -r seconds; exec sleep -- "$seconds"']
      max_concurrency: 8
      max_queued: 10000
    fail:
      command: [sh, -c, 'echo "failing as asked" >&2; exit 3']
      max_concurrency: 4
    retried:
      command: [sh, -c, 'exit 3']
      retries: 2
      backoff: {min: 20ms, max: 1s}
    late:
      command: [sh, -c, 'echo begun; sleep 1000 & wait']
      timeout: 200ms
      kill_after: 200ms
    group:  # tells who it is: the file is named by the input
      command:
        - sh
        - -c
        - 'read -r file; sleep 1000 & echo "$$ $!" >"$file.new"; mv "$file.new" "$file"; wait'
      kill_after: 200ms
    full:
      command: [sleep, "1000"]
      max_queued: 1
    chatty:
      command: [sh, -c, 'head -c 1000000 /dev/zero | tr "\\\\0" x']
      max_output: 1KiB
    large:
      command: [sh, -c, 'head -c 65536 /dev/zero | tr "\\\\0" x']
    until:  # the file named by its input is there
      command: [sh, -c, 'read -r file; until test -e "$file"; do sleep 0.02; done; echo went']
    missing:
      command: [/nonexistent/program]
    limited:
      command: [sleep, "0.03"]
      max_concurrency: 3
      rate: 20
      max_queued: 10000
"""

TREE = """
supervisor:
  strategy: rest_for_one
  intensity: %d
  period: 30s
  children:
    - {id: store, start: Store, name: store, shutdown: 10s}
    - id: limiters
      start: Limiters
      name: limiters
      args: {store: store, spawner: spawner, workers: workers}
    - {id: spawner, start: Spawner, name: spawner, shutdown: 10s}
    - {id: workers, start: Workers, name: workers, shutdown: 10s}
    - id: listener
      start: Listener
      name: listener
      args: {store: store, limiters: limiters}
      shutdown: 10s
"""


def eventually(condition, what):
    """Waits for condition() to be true and returns what it gave."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("never: " + what)
        time.sleep(0.01)


def is_alive(pid):
    """Whether the process exists and is no zombie."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):  # the second: between open and read
        return False


def children(pid):
    """The pids of its child processes."""
    found = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % entry, "rb") as file:
                if int(file.read().rpartition(b")")[2].split()[1]) == pid:
                    found.add(int(entry))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return found


class Answer:
    """One HTTP response."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One connection; a new one whenever the old one is gone."""

    def __init__(self, port):
        self.port = port
        self.connection = None

    def ask(self, method, target, body=None, headers=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        if isinstance(body, dict):
            body = json.dumps(body)
        try:
            self.connection.request(method, target, body=body, headers=headers or {})
            response = self.connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        except (http.client.HTTPException, OSError):
            self.close()
            raise

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Service:
    """The running program; `folder` holds its database and what it logs, and outlives it."""

    def __init__(self, program, folder, extra=None):
        self.program, self.folder, self.extra = program, folder, extra or {}
        self.process = None
        self.port = None
        self.printed = ""

    user = None  # it runs as this user
    limits = {}  # of its resources
    intensity = 50  # of its supervisor

    def kinds(self):
        """The kinds of jobs, as YAML below `kinds:`."""
        return KINDS

    def start(self):
        config = os.path.join(self.folder, "jobs.yaml")
        with open(config, "w") as file:
            file.write("application: jobs\nsettings:\n  kinds:" + self.kinds())
            file.write(TREE % self.intensity)
        environment = {
            **os.environ,
            "JOBS__LISTEN": "127.0.0.1:0",
            "JOBS__DATABASE": os.path.join(self.folder, "jobs.db"),
            **self.extra,
        }
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--config", config, "foreground"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=self.folder,
                user=self.user,
                preexec_fn=self._set_limits if self.limits else None,
            )
        self._read_start_line()
        return self

    def _set_limits(self):
        for what, limit in self.limits.items():
            resource.setrlimit(what, limit)

    def _read_start_line(self):
        deadline = time.monotonic() + PATIENCE
        text = b""
        found = None
        while not found:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            got = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not got:
                raise AssertionError("it did not start: %r\n%s" % (text, self.log()))
            text += got
            found = re.search(rb"http://127\.0\.0\.1:(\d+)\s", text)
        self.port = int(found.group(1))
        self.printed = text.decode()

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as file:
            return file.read()

    def client(self):
        return Client(self.port)

    def kill(self):
        self.process.kill()
        self.wait_for_end()

    def stop(self):
        """The orderly stop. Returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait_for_end()

    def wait_for_end(self):
        status = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        return status

    # ---- What a client does.

    def ask(self, method, target, body=None, headers=None):
        client = self.client()
        try:
            return client.ask(method, target, body, headers)
        finally:
            client.close()

    def submit(self, kind, text=""):
        answer = self.ask("POST", "/jobs", {"kind": kind, "input": text})
        assert answer.status == 202, (answer.status, answer.body)
        return answer.json["id"]

    def job(self, job_id):
        answer = self.ask("GET", "/jobs/" + job_id)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    def wait(self, job_id, *states):
        """The job once it is in one of the states."""

        def reached():
            job = self.job(job_id)
            return job if job["state"] in states else None

        return eventually(reached, "job %s is %s" % (job_id, " or ".join(states)))
