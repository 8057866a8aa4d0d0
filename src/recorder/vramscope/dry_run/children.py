"""Processes that a command starts, run here instead: launchers are understood, and the first of their ranks is run."""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import os
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from vramscope.dry_run import commands, notebook
from vramscope.dry_run.notes import Notes
from vramscope.record import collectives, cuda
from vramscope.record.errors import RecordingError
from vramscope.record.imports import OnImport
from vramscope.record.patches import Patches
from vramscope.record.session import recording, settings

TORCHRUN = ("torch.distributed.run", "torch.distributed.launch")

# Modules that run as children and train nothing: they are asked for real.
QUERIES = ("pip", "torch.utils.collect_env", "torch._inductor", "triton", "sysconfig")


class Children:
    """Runs what the command starts, in this process."""

    def __init__(self, session: recording, notes: Notes, rank: int, cards: int) -> None:
        """Children of a recording, as this rank of however many a launcher starts, on a host of so many cards."""
        self.session, self.notes, self.rank, self.cards = session, notes, rank, cards
        self.settings = settings()
        self.started: list[str] = []
        self.ranks = 0

    def install(self, patches: Patches) -> OnImport:
        """Replaces what starts processes; returns what waits for launchers to be imported."""
        self.patches = patches
        self.show_cards(self.cards)
        real = subprocess.Popen
        children = self

        class Popen(real):  # type: ignore[misc, valid-type]
            """A process, or what it would run."""

            def __init__(self, args: Any, *rest: Any, **kwargs: Any) -> None:
                program = children.ours(args, kwargs)
                if program is None:
                    super().__init__(args, *rest, **kwargs)
                    return
                self.args, self.pid = args, os.getpid()
                self.stdin = self.stdout = self.stderr = None
                self._child_created = False
                self.universal_newlines = self.text_mode = False
                self.returncode = children.run(program, kwargs.get("env"))

            def wait(self, timeout: float | None = None) -> int:
                return self.returncode if not self._child_created else super().wait(timeout)

            def poll(self) -> int | None:
                return self.returncode if not self._child_created else super().poll()

            def communicate(self, *args: Any, **kwargs: Any) -> Any:
                return (None, None) if not self._child_created else super().communicate(*args, **kwargs)

            def __exit__(self, *exc: Any) -> None:
                if self._child_created:
                    super().__exit__(*exc)

        patches.set(subprocess, "Popen", Popen)
        system = os.system

        def run_line(line: str) -> int:
            program = self.ours(line, {"shell": True})
            return system(line) if program is None else self.run(program, None) << 8

        patches.set(os, "system", run_line)
        for name in ("execv", "execvp", "execve", "execvpe"):
            if hasattr(os, name):
                patches.set(os, name, self.replacing(getattr(os, name), name.endswith("e")))
        return OnImport({"torch.distributed.run": lambda module: patches.set(module, "run", self.torchrun)})

    def replacing(self, real: Any, has_env: bool) -> Any:
        """A call that puts another program in this one's place."""

        def execute(file: Any, args: Sequence[Any], env: Any = None) -> None:
            program = self.ours(list(map(os.fspath, args)), {})
            if program is None:
                real(file, args, *([env] if has_env else []))
            raise SystemExit(self.run(program, env))

        return execute

    def show_cards(self, cards: int) -> None:
        """Lets PyTorch see so many cards of the host."""
        self.patches.set_existing(torch.cuda, device_count=cuda.always(cards))
        self.patches.set_existing(torch._C, _cuda_getDeviceCount=cuda.always(cards))
        self.patches.set_existing(torch.accelerator, device_count=cuda.always(cards))

    def ours(self, args: Any, kwargs: dict[str, Any]) -> commands.Program | None:
        """What a process would run that may train; None for one whose words are only read, or that is not Python."""
        if kwargs.get("stdout") not in (None, sys.stdout) or os.getpid() != self.pid:
            return None
        words = shlex.split(args) if isinstance(args, str) else [os.fsdecode(os.fspath(x)) for x in args]
        try:
            program = commands.resolve(words, kwargs.get("cwd") or ".")
        except (RecordingError, OSError, ValueError):
            return None
        if program.kind == "shell" or (program.kind == "module" and program.target.startswith(QUERIES)):
            return None
        if commands.trains(program) is False:
            return None
        return program

    pid = os.getpid()

    # Running

    def run(self, program: commands.Program, env: Any) -> int:
        """Runs a program here with these variables; returns the status that it leaves with."""
        commands.refuse_others(program)
        if program.kind == "module" and program.target == "deepspeed.launcher.launch":
            program, env = self.deepspeed(program, env)
        self.started.append(" ".join(program.shown[:2]))
        with self.environment({**(os.environ if env is None else env), **program.env}):
            self.tell_settings()
            try:
                execute(program)
            except SystemExit as e:
                return e.code if isinstance(e.code, int) else 1 if e.code else 0
        return 0

    @contextlib.contextmanager
    def environment(self, env: Any) -> Iterator[None]:
        """Runs with these variables, and puts signals back that a launcher took."""
        before = dict(os.environ)
        handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
        os.environ.clear()
        os.environ.update({k: str(v) for k, v in env.items()})
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)
            for s, handler in handlers.items():
                if handler is not None:
                    signal.signal(s, handler)

    def tell_settings(self) -> None:
        """Writes what a launcher set after the recording began, such as the allocator's configuration."""
        now = settings()
        if now != self.settings:
            self.settings = now
            self.session.writer.write("setting", **now)

    # Launchers

    def torchrun(self, args: Any) -> None:
        """`torch.distributed.run.run`: one rank of what its arguments start."""
        import torch.distributed.run as torchrun

        if args.standalone:
            args.rdzv_backend, args.rdzv_endpoint = "c10d", "localhost:0"
        try:
            config, command, words = torchrun.config_from_args(args)
        except ValueError as e:
            raise RecordingError(
                f"torchrun does not take its flags: {e}. Where a script leaves a value to the environment, set it: "
                "NPROC_PER_NODE=8 vramscope dry-run …"
            ) from e
        words = [str(word) for word in words]
        words = [command, *words] if isinstance(command, str) else [sys.executable, *words]
        self.become(config.nproc_per_node, config.max_nodes)
        status = self.run(commands.resolve(words), dict(os.environ))
        if status:
            raise SystemExit(status)

    def deepspeed(self, program: commands.Program, env: Any) -> tuple[commands.Program, Any]:
        """The script of `python -m deepspeed.launcher.launch`, with what its process of this rank is told."""
        import deepspeed.launcher.launch as launch

        argv, sys.argv = sys.argv, [program.target, *program.args]
        try:
            args = launch.parse_args()
        finally:
            sys.argv = argv
        hosts = json.loads(base64.urlsafe_b64decode(args.world_info))
        counts = [len(cards) for cards in hosts.values()]
        env = {**(env or os.environ), **self.become(max(counts), len(counts), sum(counts))}
        words = [args.training_script]
        if args.module:
            words.insert(0, "-m")
        if not args.no_python:
            words = [sys.executable, *words]
        if not args.no_local_rank:
            words.append("--local_rank=0")
        return commands.resolve([*words, *args.training_script_args]), env

    def become(self, per_host: int, hosts: int, world: int | None = None) -> dict[str, str]:
        """Makes this process a rank of so many; returns the variables that say so."""
        world = world or per_host * hosts
        if self.rank >= world:
            raise RecordingError(f"--rank {self.rank}: the command starts {world} ranks, numbered from 0.")
        self.ranks = world
        told = collectives.variables(world, self.rank, per_host)
        os.environ.update(told)
        self.show_cards(max(self.cards, per_host))
        self.session.join(self.rank, world)
        return told


def named_folders() -> list[str]:
    """Folders that `PYTHONPATH` names, which Python would have searched if it had been started with it.

    A script of the shell sets it, long after this Python was started.
    """
    named = os.environ.get("PYTHONPATH", "")
    folders = [os.path.abspath(folder) for folder in named.split(os.pathsep)] if named else []
    return [folder for folder in dict.fromkeys(folders) if folder not in sys.path]


def execute(program: commands.Program) -> None:
    """Runs a script, a module, a program of the environment or a notebook as its own main program."""
    before_argv, before_path = sys.argv, list(sys.path)
    sys.argv = [program.target, *program.args]
    sys.path[:0] = named_folders()
    try:
        if program.kind == "module" and program.target in TORCHRUN:
            # Run as a main program its functions would be others than those that are replaced.
            importlib.import_module(program.target).main(program.args)
        elif program.kind == "module":
            sys.path.insert(0, os.getcwd())
            runpy.run_module(program.target, run_name="__main__", alter_sys=True)
        elif program.kind == "entry":
            found = commands.entry(program.target)
            if found is None:
                raise RecordingError(commands.unknown(program.target, None))
            sys.argv[0] = os.path.join(os.path.dirname(sys.executable), program.target)
            raise SystemExit(found.load()())
        elif program.kind == "notebook":
            sys.path.insert(0, os.path.dirname(os.path.abspath(program.target)))
            notebook.run(program.target)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(program.target)))
            runpy.run_path(program.target, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before_argv, before_path
