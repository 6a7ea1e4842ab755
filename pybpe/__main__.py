# PYTHON_ARGCOMPLETE_OK
"""`python -m pybpe` is the command line."""

import sys

from .cli import main

sys.exit(main())
