"""What a program shares with the modules that it imports: a module that changes it changes the program."""
import ctypes
import os
import random
import resource
import signal
import sys
import types

FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type)
METHODS = (types.FunctionType, classmethod, staticmethod, property)


def functions():
    """The functions and classes of all modules, and the methods of these classes, by name."""
    found = {}
    for name, module in list(sys.modules.items()):
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if isinstance(value, FUNCTIONS):
                found[name + "." + key] = value
            if isinstance(value, type) and value.__module__ == name:
                found.update({"%s.%s.%s" % (name, key, method): part for method, part in list(vars(value).items()) if isinstance(part, METHODS)})
    return found


def package(made):
    """The package of a name, or of what made a function."""
    if not isinstance(made, str):
        made = getattr(made, "__func__", getattr(made, "fget", made))
        made = getattr(made, "__module__", None) or ""
    return made.partition(".")[0]


def settings():
    """The settings of this process, and the state of its random numbers, by name."""
    mask = os.umask(0)
    os.umask(mask)
    found = {
        "the processors of its process": os.sched_getaffinity(0), "the working directory": os.getcwd(), "the mask of new files": mask,
        "how numbers are rounded": ctypes.CDLL("libm.so.6").fegetround(), "random": random.getstate(),
        "the order of imports": [*map(id, sys.meta_path), *map(id, sys.path_hooks), *sys.path],
    }
    found.update({"the environment variable " + name: value for name, value in os.environ.items()})
    found.update({"the handler of signal %d" % n: signal.getsignal(n) for n in signal.valid_signals()})
    found.update({"the limit " + name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")})
    if "numpy" in sys.modules:
        found["numpy.random"] = repr(sys.modules["numpy"].random.get_state(legacy=False)["state"])
    if "torch" in sys.modules and hasattr(sys.modules["torch"], "get_rng_state"):
        found["torch.random"] = bytes(sys.modules["torch"].get_rng_state().tolist())
    return found


def differences(module):
    """A function that names what has changed since this call.

    Frameworks replace functions of their own. Only those of the package of the module count.
    """
    was, had = settings(), functions()

    def since():
        now, have = settings(), functions()
        return sorted([name for name in {**was, **now} if was.get(name) != now.get(name)] +
                      [name for name, value in have.items() if had.get(name, value) is not value and package(value) == package(module)])

    return since
