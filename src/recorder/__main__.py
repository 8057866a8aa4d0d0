"""The recorder as a folder that Python runs: `python src/recorder train.py`, or `dry-run` and a command."""

import sys

if sys.argv[1:2] == ["dry-run"]:
    from vramscope.dry_run.__main__ import main

    sys.exit(main(sys.argv[2:]))

if sys.argv[1:2] == ["environment"]:
    from vramscope.environments import main as environment

    sys.exit(environment(sys.argv[2:]))

from vramscope.record.__main__ import main as record

sys.exit(record())
