"""Run `horovodrun --check-build` with the frameworks loaded.

horovodrun forks a process for every question, and each imports Horovod's extension.
Frameworks are loaded once here, so that these processes do not load them ten times. So
is the extension of a single framework. Those of several frameworks never meet in one
process, neither in a job nor here.
"""
import gc
import importlib
import runpy
import shutil
import sys

for framework in sys.argv[1:]:
    try:
        importlib.import_module(framework)
        if len(sys.argv) == 2:
            importlib.import_module("horovod." + framework)
    except BaseException as problem:  # horovodrun will not list it
        print(f"import {framework}: {problem}", file=sys.stderr)
gc.freeze()  # so that no fork writes to these objects, which copies their pages
program = shutil.which("horovodrun") or sys.exit("horovodrun: not found")
sys.argv = [program, "--check-build"]
runpy.run_path(program, run_name="__main__")
