"""Load an installed NCCL and ask what needs no GPU. The argument is its path
below site-packages."""
import ctypes
import os
import sys
import sysconfig

import asked

nccl = ctypes.CDLL(os.path.join(sysconfig.get_path("purelib"), sys.argv[1]))
nccl.ncclGetErrorString.restype = ctypes.c_char_p
version = ctypes.c_int()
code = nccl.ncclGetVersion(ctypes.byref(version))
error = nccl.ncclGetErrorString(4)  # ncclInvalidArgument
asked.report(code=code, version=version.value, error=(error or b"").decode(errors="replace"))
asked.end()
