"""The recorder as a folder that Python runs: `python src/recorder train.py`, or `dry-run` and a command.

`surroundings` says what this Python has."""

import sys

if sys.argv[1:2] == ["dry-run"]:
    from vramscope.dry_run.__main__ import main

    sys.exit(main(sys.argv[2:]))

if sys.argv[1:2] == ["environment"]:
    from vramscope.environments import main as environment

    sys.exit(environment(sys.argv[2:]))

if sys.argv[1:2] == ["surroundings"]:
    import json

    from vramscope.surroundings import surroundings

    json.dump(surroundings(), sys.stdout)
    sys.exit()

from vramscope.record.__main__ import main as record

sys.exit(record())
