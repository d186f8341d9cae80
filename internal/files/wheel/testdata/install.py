"""Install every wheel below a directory with pip, each into a directory of its
own, and say which pip took. One process does them all: pip starts slowly."""

import json
import os
import sys

from pip._internal.cli.main import main

wheels, to = sys.argv[1:]
took = {}
sys.stdout, answers = open(os.devnull, "w"), sys.stdout
for case in sorted(os.listdir(wheels)):
    (name,) = os.listdir(os.path.join(wheels, case))
    try:
        status = main([
            "install", "--quiet", "--quiet", "--quiet", "--isolated", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir",
            "--disable-pip-version-check", "--target", os.path.join(to, case), os.path.join(wheels, case, name),
        ])
    except BaseException:  # a crash is a refusal
        status = 1
    took[case] = status == 0
json.dump(took, answers)
