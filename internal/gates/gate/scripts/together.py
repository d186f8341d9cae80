"""Run several programs, each in a fork of one process that has loaded the frameworks.

questions.json names the frameworks, and the arguments of Python for each program. Each
program ends as it would alone. Its exit status and output are one line of JSON.
"""
import gc
import importlib
import json
import os
import runpy
import sys
import tempfile

with open("questions.json") as f:
    questions = json.load(f)
for framework in questions["load"]:
    try:
        importlib.import_module(framework)
    except BaseException:  # the programs report it
        pass
gc.freeze()  # so that no fork writes to the objects of the frameworks, which copies their pages
for number, args in enumerate(questions["programs"]):
    sys.stdout.flush()
    sys.stderr.flush()
    output = tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        if args[0] == "-c":
            sys.argv = ["-c"]
            exec(compile(args[1], "<string>", "exec"), {"__name__": "__main__"})
        else:
            sys.argv = args
            runpy.run_path(args[0], run_name="__main__")
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    exit = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    output.seek(0)
    print(json.dumps({"program": number, "exit": exit, "output": output.read().decode(errors="replace")}), flush=True)
