"""The recorder as a folder that Python runs: `python src/recorder train.py`."""

import sys

from vramscope.record.__main__ import main

sys.exit(main())
