"""Starts the ranks of a gate, hands each its own part of a task, and prints what came of it.

    PYTHON -I -S ranks.py < JOB

The job is one line of JSON on standard input:

    nonce     marks the answer; no rank gets it
    parts     rank n gets parts[n] and no other
    program   of a rank, as an argument vector; rank.py starts it
    launcher  the command that starts the ranks; [] starts them here
    meet      whether ranks started here meet at a key-value server, as Horovod's do with Gloo
    watch     a regular expression; files that a rank maps with such a path are named with their digests
    limit     seconds until all ends
    grace     seconds in which ranks end, once all came to their end or one has ended early

The answer is one line of JSON on standard output:

    nonce     that of the job
    exit      status of the launcher; null if it was killed at the limit
    log       its output, and that of the ranks
    ranks     for each rank: the "lines" that it reported, whether it came to its "end",
              what it had "mapped" there, its "exit" status by the kernel, and "why" that
              is missing; null for a rank that did not start

Nothing of the artifact runs in this process. A rank is known by its connection, whose
process the kernel names.
"""
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


class Rank:
    def __init__(self, connection):
        pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self.pid, self.connection, self.lines = pid, connection, connection.makefile("r", encoding="utf-8")
        self.child = 0
        self.report = {"lines": [], "end": False, "mapped": [], "exit": None, "why": ""}

    def send(self, value):
        self.connection.sendall((json.dumps(value) + "\n").encode())


class Job:
    def __init__(self, job):
        self.job, self.ranks, self.log = job, [None] * len(job["parts"]), witness.Ends()
        self.deadline = time.monotonic() + job["limit"]
        self.early = 0.0  # when the first rank ended without coming to its end
        self.all_ended = 0.0  # when the last rank came to its end
        self.changed = threading.Condition()

    def run(self):
        with tempfile.TemporaryDirectory(prefix="ranks-") as directory, socket.socket(socket.AF_UNIX) as listener:
            path = os.path.join(directory, "socket")
            listener.bind(path)
            listener.listen(len(self.ranks))
            listener.settimeout(0.05)
            started = self.start([sys.executable, "-I", "-S", os.path.join(HERE, "rank.py"), path])
            reader = threading.Thread(target=self.read_log, args=(started[0],), daemon=True)
            reader.start()
            if self.gather(listener, started):
                listener.close()
                self.attend()
            status = self.stop(started)
            reader.join(2)
        return {"nonce": self.job["nonce"], "exit": status, "log": self.log.text(),
                "ranks": [rank.report if rank else None for rank in self.ranks]}

    def start(self, rank):
        """Start the launcher, or the ranks in its place."""
        read, write = os.pipe()
        output = {"stdin": subprocess.DEVNULL, "stdout": write, "stderr": write, "start_new_session": True}
        processes = [open(read, "rb", buffering=0)]
        try:
            if self.job["launcher"]:
                processes.append(subprocess.Popen(self.job["launcher"] + rank, **output))
            else:
                for n in range(len(self.ranks)):
                    processes.append(subprocess.Popen(rank, env=dict(os.environ, **self.places(n)), **output))
        except OSError as problem:
            self.log.add(str(problem).encode())
        os.close(write)
        return processes

    def places(self, n):
        """The variables by which Horovod's Gloo finds its ranks, as horovodrun sets them."""
        if not self.job["meet"]:
            return {}
        if not hasattr(self, "server"):
            self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
            threading.Thread(target=self.server.serve_forever, daemon=True).start()
        size = len(self.ranks)
        variables = {"RANK": n, "SIZE": size, "LOCAL_RANK": n, "LOCAL_SIZE": size, "CROSS_RANK": 0, "CROSS_SIZE": 1,
                     "HOSTNAME": "localhost", "CONTROLLER": "gloo", "CPU_OPERATIONS": "gloo", "GLOO_IFACE": "lo",
                     "GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "GLOO_RENDEZVOUS_PORT": self.server.server_port}
        return {"HOROVOD_" + name: str(value) for name, value in variables.items()}

    def read_log(self, pipe):
        for data in iter(lambda: pipe.read(1 << 16), b""):
            self.log.add(data)

    def gather(self, listener, started):
        """Wait until every rank has connected. No program of a rank runs before."""
        while time.monotonic() < self.deadline:
            running = any(p.poll() is None for p in started[1:])
            try:
                connection, _ = listener.accept()
            except socket.timeout:
                if running:
                    continue
                return False
            rank = Rank(connection)
            connection.settimeout(30)
            n = json.loads(rank.lines.readline()).get("rank")
            connection.settimeout(None)
            others = [r for r in self.ranks if r]
            if n in range(len(self.ranks)) and not self.ranks[n] and rank.pid not in [r.pid for r in others]:
                self.ranks[n] = rank
            if all(self.ranks):
                return True
        return False

    def attend(self):
        """Hand out the parts, and hear every rank until it has ended."""
        for n, rank in enumerate(self.ranks):
            rank.send({"program": [sys.executable if word == "PYTHON" else word for word in self.job["program"]],
                       "part": self.job["parts"][n]})
        threads = [threading.Thread(target=self.hear, args=(rank,), daemon=True) for rank in self.ranks]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            late = time.monotonic() > self.deadline
            first = self.early or self.all_ended
            if late or first and time.monotonic() > first + self.job["grace"]:
                for rank in self.ranks:
                    if rank.report["exit"] is None and not rank.report["why"]:
                        rank.report["why"] = self.why(rank, late)
                    self.kill(rank.pid)
                    self.kill(rank.child)
            threads[0].join(0.02)
            for thread in threads:
                thread.join(0)

    def why(self, rank, late):
        if late:
            return "it was still running after %d seconds" % self.job["limit"]
        return "it came to its end and did not exit" if rank.report["end"] else "it was stopped: another rank had ended"

    def hear(self, rank):
        report = rank.report
        try:
            for line in rank.lines:
                said = json.loads(line)
                if "child" in said:
                    rank.child = said["child"]
                elif "line" in said and said["line"] == '{"end": true}':
                    report["mapped"] = witness.mapped(rank.child, self.job["watch"])
                    self.reach_end(rank)
                    rank.send("go")
                elif "line" in said:
                    report["lines"].append(said["line"])
                elif "why" in said:
                    report["why"] = said["why"]
                elif "exit" in said:
                    report["exit"] = said["exit"]
        except (OSError, ValueError) as problem:
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

    def stop(self, started):
        """Give the launcher time to end, then end it with all that it started."""
        status = 0
        for process in started[1:]:
            try:
                process.wait(max(0.1, min(self.job["grace"], self.deadline - time.monotonic())))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(2)
                except subprocess.TimeoutExpired:
                    pass
                status = None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            status = status if status is None else status or process.returncode
        for rank in filter(None, self.ranks):
            if rank.report["exit"] is None:
                self.kill(rank.pid)
                self.kill(rank.child)
        return 127 if len(started) == 1 else status

    def kill(self, pid):
        try:
            if pid:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


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


witness.close_to_others()
print("\n" + json.dumps(Job(json.loads(sys.stdin.readline())).run()), flush=True)
os._exit(0)
