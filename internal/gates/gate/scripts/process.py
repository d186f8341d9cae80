"""What a program shares with the modules that it imports: a module that changes it changes the program."""
import ctypes
import gc
import logging
import os
import random
import re
import resource
import signal
import sys
import types

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)
METHODS = (types.FunctionType, classmethod, staticmethod, property)

# Variables that MPI has no reason to set: those of GPUs, of the loader, of Python and of frameworks.
OF_JOBS = re.compile(r"\b((CUDA|GPU|HIP|HSA|LD|NCCL|NVIDIA|OMP|RCCL|ROCR|TF|TORCH)_|PYTHON)")


def functions():
    """The functions and classes of all modules, and the methods of these classes, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, FUNCTIONS):
                found[name + "." + key] = value
            if isinstance(value, type) and getattr(value, "__module__", None) == name:  # a class of TensorFlow 2.12 has none
                found.update({"%s.%s.%s" % (name, key, method): part for method, part in list(vars(value).items()) if isinstance(part, METHODS)})
    return found


def package(made):
    """The package of a name, or of what made a function."""
    if not isinstance(made, str):
        made = getattr(made, "__func__", getattr(made, "fget", made))
        made = getattr(made, "__module__", None) or ""
    return made.partition(".")[0]


def environment():
    """The variables that C and the programs started by this process see. Python keeps a copy of its own."""
    variables = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found, i = {}, 0
    while variables[i]:
        name, _, value = os.fsdecode(variables[i]).partition("=")
        found["the environment variable %s of C" % name] = value
        i += 1
    return found


def signals():
    """The signals that the kernel blocks, ignores or gives to a handler, also one of C."""
    with open("/proc/self/status") as status:
        return {"the signals %s" % line[:6]: line[7:].strip() for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt"))}


def settings():
    """The settings of this process, and the state of its random numbers, by name."""
    mask = os.umask(0)
    os.umask(mask)
    found = {
        "the processors of its process": os.sched_getaffinity(0), "the working directory": os.getcwd(), "the mask of new files": mask,
        "how numbers are rounded": ctypes.CDLL("libm.so.6").fegetround(), "random": random.getstate(),
        "logging": logging.root.manager.disable, "the garbage collector": gc.isenabled(), "the switches between threads": sys.getswitchinterval(),
        "the priority of its process": os.getpriority(os.PRIO_PROCESS, 0), "the hook for exceptions": id(sys.excepthook),
        "the order of imports": [*map(id, sys.meta_path), *map(id, sys.path_hooks), *sys.path],
    }
    found.update(environment(), **signals())
    found.update({"the environment variable " + name: value for name, value in os.environ.items()})
    found.update({"the handler of signal %d" % n: signal.getsignal(n) for n in signal.valid_signals()})
    found.update({"the limit " + name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")})
    if "numpy" in sys.modules:
        found["numpy.random"] = repr(sys.modules["numpy"].random.get_state(legacy=False)["state"])
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "get_rng_state"):
        torch = sys.modules["torch"]
        found.update({
            "torch.random": bytes(torch.get_rng_state().tolist()), "the threads of torch": torch.get_num_threads(),
            "the default type of torch": torch.get_default_dtype(), "the gradients of torch": torch.is_grad_enabled(),
            "the precision of torch": torch.get_float32_matmul_precision(), "the deterministic algorithms of torch": torch.are_deterministic_algorithms_enabled(),
        })
    return found


def differences(module):
    """A function that names what has changed since this call.

    Frameworks replace functions of their own. Only those of the package of the module count.
    """
    was, had = settings(), functions()

    def since():
        now, have = settings(), functions()
        with open("/proc/self/maps") as maps:
            if "/libmpi" in maps.read():  # MPI and its drivers set variables of C and handle crashes
                for found in was, now:
                    for name in [name for name in found if name.endswith(("SigCgt", " of C")) and not OF_JOBS.search(name)]:
                        del found[name]
        return sorted([name for name in {**was, **now} if was.get(name) != now.get(name)] +
                      [name for name, value in have.items() if had.get(name, value) is not value and package(value) == package(module)])

    return since
