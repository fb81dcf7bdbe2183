"""The jobs program where the machine or its clients give trouble."""

import http.client
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from service import Client, Service, eventually

PROGRAM = os.path.abspath(sys.argv.pop(1))
NOBODY = 65534


class TroubleTest(unittest.TestCase):
    environment = {}

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.disk = None
        self.service = Service(PROGRAM, self.folder.name, self.environment)

    def tearDown(self):
        if self.service.process is not None and self.service.process.poll() is None:
            self.service.kill()
        if self.disk is not None:
            self.disk.remove()
        self.folder.cleanup()

    def refused(self):
        """The reason of the 503 that a submission gets, or None."""
        answer = self.service.ask("POST", "/jobs", {"kind": "sha256", "input": "x"})
        if answer.status == 202:
            return None
        self.assertEqual(answer.status, 503, answer.body)
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        return answer.json["error"]

    def has_room(self):
        """Whether a connection is served: those that are closing hold their places."""
        try:
            return self.service.ask("GET", "/healthz").status == 200
        except (http.client.HTTPException, OSError):
            return False

    def serves_again(self):
        eventually(lambda: self.service.ask("GET", "/healthz").status == 200, "it is healthy")
        eventually(lambda: self.refused() is None, "it accepts jobs")
        self.service.wait(self.service.submit("sha256", "x"), "done")


class SmallDisk:
    """A folder on a file system of 4 MiB; where nothing may be mounted, files may not grow."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "disk")
        os.mkdir(self.folder)
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", self.folder]
        self.mounted = subprocess.run(mount, stderr=subprocess.DEVNULL).returncode == 0
        self.ballast = os.path.join(self.folder, "ballast")

    def fill(self, pid):
        if not self.mounted:
            size = os.path.getsize(os.path.join(self.folder, "jobs.db-wal"))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            return
        with open(self.ballast, "wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError:
                    pass  # full, to this size

    def free(self, pid):
        if not self.mounted:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
            return
        os.remove(self.ballast)

    def remove(self):
        if self.mounted:
            subprocess.run(["umount", self.folder], check=True)


class Disk(TroubleTest):
    def test_a_full_disk_is_a_503_with_the_reason_until_there_is_room(self):
        self.disk = disk = SmallDisk(self.folder.name)
        self.service.extra["JOBS__DATABASE"] = os.path.join(disk.folder, "jobs.db")
        self.service.start()
        pid = self.service.process.pid
        self.serves_again()
        path = os.path.join(self.folder.name, "go")
        running = self.service.submit("until", path + "\n")
        self.service.wait(running, "running")
        disk.fill(pid)
        reason = eventually(self.refused, "the disk is full")
        self.assertRegex(reason, "full|disk")
        self.assertEqual(self.service.ask("GET", "/healthz").status, 503)
        self.assertEqual(self.service.job(running)["state"], "running")  # what is stored is shown
        open(path, "w").close()  # it ends, which cannot be written down now
        disk.free(pid)
        self.serves_again()
        job = self.service.wait(running, "done")
        self.assertEqual((job["attempts"], job["output"]), (1, "went\n"))
        self.assertEqual(self.service.process.pid, pid)
        self.assertEqual(self.service.stop(), 0)

    def test_a_read_only_database_is_a_503_with_the_reason_until_it_is_mended(self):
        database = os.path.join(self.folder.name, "jobs.db")
        self.service.start()
        self.serves_again()
        self.assertEqual(self.service.stop(), 0)
        self.as_nobody()
        os.chmod(database, 0o444)
        self.service.start()
        reason = eventually(self.refused, "the database cannot be written")
        self.assertIn("jobs.db", reason)
        self.assertEqual(self.service.ask("GET", "/healthz").status, 503)
        os.chmod(database, 0o644)
        self.serves_again()

    def as_nobody(self):
        """Permissions say nothing to root, so the service runs as somebody else from here on."""
        if os.geteuid() != 0:
            return
        copy = os.path.join(self.folder.name, "jobs")
        shutil.copy(PROGRAM, copy)
        os.chmod(copy, 0o755)
        for name in [".", *os.listdir(self.folder.name)]:
            os.chown(os.path.join(self.folder.name, name), NOBODY, NOBODY)
        self.service.program = copy
        self.service.user = NOBODY


class Descriptors(TroubleTest):
    def test_r_031_without_descriptors_it_waits_and_serves_those_it_has(self):
        self.service.start()
        self.serves_again()
        pid = self.service.process.pid
        client = self.service.client()
        self.assertEqual(client.ask("GET", "/healthz").status, 200)
        in_use = len(os.listdir("/proc/%d/fd" % pid))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use + 8, 4096))
        held = [socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(100)]
        lines, used, since = self.service.log().count("\n"), cpu_seconds(pid), time.monotonic()
        accepted = client.ask("POST", "/jobs", {"kind": "sha256", "input": "x"})
        self.assertEqual(accepted.status, 202)
        while time.monotonic() < since + 3:
            self.assertEqual(client.ask("GET", "/jobs?limit=1").status, 200)
            time.sleep(0.1)
        self.assertLess(cpu_seconds(pid) - used, 0.2 * (time.monotonic() - since))
        self.assertLess(self.service.log().count("\n") - lines, 20)
        for connection in held:
            connection.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (1024, 4096))
        eventually(self.has_room, "there is room")
        self.serves_again()
        client.close()
        job = self.service.wait(accepted.json["id"], "done", "failed")
        if job["state"] == "failed":
            self.assertIn("Too many open files", job["error"])
        self.assertEqual(self.service.process.pid, pid)

    def test_r_031_few_descriptors_from_the_start(self):
        self.service.limits = {resource.RLIMIT_NOFILE: (64, 64)}
        self.service.start()
        client = self.service.client()
        self.assertEqual(client.ask("GET", "/healthz").status, 200)
        held = [socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(200)]
        ids = []
        for number in range(5):
            answer = client.ask("POST", "/jobs", {"kind": "sha256", "input": str(number)})
            self.assertEqual(answer.status, 202)
            ids.append(answer.json["id"])
        for connection in [client, *held]:
            connection.close()
        eventually(self.has_room, "there is room")
        for job_id in ids:
            self.service.wait(job_id, "done", "failed")
        self.serves_again()
        self.assertLess(self.service.log().count("\n"), 60)


class Connections(TroubleTest):
    environment = {"JOBS__HTTP__MAX_CONNECTIONS": "5"}

    def test_connections_beyond_the_limit_are_refused_and_counted(self):
        self.service.start()
        client = self.service.client()
        self.assertEqual(client.ask("GET", "/healthz").status, 200)
        held = [socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(4)]
        eventually(lambda: self.metric(client, "jobs_http_connections ") == 5, "all are open")
        answer = self.service.ask("GET", "/healthz")
        self.assertEqual(answer.status, 503)
        self.assertEqual(self.metric(client, "jobs_http_connections_refused_total "), 1)
        for connection in held:
            connection.close()
        eventually(self.has_room, "there is room")

    def metric(self, client, name):
        text = client.ask("GET", "/metrics").body.decode()
        return [float(line.split()[1]) for line in text.splitlines() if line.startswith(name)][0]


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    unittest.main(verbosity=2)
