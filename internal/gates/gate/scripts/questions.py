"""Answers questions about an artifact, each in a fork of this process, which has loaded the frameworks.

    PYTHON questions.py < JOB

The first line of standard input is a JSON object:

    load       names of the frameworks' modules, which are imported here
    questions  argument vectors of Python, one for each question
    watch      a regular expression; see ranks.py
    limit      seconds for one question

The second line is the nonce of the answer. A process of its own reads it before the
first question, so no question has it in its memory or finds it in the pipe. The answer
is one line of JSON: the "nonce", and as "answers" for each question the "exit" status by
the kernel, what it printed as "output", the "lines" that it reported, whether it came to
its "end", and what it had "mapped" there.

Nothing of the artifact runs in this process.
"""
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import time

import witness

MOST = 1 << 20  # bytes that a question may print, and that it may report


def ask(args, child_output, channel, reply):
    """The fork: run one program as Python would run it alone."""
    reply.close()  # its holder can answer for all questions
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    witness.open_to_others()
    witness.end_with_parent()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(child_output.fileno(), 1)
    os.dup2(child_output.fileno(), 2)
    os.environ["GATE_CHANNEL"] = str(channel.fileno())
    sys.argv = args
    runpy.run_path(args[0], run_name="__main__")


def answer(args, watch, limit, reply):
    said = {"lines": [], "end": False, "mapped": []}
    mine, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            mine.close()
            ask(args, output, theirs, reply)
            sys.exit(0)
        theirs.close()
        mine.sendall(b"{}\n")
        said["exit"] = hear(child, mine, said, watch, time.monotonic() + limit)
        mine.close()
        output.seek(0)
        said["output"] = output.read(MOST).decode(errors="replace")
    return said


def hear(child, mine, said, watch, deadline):
    """Hear a question until its process has ended, and return the exit status."""
    heard, status = b"", None
    while status is None:
        if select.select([mine], [], [], 0.02)[0]:
            try:
                data = mine.recv(1 << 16)
            except ConnectionResetError:  # it ended without reading what it was sent
                data = b""
            heard += data
            if len(heard) > MOST:
                os.kill(child, signal.SIGKILL)
            if not said["end"] and heard.endswith(b'{"end": true}\n'):
                said["end"], said["mapped"] = True, witness.mapped(child, watch)
                mine.sendall(b"go\n")
            if not data:
                time.sleep(0.02)
        ended, result = os.waitpid(child, os.WNOHANG)
        if ended:
            status = 128 + os.WTERMSIG(result) if os.WIFSIGNALED(result) else os.WEXITSTATUS(result)
        elif time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
    said["lines"] = heard.decode(errors="replace").splitlines()
    if said["end"]:
        said["lines"].pop()
    return status


def main():
    """Keep the nonce in a process that runs nothing of the wheel.

    Other processes hold the pipe of standard input too, so the nonce leaves it before
    the first question is asked.
    """
    witness.close_to_others()
    job = json.loads(read_line())
    mine, reply = socket.socketpair()
    if os.fork() == 0:
        mine.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        witness.end_with_parent()
        reply.recv(1)
        reply.sendall(json.dumps(answers_to(job, reply)).encode())
        os._exit(0)
    reply.close()
    nonce = read_line()
    mine.sendall(b"g")
    answers = b"".join(iter(lambda: mine.recv(1 << 16), b""))
    os.wait()
    if answers:  # none if a framework ended the process that asks
        print("\n" + json.dumps({"answers": json.loads(answers), "nonce": nonce}), flush=True)


def answers_to(job, reply):
    for framework in job["load"]:
        try:
            importlib.import_module(framework)
        except BaseException:  # the questions report it
            pass
    gc.freeze()  # so that no fork writes to the objects of the frameworks, which copies their pages
    return [answer(args, job["watch"], job["limit"], reply) for args in job["questions"]]


def read_line():
    """One line of standard input and no byte more: the rest is not in this process yet."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    return line.decode().strip()


main()
