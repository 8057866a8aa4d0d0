"""Dry runs: what a command runs, what stands in for the rest of the world, and which batches decide."""

from __future__ import annotations

import atexit
import importlib.metadata
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import traceback
import unittest
import weakref
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
# Where a dry run looks for modules: not in the folder that the tests were started in.
CLEAN = [SOURCE, HERE, *(path for path in sys.path if path and os.path.realpath(path) != os.getcwd())]
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope.dry_run.__main__ as dry_run  # noqa: E402
import vramscope.record.session  # noqa: E402, F401  (what each dry run imports)
from vramscope.dry_run import batches, commands, notebook, packages, shell, world  # noqa: E402
from vramscope.record.errors import RecordingError  # noqa: E402

from player import asked, written  # noqa: E402

TRAIN = """
    import os, sys, torch
    from torch import nn
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    os.makedirs("out/checkpoint-1")
    with open("out/args.json", "w") as file:
        file.write("{}")
    with open("settings.txt", "w") as file:
        file.write("changed")
    print("saying", *sys.argv[1:], os.environ.get("WORLD_SIZE"), os.environ.get("COLOUR"))
    for _ in range(9):
        model(torch.randn(8, 64, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


class Folder:
    """A person's folder with a training script, and dry runs that begin there."""

    def __init__(self, **files: str) -> None:
        """With these files beside `train.py`."""
        self.made = tempfile.TemporaryDirectory()
        self.path = self.made.name
        self.out = os.path.join(self.path, "..", os.path.basename(self.path) + ".vram.gz")
        for name, text in {"train.py": TRAIN, "settings.txt": "as it was", **files}.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        """Adds a file."""
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))

    def run(self, *words: str, flags: tuple[str, ...] = (), apart: bool = False, **variables: str) -> tuple[int, str]:
        """Status and words of a dry run: in a copy of this process, which has imported PyTorch, or with `apart` in one
        that is started for it."""
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CUDA_VISIBLE_DEVICES")}
        env |= {"PYTHONPATH": HERE, **variables}
        words = ("dry-run", "--out", self.out, *flags, "--", *words)
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as printed:
            if apart:
                process = subprocess.Popen(
                    [sys.executable, SOURCE, *words], env=env, cwd=self.path, stdout=printed, stderr=said
                )
                status = process.wait(timeout=300)
            else:
                status = forked(words[1:], env, self.path, printed.fileno(), said.fileno())
            for file in (said, printed):
                file.seek(0)
            assert printed.read() == ""
            return status, said.read()

    def lines(self) -> list[dict[str, Any]]:
        """Lines of the recording, which the engine reads."""
        return written(self.out)

    def names(self) -> list[str]:
        """What lies in the folder."""
        return sorted(os.listdir(self.path))

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *exc: Any) -> None:
        if os.path.exists(self.out):
            os.remove(self.out)
        self.made.cleanup()


def forked(words: tuple[str, ...], env: dict[str, str], folder: str, out: int, err: int) -> int:
    """Status of a dry run in a copy of this process, as it is before any recording."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        sys.argv, sys.path[:] = [SOURCE, "dry-run", *words], CLEAN
        signal.alarm(300)
        atexit._clear()  # what the tests registered is theirs
        status = dry_run.main(words)
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def stand_ins(found: list[dict[str, Any]]) -> dict[str, str]:
    """What was answered by what."""
    return {x["what"]: x["how"] for x in found if x["t"] == "stand_in"}


def made(*lengths: int) -> list[dict[str, torch.Tensor]]:
    """Batches of these lengths."""
    return [{"input_ids": torch.ones(1, n, dtype=torch.int64)} for n in lengths]


def needs(*names: str) -> Any:
    """Skips a test where one of these packages is missing."""
    missing = [p for p in names if importlib.util.find_spec(p) is None]
    return unittest.skipIf(bool(missing), f"{', '.join(missing)} is not installed")


class Words(unittest.TestCase):
    """What a command line runs."""

    def test_launchers_and_wrappers_are_seen_through(self) -> None:
        """Variables, programs that start others, Python's own options."""
        with Folder() as f:
            path = os.path.join(f.path, "train.py")
            for words, expected in {
                f"python {path} --a 1": ("script", path, ["--a", "1"]),
                f"A=1 B=2 nohup python3 -u -X dev {path}": ("script", path, []),
                f"timeout 60 env C=3 {path} x": ("script", path, ["x"]),
                f"uv run --with trl python {path}": ("script", path, []),
                f"conda run -n train python {path}": ("script", path, []),
                "python -m torch.distributed.run --nproc_per_node 2 a.py": (
                    "module",
                    "torch.distributed.run",
                    ["--nproc_per_node", "2", "a.py"],
                ),
                "torchrun --nproc_per_node 8 a.py": ("entry", "torchrun", ["--nproc_per_node", "8", "a.py"]),
                "bash -e run.sh 3": ("shell", os.path.join(".", "run.sh"), ["3"]),
            }.items():
                with self.subTest(words):
                    made = commands.resolve(words.split())
                    self.assertEqual((made.kind, made.target, made.args), expected)
            self.assertEqual(commands.resolve(f"A=1 B=2 python {path}".split()).env, {"A": "1", "B": "2"})

    def test_what_is_no_training_is_refused_by_name(self) -> None:
        """With what would be one, or what to do."""
        for words, said in {
            "swift infer --model x": "`swift infer` is no training",
            "llamafactory-cli export a.yaml": "`llamafactory-cli train`",
            "python": "waits for a person",
            "python -c print(1)": "give the command that trains",
            "python trian.py": 'no file "trian.py"',
            "A=1": "runs nothing",
            "/bin/ls": "which no Python runs",
            "no_such_tool train": "no program and no file `no_such_tool`",
        }.items():
            with self.subTest(words), self.assertRaises(RecordingError) as caught:
                program = commands.Program("entry", *_entry(words)) if words.startswith(("swift", "llama")) else None
                commands.refuse_others(program or commands.resolve(words.split()))
            self.assertIn(said, str(caught.exception))

    def test_a_configuration_names_its_tool(self) -> None:
        """By its keys, or by the command in its first comment."""
        files = {
            "lf.yaml": "stage: sft\nfinetuning_type: lora\ndataset_dir: data\n",
            "ax.yml": "base_model: x\ndatasets:\n  - path: y\nmicro_batch_size: 2\n",
            "sw.yaml": "model: x\ndataset: y\ntuner_type: lora\n",
            "trl.yaml": "# trl sft --config trl.yaml\nmodel_name_or_path: x\n",
            "what.yaml": "model_name_or_path: x\n",
        }
        with Folder(**files) as f:
            for name, words in {
                "lf.yaml": ["llamafactory-cli", "train"],
                "ax.yml": ["axolotl", "train"],
                "sw.yaml": ["swift", "sft"],
                "trl.yaml": ["trl", "sft", "--config"],
            }.items():
                path = os.path.join(f.path, name)
                made = commands.resolve([path])
                self.assertEqual([made.target, *made.args], [*words, path])
            with self.assertRaisesRegex(RecordingError, "does not say which command reads it"):
                commands.resolve([os.path.join(f.path, "what.yaml")])

    def test_a_size_is_changed_where_the_command_says_it(self) -> None:
        """By the tool's own name, the script's spelling, or the flag that is named."""
        for words, change, expected in (
            ("swift sft --a 1", ("batch", "4"), "sft --a 1 --per_device_train_batch_size 4"),
            ("swift sft --max_length 8 --b", ("length", "64"), "sft --max_length 64 --b"),
            ("lmf train x.yaml cutoff_len=1", ("length", "64"), "train x.yaml cutoff_len=64"),
            ("t.py --batch-size=2 x", ("batch", "3"), "--batch-size=3 x"),
            ("t.py --bs 2", ("--bs", "9"), "--bs 9"),
        ):
            name, *args = words.split()
            program = commands.Program("entry", name, args)
            commands.change(program, *change)
            self.assertEqual(program.args, expected.split())
        with self.assertRaisesRegex(RecordingError, "does not say what it calls its batch"):
            commands.change(commands.Program("script", "t.py", ["--lr", "1"]), "batch", "2")


def _entry(words: str) -> tuple[str, list[str]]:
    """A program and its words, whether or not it is installed."""
    name, *rest = words.split()
    return name, rest


SCRIPT = r"""
    #!/bin/bash
    set -euo pipefail
    cd "$(dirname "${BASH_SOURCE[0]}")"
    OUT=${1:-out}; export COLOUR="dark blue"
    mkdir -p "$OUT"
    cat > made.json <<EOF
    {"steps": $((1 + 1))}
    EOF
    N=$(nvidia-smi --list-gpus | wc -l)
    ARGS=(--lr 1e-4 # by far the best
      --name "a b")
    for tool in swift; do [ "$tool" = none ] && $tool infer; done
    pip install -q something
    if [ "$N" -gt 0 ] && command -v nvidia-smi > /dev/null || true; then
      CUDA_VISIBLE_DEVICES=0 \
        nohup python train.py --out "$OUT" "${ARGS[@]}" --config=made.json > "$OUT/log.txt" 2>&1 &
    fi
    echo started | tee note.txt
    /usr/bin/touch hacked
"""


class Shell(unittest.TestCase):
    """Scripts, as bash runs them."""

    def test_the_training_command_is_what_bash_would_start(self) -> None:
        """With its variables, arrays and files that the script writes; nothing is written or installed."""
        with Folder(**{"run.sh": SCRIPT}) as f:
            status, said = f.run("bash", "run.sh", "results", apart=True)
            self.assertEqual(status, 0, said)
            found = f.lines()
            self.assertEqual(f.names(), ["run.sh", "settings.txt", "train.py"])
            words = found[0]["command"][1:]
            self.assertEqual(words[:6], ["--out", "results", "--lr", "1e-4", "--name", "a b"])
            self.assertTrue(words[6].startswith("--config=") and "made.json" in words[6], words)
            told = stand_ins(found)
        self.assertIn("pip install -q something", told)
        self.assertIn("/usr/bin/touch hacked", told)

    def test_several_commands_are_asked_about(self) -> None:
        """Each with its number; one is taken by it."""
        text = "for lr in 1 2; do\n  python train.py --lr $lr\ndone\n"
        with Folder(**{"two.sh": text}) as f:
            status, said = f.run("two.sh")
            self.assertEqual(status, 2)
            self.assertIn("--run 2: python train.py --lr 2", said)
            status, said = f.run("two.sh", flags=("--run", "2"))
            self.assertEqual((status, f.lines()[0]["command"][1:]), (0, ["--lr", "2"]), said)

    def test_a_remark_or_a_space_ends_a_command_as_in_bash(self) -> None:
        """What follows is another command, which is not found."""
        for cut in ("--a 1 \\ \n  --b 2\n", "--a 1 \\\n  # --c 3 \\\n  --b 2\n"):
            with Folder(**{"cut.sh": "python train.py " + cut}) as f:
                status, said = f.run("cut.sh")
                self.assertEqual(status, 0, said)
                found = f.lines()
                self.assertNotIn("2", found[0]["command"])
                self.assertIn("--b 2", stand_ins(found))

    def test_what_is_quoted_or_tested_is_left_alone(self) -> None:
        """Only redirections to files and commands by their path change."""
        for line in (
            "echo 'a > b' \"c > d\" # > e\n",
            "if [[ a > b ]]; then :; fi\n",
            "(( 3 > 2 )) && x=$(( 4 > 1 ))\n",
            "f() { return 0; }\n",
            "python a.py 2>&1 >/dev/null\n",
            "case $x in a/b) : ;; esac\n",
            "a=(x/y /bin/z)\n",
        ):
            self.assertEqual(shell.defused(line, "/s.sh"), line)
        self.assertEqual(shell.defused('"$PY" a.py', "/s.sh"), '__vramscope_run "$PY" a.py')
        self.assertEqual(shell.defused("a > b/c.txt", "/s.sh"), 'a > "$(__vramscope_place b/c.txt)"')


class World(unittest.TestCase):
    """Nothing is written, nothing leaves."""

    def test_folders_are_as_they_were(self) -> None:
        """What the script makes is gone, what it changes is back, and both are said."""
        with Folder() as f:
            status, said = f.run("python", "train.py", apart=True)
            self.assertEqual(status, 0, said)
            self.assertEqual(f.names(), ["settings.txt", "train.py"])
            with open(os.path.join(f.path, "settings.txt"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "as it was")
            self.assertIn("written aside, and taken away", stand_ins(f.lines()).values())

    def test_trackers_and_the_network_are_answered(self) -> None:
        """A tracker that is asked for does nothing; a host is not reached, which is said."""
        script = TRAIN.replace(
            "import os",
            "import wandb, urllib.request, os",
        ).replace(
            "    for _",
            """    wandb.init(project="p", config={"a": 1})
    wandb.log({"loss": 1.0})
    try:
        urllib.request.urlopen("http://tracker.example/", timeout=5)
    except OSError as e:
        assert "no network" in str(e), e
    for _""",
        )
        with Folder(**{"train.py": script}) as f:
            status, said = f.run("python", "train.py")
            self.assertEqual(status, 0, said)
            told = stand_ins(f.lines())
        self.assertIn("wandb", told)
        self.assertIn("network: tracker.example", told)

    def test_a_tracker_that_a_tool_cannot_be_without_is_answered(self) -> None:
        """Though it is not installed here, and nobody asks for it; one of an extra is not."""
        with Folder() as f, mock.patch.object(sys, "path", [f.path, *sys.path]):
            os.mkdir(os.path.join(f.path, "tool-1.0.dist-info"))
            needs = "Requires-Dist: swanlab>=0.3\nRequires-Dist: clearml; extra == 'logs'\n"
            f.write("tool-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tool\nVersion: 1.0\n" + needs)
            self.assertEqual(world.required({"swanlab", "clearml", "aim"}), {"swanlab"})

    def test_what_is_missing_or_fails_is_said_in_a_sentence(self) -> None:
        """A package, a script that fails, one that never steps, a run without a card."""
        with Folder(**{"a.py": "import no_such_package\n", "b.py": "raise KeyError('x')\n", "c.py": "print(1)\n"}) as f:
            for words, code, expected in (
                ("a.py", 2, "pip install no_such_package"),
                ("b.py", 1, "KeyError: 'x'"),
                ("c.py", 2, "without an optimizer step"),
            ):
                status, said = f.run("python", words)
                self.assertEqual(status, code, said)
                self.assertIn(expected, said)
                self.assertFalse(os.path.exists(f.out))
            status, said = f.run("python", "train.py", CUDA_VISIBLE_DEVICES="")
            self.assertEqual(status, 2)
            self.assertIn("CUDA_VISIBLE_DEVICES is empty", said)

    def test_ctrl_c_is_no_failure_of_what_a_tool_does_at_its_end(self) -> None:
        """Curves that it draws then, with a package that is not there."""
        # A shell starts what it runs in the background with the signal ignored.
        stopped = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        stopped += "try:\n    signal.raise_signal(signal.SIGINT)\nfinally:\n    import no_such_package\n"
        with Folder(**{"a.py": textwrap.dedent(TRAIN).replace("    optimizer.step()", "    break") + stopped}) as f:
            status, said = f.run("python", "a.py", apart=True)
            self.assertEqual(status, 130, said)
            self.assertIn("stopped; nothing was recorded", said)
            self.assertNotIn("no_such_package", said)
            self.assertEqual(f.names(), ["a.py", "settings.txt", "train.py"])

    def test_what_a_command_prints_while_python_ends_is_not_shown(self) -> None:
        """As bars of progress do when they are taken down."""
        bar = "import builtins, os\nclass Bar:\n    def __del__(self):\n        os.write(2, b'67% done')\n"
        bar += "builtins.bar = Bar()\n"
        with Folder(**{"a.py": bar + textwrap.dedent(TRAIN)}) as f:
            status, said = f.run("python", "a.py", apart=True)
            self.assertEqual(status, 0, said)
            self.assertNotIn("67% done", said)

    def test_a_package_that_is_the_repositorys_own_is_not_asked_of_pip(self) -> None:
        """A script in a folder of a repository, which its package is not installed from."""
        with Folder(**{"mine.py": "raise SystemExit(0)\n"}) as f:
            os.mkdir(os.path.join(f.path, "scripts"))
            f.write("scripts/a.py", "import mine\n")
            status, said = f.run("python", "scripts/a.py")
            self.assertEqual(status, 2, said)
            self.assertIn("PYTHONPATH=.", said)
            self.assertNotIn("pip install mine", said)
            status, said = f.run("python", "scripts/a.py", PYTHONPATH=".")
            self.assertIn("without an optimizer step", said)
            f.write("run.sh", "export PYTHONPATH=.:$PYTHONPATH\npython scripts/a.py\n")
            status, said = f.run("run.sh")
            self.assertIn("without an optimizer step", said)
            status, said = f.run("python", "scripts/b.py")
            self.assertIn(f'"scripts/b.py" in {os.path.realpath(f.path)}. Did you mean "scripts/a.py"', said)
        self.assertIn("pip install ms-swift", world.absent("swift"))
        with self.assertRaises(ModuleNotFoundError) as missing:
            importlib.import_module("torch.no_such_part")
        said = str(world.explained(missing.exception))
        self.assertIn(f"torch.no_such_part, which torch {torch.__version__.partition('+')[0]} of", said)
        self.assertNotIn("pip install", said)

    def test_a_command_of_another_version_says_which_package(self) -> None:
        """A name that a library has no more, and a check of versions; the command's own mistakes stay its own."""
        own = "from mine import nothing\n"
        check = (
            "raise ImportError('tool>=1,<=2 is required for a normal functioning of this module, but found tool==3.')"
        )
        with Folder(**{"a.py": "from torch.nn import NoSuchLayer\n", "b.py": own, "mine.py": "", "c.py": check}) as f:
            status, said = f.run("python", "a.py")
            self.assertEqual(status, 2, said)
            self.assertIn(f"NoSuchLayer of torch.nn, which torch {importlib.metadata.version('torch')} does", said)
            self.assertIn("--with 'torch==VERSION,…'", said)
            status, said = f.run("python", "b.py")
            self.assertEqual(status, 1, said)
            self.assertNotIn("--with", said)
            f.write("requirements.txt", "tool==2\n")
            status, said = f.run("python", "c.py")
            self.assertEqual(status, 2, said)
            self.assertIn("wants tool>=1,<=2, and tool==3 is installed", said)
            self.assertIn("--with requirements.txt", said)

    def test_a_step_that_fails_is_what_is_said(self) -> None:
        """And not what a tool lacks to draw curves at its end."""
        script = textwrap.dedent(TRAIN)
        training = script[script.index("for _") :].replace("optimizer.step()", "raise KeyError('of the step')")
        drawing = "try:\n" + textwrap.indent(training, "    ") + "finally:\n    import no_such_package\n"
        with Folder(**{"a.py": script[: script.index("for _")] + drawing}) as f:
            status, said = f.run("python", "a.py")
            self.assertEqual(status, 1, said)
            self.assertIn("KeyError: 'of the step'", said)
            self.assertNotIn("no_such_package", said)

    def test_a_value_that_a_script_leaves_to_the_environment_is_asked_for(self) -> None:
        """`torchrun --nproc_per_node=${NPROC_PER_NODE}`, where nobody set it."""
        with Folder(**{"run.sh": "torchrun --nproc_per_node=${NPROC_PER_NODE} train.py\n"}) as f:
            status, said = f.run("run.sh")
            self.assertEqual(status, 2, said)
            self.assertIn("NPROC_PER_NODE=8 vramscope dry-run", said)

    def test_a_script_that_cannot_do_without_the_network_says_so(self) -> None:
        """Which host it asked, and what to fetch first, in place of a time-out."""
        script = "import urllib.request\nurllib.request.urlopen('https://data.example/train.json').read()\n"
        with Folder(**{"a.py": script}) as f:
            status, said = f.run("python", "a.py")
            self.assertEqual(status, 2, said)
            self.assertIn("data.example was asked for", said)
            self.assertIn("Fetch what it needs once", said)

    def test_an_operation_of_an_extension_is_named_with_what_tells_its_outputs(self) -> None:
        """It is in no library that the recorder knows, and has code for a card alone."""
        script = TRAIN.replace(
            "    model = nn",
            """    library = torch.library.Library("of_mine", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CUDA")
    model = nn""",
        ).replace("model(torch.randn(8, 64", "torch.ops.of_mine.twice(torch.randn(8, 64")
        with Folder(**{"train.py": script}) as f:
            status, said = f.run("python", "train.py")
            self.assertEqual(status, 2, said)
            self.assertIn("of_mine.twice", said)
            self.assertIn("register_fake", said)
            self.assertIn("train.py:", said)

    def test_a_data_set_without_an_end_is_walked_as_far_as_asked(self) -> None:
        """No sample is read that no step needs."""
        script = """
            import torch
            from torch.utils.data import DataLoader, IterableDataset
            class Endless(IterableDataset):
                def __iter__(self):
                    for i in range(10**12):
                        assert i < 1000, "read on and on"
                        yield torch.randn(64)
            model = torch.nn.Linear(64, 64).cuda()
            optimizer = torch.optim.AdamW(model.parameters())
            for x in DataLoader(Endless(), batch_size=2):
                model(x.cuda()).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        """
        with Folder(**{"train.py": script}) as f:
            status, said = f.run("python", "train.py")
            self.assertEqual(status, 0, said)

    def test_keep_going_shows_the_steps_before_a_failure(self) -> None:
        """One step, and why there is no second."""
        script = TRAIN.replace("for _ in range(9):", "for i in range(9):\n        assert i < 1, 'no more data'")
        with Folder(**{"train.py": script}) as f:
            self.assertEqual(f.run("python", "train.py")[0], 1)
            status, said = f.run("python", "train.py", flags=("--keep-going",))
            self.assertEqual((status, f.lines()[-1]["steps"]), (0, 1), said)
            self.assertIn("no more data", said)


class Launchers(unittest.TestCase):
    """Ranks, without processes."""

    def test_torchrun_is_one_of_its_ranks(self) -> None:
        """On one host or several; the header says which."""
        two = ("--nnodes", "2", "--node_rank", "1", "--master_addr", "h", "--nproc_per_node", "4", "train.py")
        for words, rank, ranks in (
            (("torchrun", "--nproc_per_node", "4", "train.py", "--x"), 0, 4),
            (("python", "-m", "torch.distributed.run", *two), 5, 8),
        ):
            with Folder() as f:
                status, said = f.run(*words, flags=("--rank", str(rank)))
                self.assertEqual(status, 0, said)
                header = f.lines()[0]
                self.assertEqual((header["rank"], header["world"]), (rank, ranks))
        with Folder() as f:
            status, said = f.run("torchrun", "--nproc_per_node", "2", "train.py", flags=("--rank", "2"))
            self.assertEqual(status, 2)
            self.assertIn("starts 2 ranks", said)

    @needs("accelerate")
    def test_accelerate_launch_is_read_by_accelerate(self) -> None:
        """Its processes, and the precision that it hands on."""
        script = TRAIN + '    assert os.environ["ACCELERATE_MIXED_PRECISION"] == "bf16"\n'
        script = script.replace(
            "    model =", "    assert os.environ['ACCELERATE_MIXED_PRECISION'] == 'bf16'\n    model ="
        )
        with Folder(**{"train.py": script}) as f:
            words = (
                "accelerate",
                "launch",
                "--num_processes",
                "2",
                "--multi_gpu",
                "--mixed_precision",
                "bf16",
                "train.py",
            )
            status, said = f.run(*words, apart=True)
            self.assertEqual(status, 0, said)
            self.assertEqual(f.lines()[0]["world"], 2)

    @needs("deepspeed")
    def test_the_launcher_of_deepspeed(self) -> None:
        """With the argument that it adds."""
        script = TRAIN.replace("    model =", "    assert '--local_rank=0' in sys.argv\n    model =")
        with Folder(**{"train.py": script}) as f:
            status, said = f.run("deepspeed", "--num_gpus", "2", "train.py", flags=("--cards", "2"))
            self.assertEqual(status, 0, said)
            self.assertEqual(f.lines()[0]["world"], 2)

    def test_what_a_launcher_sets_for_the_allocator_counts(self) -> None:
        """A child's variable, of a tool that starts itself anew."""
        starter = """
            import os, subprocess, sys
            env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
            subprocess.run([sys.executable, "train.py"], env=env, check=True)
        """
        with Folder(**{"start.py": starter}) as f:
            status, said = f.run("python", "start.py")
            self.assertEqual(status, 0, said)
            settings = [x for x in f.lines() if x["t"] == "setting"]
            self.assertEqual(settings[0]["alloc_conf"], "expandable_segments:True")

    def test_one_process_with_several_cards_is_refused_by_name(self) -> None:
        """With the ways to give each card a process."""
        with Folder() as f:
            status, said = f.run("python", "train.py", CUDA_VISIBLE_DEVICES="0,1")
            self.assertEqual(status, 2)
            self.assertIn("One process with 2 cards", said)
            self.assertIn("NPROC_PER_NODE", said)

    def test_objects_of_other_ranks_are_this_ranks(self) -> None:
        """Trainers gather names and numbers of all ranks when they log."""
        objects = """
            import torch.distributed as dist
            dist.init_process_group("nccl")
            every = [None] * dist.get_world_size()
            dist.all_gather_object(every, {"loss": 2})
            assert every == [{"loss": 2}] * 3, every
            dist.gather_object("a", every)
            assert every == ["a"] * 3, every
            dist.broadcast_object_list(every, src=0)
            assert every == ["a"] * 3, every
        """
        with Folder(**{"a.py": textwrap.dedent(objects) + textwrap.dedent(TRAIN)}) as f:
            status, said = f.run("torchrun", "--nproc_per_node", "3", "a.py")
            self.assertEqual(status, 0, said)


class Notebooks(unittest.TestCase):
    """Cells in their order."""

    def test_cells_run_in_one_namespace(self) -> None:
        """Lines that are IPython's are left out and named."""
        code = textwrap.dedent(TRAIN)
        cells = [
            {"cell_type": "markdown", "source": ["# title"]},
            {
                "cell_type": "code",
                "source": ["!pip install -q \\\n", "  trl\n", "%matplotlib inline\n", "import torch"],
            },
            {"cell_type": "code", "source": code.replace("import os, sys, torch", "import os, sys").splitlines(True)},
        ]
        with Folder(**{"run.ipynb": json.dumps({"cells": cells})}) as f:
            status, said = f.run("run.ipynb")
            self.assertEqual(status, 0, said)
            told = stand_ins(f.lines())
        self.assertIn("cell 1: !pip install -q \\", told)
        self.assertEqual(notebook.plain("%%bash\nrm -rf x"), ("", ["%%bash"]))


BATCHES = """
    import stand_ins, torch
    from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments
    stand_ins.llama("model")
    LENGTHS = [64, 96, 64, 64, 80, 320, 64, 64, 72, 64, 64, 64]
    rows = [{"input_ids": list(range(n)), "labels": list(range(n))} for n in LENGTHS]
    def collate(batch):
        return {k: torch.tensor([row[k] for row in batch]) for k in batch[0]}
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("model"))
    args = TrainingArguments("out", per_device_train_batch_size=1, gradient_accumulation_steps=2, max_steps=MAX,
        bf16=True, report_to=[], save_strategy="steps", save_steps=1, train_sampling_strategy="sequential")
    Trainer(model=model, args=args, train_dataset=rows, data_collator=collate).train()
"""


@needs("transformers", "accelerate")
class Batches(unittest.TestCase):
    """The loader is walked ahead."""

    def test_the_longest_micro_batch_decides(self) -> None:
        """It is the third step's; its peak is that of a run that has nothing longer before."""
        with Folder(**{"train.py": BATCHES.replace("MAX", "6")}) as f:
            status, said = f.run("python", "train.py")
            self.assertEqual(status, 0, said)
            told = next(x for x in f.lines() if x["t"] == "batches")
            answer = asked("--recording", f.out)["recording"]["batches"]
            longest = asked("--recording", f.out)["peak_allocated"]
            self.assertEqual(f.names(), ["settings.txt", "train.py"])
            self.assertEqual(f.run("python", "train.py", flags=("--batches", "2"))[0], 0)
            self.assertLess(asked("--recording", f.out)["peak_allocated"], longest)
        self.assertEqual((told["walked"], told["total"], told["each"]), (6, 6, 2))
        self.assertEqual([x["step"] for x in told["steps"]], [1, 2, 3, 4, 5, 6])
        self.assertEqual(answer["steps"][answer["decides"]]["positions"], 320)

    def walk(self, lengths: list[int], each: int, total: int | None = None, free: int = 9) -> batches.Ahead:
        """A loader of these lengths, walked; each micro-batch takes a `free`-th of the operations that are recorded."""
        trained: list[int] = []
        ahead = batches.Ahead(200, each, lambda: len(trained) * batches.OPERATIONS // free, total=total)
        for batch in ahead.over(iter(made(*lengths))):
            trained.append(batch["input_ids"].numel())
            if len(trained) == ahead.planned * each:
                break
        self.assertEqual(len(ahead.steps), ahead.planned)
        return ahead

    def test_a_short_run_is_recorded_as_it_comes(self) -> None:
        """From its first step to its last, which may be short."""
        self.assertEqual([x["step"] for x in self.walk([9, 2, 2, 2, 2, 7, 2, 2], 2, total=4).steps], [1, 2, 3, 4])
        self.assertEqual([x["step"] for x in self.walk([9, 2, 2, 2, 2], 2, total=3).steps], [1, 2, 3])

    def test_of_a_long_run_the_heaviest_are_recorded(self) -> None:
        """Beside the first; the first again where it is the heaviest, beside the states that it does not have at first.

        The sixth micro-batch is the longest of those that run beside gradients.
        """
        lengths = [9, 2, 2, 2, 2, 2, 2, 7, 2, 2, 2, 2]
        for total, expected in ((6, [1, 2, 4]), (None, [1, 2, 4, 1]), (600, [1, 2, 4, 1])):
            found = self.walk(lengths, 2, total, free=2)
            self.assertEqual([x["step"] for x in found.steps], expected)
        self.assertEqual(found.steps[2]["why"], ["positions", "longest"])
        self.assertEqual([x["step"] for x in self.walk([2, 2, 2, 2, 5, 2], 1, 6, free=3).steps], [1, 2, 3, 4, 5])

    def test_the_next_epoch_is_recorded_where_there_is_room(self) -> None:
        """As its own loader gives it."""
        ahead = batches.Ahead(200, 2, total=5)
        sizes = [
            [x["input_ids"].numel() for x in ahead.over(iter(epoch))] for epoch in (made(9, 2, 2), made(3, 4, 5, 6))
        ]
        self.assertEqual(sizes, [[9, 2, 2], [3, 4, 5, 6]])
        self.assertEqual([x["positions"] for x in ahead.steps], [9, 2, 4, 6])
        self.assertEqual(ahead.planned, 5)

    def test_no_batch_is_kept_once_it_is_trained_on(self) -> None:
        """Some move to the card themselves, and would stay there; one that comes twice comes as it was."""

        class Batch(dict):  # type: ignore[type-arg]
            """Can be referred to weakly."""

        lengths = [9, 2, 2, 2]
        batch_list = [Batch(input_ids=torch.ones(1, n, dtype=torch.int64)) for n in lengths]
        seen = [weakref.ref(batch) for batch in batch_list]
        operations = [0]
        ahead = batches.Ahead(wanted=4, operations=lambda: operations[0])
        walk = ahead.over(batch_list.pop(0) for _ in lengths)
        for visit in range(3):
            batch = next(walk)
            self.assertNotIn("moved", batch)
            batch["moved"] = True
            batch["input_ids"] = torch.ones(1)
            del batch
            operations[0] += 2 * batches.OPERATIONS
            self.assertEqual([reference() for reference in seen[: visit + 1][:2]], [None] * min(visit + 1, 2))
        self.assertEqual([x["step"] for x in ahead.steps], [1, 2, 1])

    def test_the_walk_ends_where_the_run_does(self) -> None:
        """Two steps meet nothing of the third's."""
        with Folder(**{"train.py": BATCHES.replace("MAX", "2")}) as f:
            self.assertEqual(f.run("python", "train.py")[0], 0)
            told = next(x for x in f.lines() if x["t"] == "batches")
        self.assertEqual(told["walked"], 2)
        self.assertLess(max(x["positions"] for x in told["steps"]), 320)


class Packages(unittest.TestCase):
    """What the machine that trains has, and this one lacks."""

    def test_lock_files_are_read(self) -> None:
        """`pip freeze`, and what uv and poetry write."""
        for text in (
            "torch==2.11.0\nflash_attn @ file:///x\n",
            '[[package]]\nname = "flash-attn"\n\n[[package]]\nname = "torch"\n',
        ):
            with Folder(**{"lock": text}) as f:
                self.assertEqual(packages.of_file(os.path.join(f.path, "lock")), {"torch", "flash-attn"})
        with self.assertRaisesRegex(RecordingError, "cannot be read"):
            packages.of_file("/nowhere/lock")

    @unittest.skipIf(importlib.util.find_spec("triton") is not None, "triton is installed")
    def test_kernels_of_triton_are_launched_without_it(self) -> None:
        """By a stand-in, which is said; what the real machine has and this one lacks is named."""
        script = """
            import importlib.metadata, importlib.util, torch, triton
            import triton.language as tl
            assert importlib.util.find_spec("causal_conv1d") is None

            @triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=4)], key=["n"])
            @triton.jit
            def double(x, y, n, BLOCK: tl.constexpr):
                pass

            weight = torch.nn.Parameter(torch.ones(64, device="cuda"))
            optimizer = torch.optim.SGD([weight], lr=0.1)
            for _ in range(4):
                out = torch.empty_like(weight)
                double[lambda meta: (triton.cdiv(64, meta["BLOCK"]),)](weight, out, 64)
                (weight * out).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        """
        with Folder(**{"train.py": script, "lock": "triton==3.6.0\ncausal-conv1d==2.8.0\ntorch==2.11.0\n"}) as f:
            status, said = f.run("python", "train.py", flags=("--packages", "lock"))
            self.assertEqual(status, 0, said)
            found = f.lines()
        self.assertIn("double", {x["name"] for x in found if x["t"] == "triton"})
        told = stand_ins(found)
        self.assertIn("stand-in", told["triton"])
        self.assertIn("PyTorch's own", told["causal-conv1d"])


if __name__ == "__main__":
    unittest.main()
