"""Releases as an operator meets them: unpacked, started, asked, stopped, moved, broken.

Prints `ROW APP-020 pass` for each row of the contract that was checked.

    app_release_test.py APP_SERVICE_TARBALL JOBS_TARBALL PACK_RELEASE
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.request

PATIENCE = 60  # seconds; for what ought to take milliseconds on a machine with nothing else to do

JOBS, PACK = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
SERVICE = os.path.abspath(sys.argv[1])
del sys.argv[1:4]


def row(name):
    """The row is printed when the test has passed."""

    def marked(test):
        def run(self):
            test(self)
            # The runner has begun a line with the name of the test.
            print("\nROW %s pass" % name, flush=True)

        run.__name__ = test.__name__
        return run

    return marked


def eventually(condition, what):
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("never: " + what)
        time.sleep(0.01)


def unpack(tarball, folder):
    with tarfile.open(tarball) as archive:
        archive.extractall(folder)
        return os.path.join(folder, archive.getnames()[0].split("/")[0])


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="otp")
        self.root = unpack(SERVICE, self.folder)
        self.extra = {}
        self.prefix = []  # in front of every command: chroot, unshare

    def tearDown(self):
        self.call("stop")
        shutil.rmtree(self.folder)

    @property
    def program(self):
        return os.path.join(self.root, "bin", os.path.basename(self.root).rsplit("-", 1)[0])

    def environment(self):
        return dict({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **self.extra)

    def call(self, *words, program=None):
        """Exit status and output, both streams together."""
        ran = subprocess.run(
            self.prefix + [program or self.program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            env=self.environment(),
            cwd="/",
        )
        return ran.returncode, ran.stdout.decode(errors="replace")

    def good(self, *words, **options):
        status, text = self.call(*words, **options)
        self.assertEqual(status, 0, text)
        return text

    def log(self):
        name = os.path.basename(self.program) + ".log"
        with open(os.path.join(self.root, "var", name), errors="replace") as file:
            return file.read()

    def said(self):
        """What the service's children said of themselves."""
        words = ("up ", "down ", "greeting ")
        return [line for line in self.log().splitlines() if line.startswith(words)]


UP = ["up base", "up first", "greeting built", "up second"]
DOWN = ["down second", "down first", "down base"]


class Service(ReleaseTest):
    @row("APP-010")
    def test_term_ends_a_running_release_in_order_with_status_0(self):
        node = subprocess.Popen(
            [self.program, "foreground"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
        )
        lines = []
        while "running" not in (lines[-1] if lines else ""):
            lines.append(node.stdout.readline().decode())
        node.send_signal(signal.SIGTERM)
        rest = node.stdout.read().decode().splitlines()
        self.assertEqual(node.wait(timeout=PATIENCE), 0)
        node.stdout.close()
        self.assertEqual([line for line in rest if line.startswith("down")], DOWN)

    @row("APP-017")
    def test_variables_are_read_at_every_boot(self):
        self.extra["GREETING"] = "first"
        self.good("start")
        self.extra["GREETING"] = "second"
        self.assertEqual(self.good("rpc", "greet"), "first from service\n")
        self.good("stop")
        self.good("start")
        self.assertEqual(self.good("rpc", "greet"), "second from service\n")
        # It was read before the application's first process asked for it.
        greetings = [line for line in self.said() if line.startswith("greeting")]
        self.assertEqual(greetings, ["greeting first", "greeting second"])
        self.extra["SERVICE__GREETING"] = "third"  # beats what the file says, in every form
        self.good("restart")
        self.assertEqual(self.good("rpc", "greet"), "third from service\n")

    @row("APP-020")
    def test_a_release_is_whole_and_runs_wherever_it_lies(self):
        found = sorted(
            os.path.relpath(path, self.root)
            for path in glob.glob(self.root + "/**", recursive=True)
            if os.path.isfile(path)
        )
        self.assertEqual(found, ["bin/service", "config/service.yaml", "release.json"])
        elsewhere = os.path.join(self.folder, "an other place", "service-1.2.3")
        os.mkdir(os.path.dirname(elsewhere))
        shutil.move(self.root, elsewhere)
        self.root = elsewhere
        link = os.path.join(self.folder, "link")
        os.symlink("an other place/service-1.2.3/bin/service", link)
        folder_link = os.path.join(self.folder, "folder")
        os.symlink("an other place/service-1.2.3", folder_link)
        self.good("start", program=link)
        pid = self.good("pid")
        for program in (link, os.path.join(folder_link, "bin/service")):
            self.assertEqual(self.good("pid", program=program), pid)
        with open("/proc/%d/maps" % int(pid)) as file:
            mapped = set(re.findall(r"(/.*\.so\S*|/.*/bin/\S+)", file.read()))
        glibc = re.compile(r".*/(lib(c|m)|ld-linux.*)\.so")
        outside = [path for path in mapped if not glibc.match(path) and elsewhere not in path]
        self.assertEqual(outside, [])
        self.good("stop", program=link)

    @row("APP-021")
    def test_the_commands_of_a_running_release(self):
        self.assertEqual(self.good("version").splitlines()[0], "service 1.2.3")
        self.assertEqual(self.call("rpc", "greet")[0], 3)
        started = self.good("start")
        pid = self.good("pid").strip()
        self.assertEqual(started, "service 1.2.3 started (pid %s)\n" % pid)
        self.assertEqual(self.good("rpc", "greet", "a b", "c"), "built a b c from service\n")
        self.assertEqual(self.call("rpc", "fail"), (1, "service: {no_disk,7}\n"))
        status, text = self.call("rpc", "gret")
        self.assertEqual(status, 1)
        self.assertIn("unknown command 'gret'; there are greet, fail, applications", text)
        self.extra["GREETING"] = "anew"
        self.good("restart")
        self.assertNotEqual(self.good("pid").strip(), pid)
        self.assertEqual(self.good("rpc", "greet"), "anew from service\n")
        self.assertEqual(self.said(), UP + DOWN + [line.replace("built", "anew") for line in UP])
        self.assertEqual(self.good("stop"), "service has stopped\n")
        self.assertEqual(self.said()[-3:], DOWN)
        self.assertEqual(self.call("pid")[0], 3)
        self.good("stop")  # of what does not run: no failure

    @row("APP-022")
    def test_the_modes_of_a_release(self):
        self.good("start")
        self.assertEqual(
            self.good("rpc", "applications"), "base service / base service audit\n"
        )
        # Where they contradict each other, no release is made.
        for modes, reason in (
            ('{"base": "load"}', "{bad_mode,{service,permanent,base,load}}"),
            ('{"base": "none"}', "{bad_mode,{service,permanent,base,none}}"),
            ('{"bass": "load"}', "{unknown_application,bass}"),
            ('{"base": "lod"}', "{unknown_mode,lod}"),
        ):
            packed = self.pack('"applications": ' + modes)
            self.assertNotEqual(packed.returncode, 0)
            self.assertIn(reason, packed.stderr.decode())
            self.assertFalse(os.path.exists(os.path.join(self.folder, "packed.tar.gz")))
        packed = self.pack('"applications": {"base": "temporary", "service": "temporary"}')
        self.assertEqual(packed.returncode, 0, packed.stderr)

    def pack(self, members):
        manifest = os.path.join(self.folder, "release.json")
        with open(manifest, "w") as file:
            file.write('{"name": "service", "version": "2", "config": "config/service.yaml", ')
            file.write(members + "}")
        return subprocess.run(
            ["/bin/sh", PACK, "--check", "bin/service", "packed.tar.gz", "service-2"]
            + ["0755", self.program, "bin/service", "0644", manifest, "release.json"]
            + ["0644", os.path.join(self.root, "config/service.yaml"), "config/service.yaml"],
            stderr=subprocess.PIPE,
            cwd=self.folder,
        )

    def test_r_002_a_child_that_cannot_restart_ends_the_release(self):
        """R-002"""
        path = os.path.join(self.root, "config/service.yaml")
        with open(path, "w") as file:
            file.write(FLAKY)
        ran = subprocess.run(
            [self.program, "foreground"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            env=self.environment(),
        )
        text = ran.stdout.decode()
        self.assertEqual(ran.returncode, 1, text)
        self.assertIn("the disk is gone", text)
        self.assertRegex(text, r"flaky(.|\n)*reached_max_restart_intensity")
        self.assertIn("service ended: shutdown", text)
        self.assertIn("stopped base", text)
        self.assertEqual(self.call("status")[0], 3)

    def test_r_021_the_archive_remembers_nothing_of_its_builder(self):
        """R-021"""
        for tarball in (SERVICE, JOBS):
            with tarfile.open(tarball) as archive:
                for member in archive.getmembers():
                    self.assertEqual((member.uid, member.gid), (0, 0))
                    self.assertEqual((member.uname, member.gname), ("", ""))
                    self.assertRegex(member.name, r"^\w+-[\d.]+(/[\w.]+)*$")
                    program = member.isdir() or "/bin/" in member.name
                    self.assertEqual(member.mode, 0o755 if program else 0o644)

    def test_the_tree_shows_strategies_restarts_and_living_pids(self):
        self.good("start")
        text = re.sub(r"<0\.\d+\.\d+>", "PID", self.good("tree"))
        text = re.sub(r" +", " ", text)
        self.assertEqual(
            text,
            "service PID running supervisor rest_for_one\n"
            "├─ first PID running worker permanent 5s\n"
            "└─ inner PID running supervisor one_for_one permanent infinity\n"
            " └─ second PID running worker transient 2s\n"
            "base PID running supervisor one_for_one\n"
            "└─ base PID running worker permanent 5s\n",
        )
        alive = set(re.findall(r"<0\.\d+\.\d+>", self.good("tree")))
        self.assertEqual(len(alive), 6)

    def test_a_second_start_refuses_and_says_who_runs(self):
        self.good("start")
        pid = self.good("pid").strip()
        status, text = self.call("start")
        self.assertEqual(status, 5)
        lock = os.path.join(self.root, "var/service.lock")
        self.assertEqual(
            text, "service: could not start: already running (pid %s; %s is locked)\n" % (pid, lock)
        )
        self.assertEqual(self.call("foreground")[0], 5)
        self.assertEqual(self.good("pid").strip(), pid)

    def test_what_a_crash_left_behind_is_no_obstacle(self):
        self.good("start")
        pid = int(self.good("pid"))
        os.kill(pid, signal.SIGKILL)
        left = os.listdir(os.path.join(self.root, "var"))
        self.assertIn("service.pid", left)
        self.assertIn("service.sock", left)
        self.good("start")
        self.assertNotEqual(int(self.good("pid")), pid)
        self.assertIn("is running", self.good("status"))

    def test_the_log_of_a_daemon_is_bounded(self):
        self.extra["SERVICE_LOG_BYTES"] = "1"
        self.good("start")
        log = os.path.join(self.root, "var/service.log")
        eventually(lambda: os.path.exists(log + ".1") and os.path.getsize(log) == 0, "rotated")
        with open(log + ".1") as file:
            self.assertIn("up first", file.read())
        self.good("stop")
        self.assertIn("down first", self.log())  # the streams go on

    def test_the_file_may_name_the_run_directory(self):
        state = os.path.join(self.folder, "state")
        with open(os.path.join(self.root, "config/service.yaml"), "a") as file:
            file.write("run_dir: %s\n" % state)
        self.good("start")
        self.assertIn("service.sock", os.listdir(state))
        self.assertIn("is running", self.good("status"))
        self.assertFalse(os.path.exists(os.path.join(self.root, "var")))
        self.good("stop")


TREE = """application: service
supervisor:
  strategy: rest_for_one
  children:
    - {id: first, start: Talker, name: first, args: {id: first}}
    - {id: second, start: Talker, args: {id: second, next: first, pause: 5s}}
"""

FLAKY = """application: service
supervisor:
  strategy: rest_for_one
  intensity: 3
  children:
    - {id: flaky, start: Flaky}
    - {id: steady, start: Talker, args: {id: steady}}
"""

# What is wrong, the file, and how each of its mistakes begins.
BROKEN = [
    ("unknown key", TREE.replace("strategy", "strateggy"), ["3:3: expected "]),
    ("wrong type", TREE.replace("strategy: rest_for_one", "intensity: many"), ["3:14: expected "]),
    ("unknown server", TREE.replace("Talker, name", "Tolker, name"), ["5:26: expected "]),
    ("duplicate id", TREE.replace("id: second, start", "id: first, start"), ["6:12: expected "]),
    ("bad duration", TREE.replace("5s", "5 s"), ["6:74: expected "]),
    ("missing argument", TREE.replace("{id: second, next", "{next"), ["6:41: expected "]),
    ("bad reference", TREE.replace("next: first", "next: third"), ["6:60: expected "]),
    ("tab indentation", TREE.replace("  strategy", "\tstrategy"), ["3:1: expected "]),
    ("empty file", "", ["1:1: expected "]),
    (
        "alias bomb",
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            "%s: &%s [%s]\n" % (new, new, ", ".join(["*" + old] * 10))
            for old, new in zip("abcdefgh", "bcdefghi")
        )
        + TREE,
        [": expected "],
    ),
    ("not UTF-8", TREE.replace("id: second, next", "id: s\udce9, next"), ["6:47: expected "]),
    ("unset variable", TREE.replace("5s", '"${NOT_SET_ANYWHERE}"'), ["6:75: expected "]),
]


class BrokenFiles(ReleaseTest):
    def test_twelve_broken_files_start_nothing(self):
        self.assertEqual(len(BROKEN), 12)
        for name, text, mistakes in BROKEN:
            with self.subTest(name):
                path = os.path.join(self.folder, "broken.yaml")
                with open(path, "wb") as file:
                    file.write(text.encode(errors="surrogateescape"))
                status, said = self.call("check", path)
                self.assertEqual(status, 2, said)
                for mistake in mistakes:
                    self.assertRegex(said, re.escape(path) + r":(\d+:\d+)?" + re.escape(mistake))
                status, told = self.call("start", "--config", path)
                self.assertEqual(status, 2, told)
                for line in said.splitlines():
                    self.assertIn(line, told)
                self.assertEqual(self.call("status")[0], 3)
                self.assertEqual(self.said(), [])
        with open(path, "w") as file:
            file.write(TREE)
        self.good("check", path)


def is_root():
    return os.geteuid() == 0


class Jobs(ReleaseTest):
    def setUp(self):
        super().setUp()
        shutil.rmtree(self.root)
        self.root = unpack(JOBS, self.folder)
        self.extra["JOBS__LISTEN"] = "127.0.0.1:0"

    def url(self, text):
        return re.search(r"http://127\.0\.0\.1:\d+", text).group(0)

    @unittest.skipUnless(is_root(), "chroot is for root")
    def test_it_runs_where_there_is_only_glibc_and_a_shell(self):
        jail = os.path.join(self.folder, "jail")
        needed = set(["/bin/sh"])
        for program in (self.program, "/bin/sh"):
            listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout
            needed.update(re.findall(r"(/\S+\.so\S*)", listed.decode()))
        for path in needed:
            os.makedirs(jail + os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.realpath(path), jail + path)
        os.makedirs(jail + "/srv")
        shutil.move(self.root, jail + "/srv/jobs")
        self.prefix = ["chroot", jail, "/bin/sh", "-c", 'exec "$0" "$@"']
        self.root = "/srv/jobs"
        started = self.good("start", program="/srv/jobs/bin/jobs")
        call = lambda *words: self.good(*words, program="/srv/jobs/bin/jobs")
        with urllib.request.urlopen(self.url(started) + "/healthz") as answer:
            self.assertEqual(answer.status, 200)
        self.assertIn("is running", call("status"))
        self.assertIn("store", call("tree"))
        self.assertIn("jobs has stopped", call("stop"))
        self.assertEqual(self.call("status", program="/srv/jobs/bin/jobs")[0], 3)
        found = set()
        for folder, _, files in os.walk(jail):
            found.update(os.path.relpath(os.path.join(folder, name), jail) for name in files)
        expected = set(path[1:] for path in needed)
        own = set(name for name in found if name.startswith("srv/jobs/"))
        self.assertEqual(found - own, expected)  # nothing is written outside the release

    def test_r_026_nobody_reads_standard_output(self):
        """R-026"""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        try:
            while True:
                os.write(write_end, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(write_end, True)
        node = subprocess.Popen(
            [self.program, "foreground"],
            stdout=write_end,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
        )
        self.addCleanup(node.kill)
        eventually(lambda: "is running" in self.call("status")[1], "it runs")
        url = self.url(self.good("status"))
        with urllib.request.urlopen(url + "/healthz", timeout=PATIENCE) as answer:
            self.assertEqual(answer.status, 200)
        self.assertIn("listener", self.good("tree"))
        self.good("stop")
        self.assertEqual(node.wait(timeout=PATIENCE), 0)
        os.close(read_end)
        os.close(write_end)

    @unittest.skipUnless(is_root(), "a pid namespace is for root")
    def test_r_023_as_process_1_it_leaves_no_zombies(self):
        """R-023"""
        with open(os.path.join(self.root, "config/jobs.yaml")) as file:
            text = file.read()
        orphan = (
            "  kinds:\n    orphan:\n      max_concurrency: 8\n"
            "      command: [sh, -c, '(sleep 0.2; exec sleep 0.3) <&- >&- 2>&- & exit 5']\n"
        )
        with open(os.path.join(self.root, "config/jobs.yaml"), "w") as file:
            file.write(text.replace("  kinds:\n", orphan, 1))
        node = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", self.program, "foreground"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment(),
        )
        self.addCleanup(node.kill)
        line = ""
        while "http://" not in line:
            line = node.stdout.readline().decode()
            self.assertNotEqual(line, "", "it did not start")
        url = self.url(line)
        for _ in range(100):
            body = b'{"kind": "orphan", "input": ""}'
            with urllib.request.urlopen(url + "/jobs", data=body) as answer:
                self.assertEqual(answer.status, 202)

        def listed(state):
            with urllib.request.urlopen(url + "/jobs?limit=100&state=" + state) as answer:
                return answer.read().decode()

        eventually(lambda: listed("failed").count('"exit_status":5') == 100, "all jobs failed")
        eventually(lambda: not self.descendants(node.pid, "sleep"), "the orphans ended")
        self.assertEqual(self.descendants(node.pid, None), [])
        inner = self.descendants(node.pid, "", all_states=True)
        os.kill(inner[0], signal.SIGTERM)  # process 1 of the namespace, as `docker stop` does
        self.assertEqual(node.wait(timeout=PATIENCE), 0)
        node.stdout.close()

    def descendants(self, top, name, all_states=False):
        """The zombies below a process; with a name, whoever is called so."""
        found, below = [], {top}
        processes = []
        for entry in sorted((int(p) for p in os.listdir("/proc") if p.isdigit())):
            try:
                with open("/proc/%d/stat" % entry) as file:
                    text = file.read()
            except OSError:
                continue
            called = text[text.index("(") + 1 : text.rindex(")")]
            state, parent = text[text.rindex(")") + 2 :].split()[:2]
            processes.append((entry, int(parent), called, state))
        for _ in range(8):
            below.update(pid for pid, parent, _, _ in processes if parent in below)
        for pid, _, called, state in processes:
            if pid not in below or pid == top:
                continue
            if all_states or (name is None and state == "Z") or (name and called == name):
                found.append(pid)
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
