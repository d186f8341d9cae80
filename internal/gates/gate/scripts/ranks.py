"""Starts the ranks of a gate, hands each its own part of a task, and prints what came of it.

    PYTHON -I -S -B ranks.py < JOB

The job is one line of JSON on standard input:

    nonce     marks the answer; no rank gets it
    load      modules of frameworks; forks.py imports them once for all ranks
    launches  to start one after the other, each with
        parts     rank n gets parts[n] and no other
        program   of a rank: a file of Python and its arguments
        launcher  the command that starts the ranks; [] starts them here
        meet      whether ranks started here meet at a key-value server, as Horovod's do with Gloo
        clean     whether files that its ranks write are named
        failing   the ranks that are to fail at their end, which hear of it there
        limit     seconds until all ends
    watch     a regular expression; files that a rank maps with such a path are named
    members   of the artifact: such files get their digests
    search    directories in which files that ranks write are named
    grace     seconds in which ranks end, once all came to their end or one has ended early

The answer is one line of JSON on standard output: the "nonce" of the job, and as "ends"
for each launch

    exit      status of the launcher; null if it was killed at the limit
    log       its output, and that of the ranks
    ranks     for each rank: the "lines" that it reported, whether it came to its "end",
              what it had "mapped" there, the files whose code it had "patched" in its memory,
              its "sockets" of the network, its "exit" status by the kernel, and "why" that is
              missing; null for a rank that did not start
    datagrams how many datagrams this network sent, or had no route for
    left      the programs of processes that ranks started and did not end
    written   what the launch changed in the file system, other than temporary files and the work of frameworks that
              begin; [] if not asked

Nothing of the artifact runs in this process. A program of a rank runs in a fork of
forks.py that is a child of this process. It begins only when every rank is there.
"""
import ctypes
import http.server
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import witness

os.environ["KERAS_HOME"] = HERE  # it has a keras.json: Keras need not write one, and who changes it is named

MOST = 64 << 20  # bytes that a rank may report


class Forks:
    """The process that has the frameworks, and starts ranks."""

    def __init__(self, modules):
        self.loaded = 0  # the time at which it had the frameworks
        self.load(modules)

    def load(self, modules):
        self.modules = modules
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "forks.py"), str(theirs.fileno()), *modules],
                                        stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()

    def start(self, program, env, descriptors, deadline):
        """The process of a new rank, or 0. Where a framework crashes, it is loaded by each rank alone."""
        try:
            self.channel.settimeout(max(0.1, deadline - time.monotonic()))
            socket.send_fds(self.channel, [json.dumps({"program": program, "env": env}).encode()], descriptors)
            answer = self.channel.recv(12)
        except OSError:
            answer = b""
        if answer:
            process, self.loaded = struct.unpack("=iq", answer)
            return process
        self.process.kill()
        self.process.wait()
        if not self.modules:
            return 0
        self.load([])
        return self.start(program, env, descriptors, deadline)


class Rank:
    """A rank: the connection of its rank.py, or None, and what its program finds the others by."""

    def __init__(self, connection, env, launchers=()):
        self.connection, self.env, self.launchers, self.process = connection, env, launchers, 0
        self.report = {"lines": [], "end": False, "mapped": [], "patched": [], "sockets": [], "exit": None, "why": ""}

    def start(self, forks, program, output, deadline):
        self.channel, theirs = socket.socketpair()
        self.process = forks.start(program, self.env, [theirs.fileno(), output, *self.launchers], deadline)
        theirs.close()
        for descriptor in self.launchers:
            os.close(descriptor)

    def kill(self):
        """End a rank that has not ended."""
        try:
            if self.process and self.report["exit"] is None:
                os.kill(self.process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def await_exit(self, others):
        """Note the exit status by the kernel, and tell it to the launcher, which ends the others after a failure."""
        _, status = os.waitpid(self.process, 0)
        self.report["exit"] = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self.channel.shutdown(socket.SHUT_RDWR)  # others may hold the other end
        while self.report["end"] and any(rank.report["exit"] is None for rank in others):
            time.sleep(0.01)
        if self.connection:
            try:
                self.connection.sendall((json.dumps({"exit": self.report["exit"]}) + "\n").encode())
            except OSError:
                pass  # its launcher has ended it

    def follow_launcher(self):
        """End with a rank.py that its launcher ends."""
        try:
            self.connection.recv(1)
        except OSError:
            pass
        self.kill()


class Launch:
    def __init__(self, launch, job):
        self.launch, self.job, self.ranks, self.log = launch, job, [None] * len(launch["parts"]), witness.Ends()
        self.deadline = time.monotonic() + launch["limit"]
        self.early = 0.0  # when the first rank ended without coming to its end
        self.all_ended = 0.0  # when the last rank came to its end
        self.changed = threading.Condition()

    def run(self, forks, changes):
        before, begun = witness.datagrams(), witness.now()
        log, output = os.pipe()
        reader = threading.Thread(target=self.read_log, args=(log,), daemon=True)
        reader.start()
        launcher = None
        if self.launch["launcher"]:
            launcher = self.gather(output)
        else:
            self.ranks = [Rank(None, dict(os.environ, **self.places(n))) for n in range(len(self.ranks))]
        if all(self.ranks):
            self.attend(forks, output)
        os.close(output)
        status = self.stop(launcher) if self.launch["launcher"] else 0
        reader.join(2)
        sent = witness.datagrams() - before
        return {"exit": status, "log": self.log.text(), "ranks": [rank.report if rank else None for rank in self.ranks],
                "datagrams": sent, "left": end_orphans(forks.process.pid), "written": changes.since(max(begun, forks.loaded)) if self.launch["clean"] else []}

    def gather(self, output):
        """Start the launcher, and wait until every rank has connected. No program of a rank runs before."""
        with tempfile.TemporaryDirectory(prefix="ranks-") as directory, socket.socket(socket.AF_UNIX) as listener:
            path = os.path.join(directory, "socket")
            listener.bind(path)
            listener.listen(len(self.ranks))
            listener.settimeout(0.05)
            rank = [sys.executable, "-I", "-S", "-B", os.path.join(HERE, "rank.py"), path]
            try:
                launcher = subprocess.Popen(self.launch["launcher"] + rank, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, start_new_session=True)
            except OSError as problem:
                self.log.add(str(problem).encode())
                return None
            processes = set()
            while time.monotonic() < self.deadline and not all(self.ranks):
                running = launcher.poll() is None
                try:
                    connection, _ = listener.accept()
                except socket.timeout:
                    if running:
                        continue
                    break
                self.welcome(connection, processes)
            return launcher

    def welcome(self, connection, processes):
        """Take a rank by its word, and by its process as the kernel names it."""
        process, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        connection.settimeout(30)
        text, launchers, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        if not text.endswith(b"\n"):
            text += connection.makefile("rb").readline()
        connection.settimeout(None)
        said = json.loads(text)
        n = said.get("rank")
        if n in range(len(self.ranks)) and not self.ranks[n] and process not in processes:
            self.ranks[n] = Rank(connection, said["env"], launchers)
            processes.add(process)

    def places(self, n):
        """The variables by which Horovod's Gloo finds its ranks, as horovodrun sets them."""
        if not self.launch["meet"]:
            return {}
        if not hasattr(self, "server"):
            Store.values.clear()
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
            threading.Thread(target=self.server.serve_forever, daemon=True).start()
        size = len(self.ranks)
        variables = {"RANK": n, "SIZE": size, "LOCAL_RANK": n, "LOCAL_SIZE": size, "CROSS_RANK": 0, "CROSS_SIZE": 1,
                     "HOSTNAME": "localhost", "CONTROLLER": "gloo", "CPU_OPERATIONS": "gloo", "GLOO_IFACE": "lo",
                     "GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "GLOO_RENDEZVOUS_PORT": self.server.server_port}
        return {"HOROVOD_" + name: str(value) for name, value in variables.items()}

    def read_log(self, log):
        with open(log, "rb", buffering=0) as pipe:
            for data in iter(lambda: pipe.read(1 << 16), b""):
                self.log.add(data)

    def attend(self, forks, output):
        """Start every rank, hand out the parts, and hear every rank until it has ended."""
        for rank in self.ranks:
            rank.start(forks, self.launch["program"], output, self.deadline)
        if not all(rank.process for rank in self.ranks):
            self.log.add(b"\nno process can be started\n")
            for rank in self.ranks:
                rank.kill()
            self.ranks = [None] * len(self.ranks)
            return
        threads = []
        for n, (rank, part) in enumerate(zip(self.ranks, self.launch["parts"])):
            threads.append(threading.Thread(target=self.hear, args=(rank, part, n in self.launch["failing"]), daemon=True))
            threads.append(threading.Thread(target=rank.await_exit, args=(self.ranks,), daemon=True))
            if rank.connection:
                threading.Thread(target=rank.follow_launcher, daemon=True).start()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            late = time.monotonic() > self.deadline
            first = self.early or self.all_ended
            if late or first and time.monotonic() > first + self.job["grace"]:
                for rank in self.ranks:
                    if rank.report["exit"] is None and not rank.report["why"]:
                        rank.report["why"] = self.why(rank, late)
                    rank.kill()
            threads[0].join(0.02)
            for thread in threads:
                thread.join(0)

    def why(self, rank, late):
        if late:
            return "it was still running after %d seconds" % self.launch["limit"]
        return "it came to its end and did not exit" if rank.report["end"] else "it was stopped: another rank had ended"

    def hear(self, rank, part, failing):
        report, size = rank.report, 0
        try:
            rank.channel.sendall((json.dumps(part) + "\n").encode())
            for line in rank.channel.makefile("rb"):
                size += len(line)
                if size > MOST:
                    report["why"] = "it reports more than %d bytes" % MOST
                    rank.kill()
                    break
                if line == b'{"end": true}\n':
                    report["mapped"] = witness.mapped(rank.process, self.job["watch"], self.job["members"])
                    report["patched"], report["sockets"] = witness.patched(rank.process), witness.sockets(rank.process)
                    self.reach_end(rank)
                    rank.channel.sendall(b"fail\n" if failing else b"go\n")
                    break
                report["lines"].append(line.decode(errors="replace").rstrip("\n"))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it ended without reading what it was sent
        except OSError as problem:
            report["why"] = report["why"] or str(problem)
        with self.changed:
            if not report["end"] and not self.early:
                self.early = time.monotonic()
            self.changed.notify_all()

    def reach_end(self, rank):
        """Wait until all ranks have come to their end, or one of them will not."""
        with self.changed:
            rank.report["end"] = True
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.early or all(r.report["end"] for r in self.ranks))
            self.all_ended = time.monotonic()

    def stop(self, launcher):
        """Give the launcher time to end, then end it with all that it started."""
        if not launcher:
            return 127
        status = None
        try:
            status = launcher.wait(max(0.1, min(self.job["grace"], self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            launcher.send_signal(signal.SIGTERM)
            try:
                launcher.wait(2)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(launcher.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        launcher.wait()
        return status


class Store(http.server.BaseHTTPRequestHandler):
    """The key-value server of a job without a launcher: PUT, GET and DELETE of small values."""
    values, lock = {}, threading.Lock()

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(min(int(self.headers["Content-Length"]), 1 << 20))
        with self.lock:
            self.values[self.path] = body
        self.answer(200)

    def do_GET(self):
        with self.lock:
            body = self.values.get(self.path)
        self.answer(404 if body is None else 200, body or b"")

    def do_DELETE(self):
        with self.lock:
            self.values.pop(self.path, None)
        self.answer(200)

    def log_message(self, *args):
        pass


def end_orphans(forks):
    """End the processes that outlive the rank or the launcher which started them, and name their programs."""
    patience = time.monotonic() + 5  # on a busy host, those of a launcher end some time after it
    while True:
        left = orphans(forks)
        if not left or time.monotonic() > patience:
            break
        time.sleep(0.05)
    for process in left:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return list(left.values())


def orphans(forks):
    """The programs of processes that run on, by process."""
    left = {}
    for process in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        try:
            with open("/proc/%d/stat" % process) as stat:
                text = stat.read()
        except OSError:
            continue
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        if int(parent) != os.getpid() or process == forks:
            continue
        if state == "Z":
            os.waitpid(process, 0)
        else:
            left[process] = text[text.index("(") + 1:text.rindex(")")]
    return left


class Changes:
    """The files and directories that change below some directories.

    The kernel notes the time of every change, which no process can set. A directory
    changes when something in it is made, renamed or removed.
    """
    MOST = 1000
    TEMPORARY = {"/proc", "/sys", "/dev", "/tmp", "/var/tmp"}

    def __init__(self, directories):
        self.directories = directories

    def since(self, since):
        """What changed since a time of the kernel."""
        found, directories = [], list(self.directories)
        while directories and len(found) < self.MOST:
            try:
                entries = os.scandir(directories.pop())
            except OSError:
                continue  # its owner closed it, and so changed it
            with entries:
                for entry in entries:
                    if entry.path in self.TEMPORARY:
                        continue
                    if entry.stat(follow_symlinks=False).st_ctime_ns > since:
                        found.append(entry.path)
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
        return sorted(path for path in found if not any(other.startswith(path + "/") for other in found))


PR_SET_CHILD_SUBREAPER = 36

witness.close_to_others()
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the ranks that forks.py starts become its children
job = json.loads(sys.stdin.readline())
changes = Changes(job["search"])
forks = Forks(job["load"])
ends = [Launch(launch, job).run(forks, changes) for launch in job["launches"]]
print("\n" + json.dumps({"nonce": job["nonce"], "ends": ends}), flush=True)
os._exit(0)
