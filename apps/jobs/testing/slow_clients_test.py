"""800 slow clients beside a normal one: nobody waits for them, and each is closed in time."""

import collections
import mmap
import os
import random
import resource
import selectors
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
import unittest

from service import PATIENCE, Service, eventually

PROGRAM = os.path.abspath(sys.argv.pop(1))
MIB = 1 << 20
DEADLINES = {"header": 5, "body": 4, "write": 4, "idle": 3}  # seconds; each has several drips
CLIENTS = {"header": 500, "body": 100, "write": 100, "idle": 100}  # by the deadline they meet
DESCRIPTORS = 4096
STORED, OUTPUT = 2000, 16 << 10  # jobs that have ended, and what each has printed


def is_sanitized(program):
    """A sanitizer makes everything several times slower, and its memory says nothing."""
    with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b"__asan_init") >= 0 or text.find(b"__tsan_init") >= 0


SANITIZED = is_sanitized(PROGRAM)


def raise_descriptors():
    """As many as this needs; where they are not to be had, there are fewer clients."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    had = DESCRIPTORS if most == resource.RLIM_INFINITY else min(DESCRIPTORS, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (had, most))
    if had < DESCRIPTORS:
        for kind in CLIENTS:
            CLIENTS[kind] = CLIENTS[kind] * had // DESCRIPTORS
        print("only %d descriptors: the clients are %s" % (had, CLIENTS))


raise_descriptors()


class JobsService(Service):
    limits = {resource.RLIMIT_NOFILE: resource.getrlimit(resource.RLIMIT_NOFILE)}

    def kinds(self):
        return '\n    nothing: {command: ["true"], max_concurrency: 4, max_queued: 100000}\n'

    def fill(self):
        """Puts ended jobs into the database, as if the service had run them."""
        self.start()
        assert self.stop() == 0
        database = sqlite3.connect(os.path.join(self.folder, "jobs.db"))
        with database:
            ((now,),) = database.execute("SELECT coalesce(max(moment), 0) FROM clock")
            ids = range(1, STORED + 1)
            columns = "id, kind, state, attempts, enqueued_at, due_at, finished_at, wall_offset"
            database.executemany(
                "INSERT INTO jobs(%s) VALUES(?, 'nothing', 'done', 1, ?2, ?2, ?2, 0)" % columns,
                [(job_id, now) for job_id in ids],
            )
            database.executemany(
                "INSERT INTO results VALUES(?, ?, 0, x'', 0)",
                [(job_id, b"x" * OUTPUT) for job_id in ids],
            )
        database.close()


class Slow:
    """One slow client."""

    def __init__(self, kind, connection):
        self.kind, self.connection = kind, connection
        self.since = time.monotonic()
        self.answer = b""


class Crowd:
    """Clients that send or read next to nothing. tick() lets each do what is due."""

    FIRST = {
        "header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ",
        "body": b"POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
        "write": b"GET /jobs?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n",
        "idle": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    }
    PAUSE = {"header": 2, "body": 1, "write": 0.1}  # between two bytes, or two looks

    def __init__(self, port):
        self.port = port
        self.coming = [kind for kind, count in CLIENTS.items() for _ in range(count)]
        random.shuffle(self.coming)
        self.selector = selectors.DefaultSelector()  # all but the readers
        self.open = set()
        self.due = {kind: collections.deque() for kind in self.PAUSE}  # (when, client)
        self.closed = []  # (kind, seconds, the first line of the answer)

    def tick(self):
        """True while any of them is there."""
        for _ in range(min(20, len(self.coming))):
            self.enter(self.coming.pop())
        for key, _ in self.selector.select(timeout=0):
            self.take(key.data)
        now = time.monotonic()
        for kind, queue in self.due.items():
            while queue and queue[0][0] <= now:
                _, client = queue.popleft()
                if client in self.open:
                    self.act(client)
                    queue.append((now + self.PAUSE[kind], client))
        return bool(self.coming or self.open)

    def enter(self, kind):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(self.FIRST[kind])
        connection.setblocking(False)
        client = Slow(kind, connection)
        self.open.add(client)
        if kind != "write":
            self.selector.register(connection, selectors.EVENT_READ, client)
        if kind in self.PAUSE:
            self.due[kind].append((client.since + self.PAUSE[kind], client))

    def act(self, client):
        if client.kind == "write":
            if not self.is_connected(client.connection):
                self.leave(client)
            return
        try:
            client.connection.send(b"x")
        except OSError:
            pass  # it is closed; what it was told is still to be read

    def is_connected(self, connection):
        """Asks the kernel and reads nothing."""
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1

    def take(self, client):
        try:
            got = client.connection.recv(65536)
        except ConnectionError:
            got = b""
        client.answer += got
        if not got:
            self.leave(client)

    def leave(self, client):
        if client.kind != "write":
            self.selector.unregister(client.connection)
        client.connection.close()
        self.open.remove(client)
        line = client.answer.partition(b"\r\n")[0]
        self.closed.append((client.kind, time.monotonic() - client.since, line))

    def close(self):
        for client in self.open:
            client.connection.close()
        self.selector.close()


class NormalClient:
    """Asks for its health, shows a job and submits one, in turn, a hundred times a second."""

    def __init__(self, service):
        self.client, self.taken, self.count = service.client(), [], 0
        self.job = "1"

    def ask(self):
        turn = self.count % 3
        self.count += 1
        begun = time.monotonic()
        if turn == 0:
            answer, expected = self.client.ask("GET", "/healthz"), 200
        elif turn == 1:
            answer, expected = self.client.ask("GET", "/jobs/" + self.job), 200
        else:
            answer, expected = self.client.ask("POST", "/jobs", {"kind": "nothing"}), 202
        self.taken.append(time.monotonic() - begun)
        assert answer.status == expected, (answer.status, answer.body)
        if turn == 2:
            self.job = answer.json["id"]
        time.sleep(max(0, begun + 0.01 - time.monotonic()))

    def report(self, when):
        """Prints how long the answers took. Returns the 99th percentile, in milliseconds."""
        taken = [1000 * seconds for seconds in self.taken]
        p50, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[-1]
        numbers = (when + ":", len(taken), p50, p99, max(taken))
        print("%-8s %d requests, p50 %.1f, p99 %.1f, max %.1f ms" % numbers)
        return p99


class SlowClients(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        limits = {
            "JOBS__HTTP__%s_TIMEOUT" % name.upper(): "%ds" % seconds
            for name, seconds in DEADLINES.items()
        }
        self.service = JobsService(PROGRAM, folder.name, limits)
        self.addCleanup(self.end_service)
        self.service.fill()
        self.service.start()
        self.pid = self.service.process.pid

    def end_service(self):
        if self.service.process is not None and self.service.process.poll() is None:
            self.service.kill()

    def test_r_030_slow_clients_are_closed_at_their_deadline_and_harm_nobody(self):
        normal = NormalClient(self.service)
        for _ in range(100):
            normal.ask()
        alone = normal.report("alone")
        normal.taken.clear()
        memory, descriptors = self.resident(), self.descriptors()
        first = self.run_crowd(normal)
        eventually(lambda: self.descriptors() < descriptors + 20, "their descriptors are closed")
        second = self.run_crowd(normal)
        p99 = normal.report("beside")
        sizes = tuple(size // MIB for size in (memory, first, second))
        print("memory:  %d MiB, with them %d, the second time %d" % sizes)
        # What the machine itself adds at this moment, it adds to a client alone too.
        self.assertLess(p99, alone + (1000 if SANITIZED else 50), "ms")
        if not SANITIZED:  # which keep what was freed
            self.assertLess(first - memory, 150 * MIB)
            self.assertLess(second - first, 50 * MIB)
        self.stop_beside(normal)

    def run_crowd(self, normal):
        """Until all of them are closed. Returns the most memory that the service had."""
        crowd = Crowd(self.service.port)
        self.addCleanup(crowd.close)
        end = time.monotonic() + PATIENCE
        most = 0
        while crowd.tick():
            self.assertLess(time.monotonic(), end, "%d are still there" % len(crowd.open))
            normal.ask()
            most = max(most, self.resident())
        self.check_closed(crowd.closed)
        return most

    def check_closed(self, closed):
        self.assertEqual(len(closed), sum(CLIENTS.values()))
        late = 10 if SANITIZED else 2
        for kind, seconds, line in closed:
            # For an answer and for being idle it begins a moment later, with the answer.
            self.assertGreater(seconds, DEADLINES[kind] - 0.05, kind)
            self.assertLess(seconds, DEADLINES[kind] + late, kind)
            if kind != "write":
                status = b"200 OK" if kind == "idle" else b"408 Request Timeout"
                self.assertEqual(line, b"HTTP/1.1 " + status)
        for kind in Crowd.FIRST:
            taken = [seconds for each, seconds, _ in closed if each == kind]
            print("%-8s closed after %.2f to %.2f s" % (kind + ":", min(taken), max(taken)))

    def stop_beside(self, normal):
        crowd = Crowd(self.service.port)
        self.addCleanup(crowd.close)
        while crowd.coming:
            crowd.tick()
            normal.ask()
        normal.client.close()
        begun = time.monotonic()
        self.assertEqual(self.service.stop(), 0)
        print("stopped: after %.2f s" % (time.monotonic() - begun))
        self.assertLess(time.monotonic() - begun, 10 if SANITIZED else 3.5)

    def resident(self):
        with open("/proc/%d/statm" % self.pid) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))


if __name__ == "__main__":
    unittest.main(verbosity=2)
