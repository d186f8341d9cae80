"""Import a module, come to the end, and end with an exit status."""
import importlib
import sys

import asked

importlib.import_module(sys.argv[1])
asked.end()
sys.exit(int(sys.argv[2]))
