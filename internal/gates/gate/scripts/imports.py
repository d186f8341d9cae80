"""Import a module and come to the end."""
import importlib
import sys

import asked

importlib.import_module(sys.argv[1])
asked.end()
