"""One rank of upstream's tests: runs one file with pytest, and reports each case.

The reporter is made before the tests import anything of the artifact, and reports a case
when it has ended. The tree of the tests is named by BUILDER_TESTS.
"""
import os
import sys

import numpy
import pytest

import asked


class Reporter:
    def __init__(self):
        self.cases, self.collected = {}, 0

    def pytest_collection_finish(self, session):
        self.collected = len(session.items)
        leave_out_muon(sys.modules.get("torch"))

    def pytest_runtest_logreport(self, report):
        """A case is reported when its teardown has ended: its worst part counts."""
        case = self.cases.setdefault(report.nodeid, {"status": "passed", "seconds": 0.0, "message": ""})
        case["seconds"] += report.duration
        if report.outcome != "passed" and case["status"] != "failed":
            case["status"], case["message"] = report.outcome, message(report)
        if report.when == "teardown":
            place, _, name = report.nodeid.rpartition("::")
            asked.report(**{"class": place}, name=name, **case)


def message(report):
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:2000]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[:2000]


def leave_out_muon(torch):
    """Names Muon's module so that upstream's tests do not take it for one of torch.optim.

    They give the biases of a model to every optimizer of torch.optim, and leave out those
    that cannot take them. torch has had Muon since 2.9, and it takes matrices only:
    https://github.com/pytorch/pytorch/pull/160213
    """
    if hasattr(torch, "optim") and hasattr(torch.optim, "Muon"):
        torch.optim.Muon.__module__ = "muon"


# NumPy 2 has no alltrue, the older name of all, which upstream's tests of Adasum call:
# https://numpy.org/doc/stable/release/2.0.0-notes.html
if not hasattr(numpy, "alltrue"):
    numpy.alltrue = numpy.all

# Plugins of the environment may be for another pytest than the tests want.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
tree = os.environ["BUILDER_TESTS"]
path = os.path.join(tree, asked.part["file"])
os.chdir(os.path.dirname(path))
args = ["--rootdir", tree, "-p", "no:cacheprovider", "--tb=short", "-q"]
if asked.part["select"]:
    args += ["-k", asked.part["select"]]
reporter = Reporter()
ended = pytest.main(args + [os.path.basename(path)], plugins=[reporter])
asked.report(pytest=int(ended), collected=reporter.collected)
asked.end()
