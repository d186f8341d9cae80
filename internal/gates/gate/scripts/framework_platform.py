"""Print for which platform the framework was made, and which libraries of a platform it loads, as one line of JSON.

    framework_platform.py tensorflow           in a build, where no Horovod is installed
    framework_platform.py horovod.tensorflow   beside the wheel: also the version that the wheel was built against

Nothing of the wheel runs here. The version is in a file of the wheel, which its build wrote.
"""
import importlib
import json
import os
import re
import sys
import sysconfig

package, _, framework = sys.argv[1].rpartition(".")
module = importlib.import_module(framework)
if framework == "tensorflow":
    info = module.sysconfig.get_build_info()
    says = {"rocm": bool(info.get("is_rocm_build")), "cuda": bool(info.get("is_cuda_build"))}
    key = "tensorflow"
else:
    says = {"rocm": bool(module.version.hip), "cuda": bool(module.version.cuda)}
    key = "pytorch"

# No extension of Horovod is loaded: what is mapped here is the framework's.
with open("/proc/self/maps") as maps:
    files = {os.path.basename(line.split()[-1]) for line in maps if ".so" in line}
# The version that CMake saw when the wheel was built.
built = ""
if package:
    with open(os.path.join(sysconfig.get_path("platlib"), package, "metadata.json")) as f:
        built = json.load(f).get(key, "")
names = {"rocm": r"lib(amdhip64|hsa-runtime64|rccl)\b", "cuda": r"lib(cuda|cudart|nccl)\b"}
loaded = {platform: sorted(n for n in files if re.match(pattern, n)) for platform, pattern in names.items()}
print(json.dumps({"platforms": [p for p in ("rocm", "cuda") if says[p]], "loaded": loaded, "version": module.__version__, "built": built}))
