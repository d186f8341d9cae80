"""Run `horovodrun --check-build` with the frameworks loaded.

horovodrun forks a process for every question, and each imports Horovod's extension. A
framework is loaded once here, so that these processes do not load it ten times.
"""
import importlib
import runpy
import shutil
import sys

for framework in sys.argv[1:]:
    try:
        importlib.import_module(framework)
    except BaseException as problem:  # horovodrun will not list it
        print(f"import {framework}: {problem}", file=sys.stderr)
program = shutil.which("horovodrun") or sys.exit("horovodrun: not found")
sys.argv = [program, "--check-build"]
runpy.run_path(program, run_name="__main__")
