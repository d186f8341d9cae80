"""The side of a rank's program: its part of the task, its reports, and its end.

What it needs later is bound here, before anything of the artifact is imported.
"""
import faulthandler
import json
import os
import socket

_dumps, _socket = json.dumps, socket.socket(fileno=int(os.environ.pop("GATE_CHANNEL")))
_socket.set_inheritable(False)
_send, _lines = _socket.sendall, _socket.makefile("r", encoding="utf-8")
part = json.loads(_lines.readline())
if "limit" in part:
    # It needs no lock of Python: a rank that waits in C code for another ends too.
    faulthandler.dump_traceback_later(part["limit"], exit=True)


def report(**said):
    _send((_dumps(said) + "\n").encode())


def end():
    """Say that nothing follows, wait until all ranks came so far, and fail if this one is to."""
    _send(b'{"end": true}\n')
    if _lines.readline() == "fail\n":
        raise RuntimeError("this rank is to fail")


def explained(error):
    """An error in one line."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return ("%s: %s" % (type(error).__name__, lines[-1] if lines else ""))[:300]
