"""Models by id: the look-ups of libraries, answered with the files that are here or that a configuration makes."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import tempfile
from types import ModuleType
from typing import Any

from vramscope.dry_run import made_files
from vramscope.dry_run.notes import Notes
from vramscope.record.errors import RecordingError
from vramscope.record.patches import Patches

# The program that started the dry run, which finds models as all its commands do.
PROGRAM = "VRAMSCOPE_PROGRAM"

# Kept before processes are caught: this one is the recorder's own.
Popen = subprocess.Popen

# What libraries say of an id that is not here and may not be asked for.
UNREACHED = re.compile("couldn.t connect to|offline mode|outgoing traffic has been disabled|uses no network")


class Hub:
    """Folders for the ids and incomplete folders that a command names."""

    def __init__(self, notes: Notes, offline: bool) -> None:
        """Asks the network through the program alone, and not if `offline`."""
        self.notes, self.offline = notes, offline
        self.made = tempfile.TemporaryDirectory(prefix="vramscope-models-")
        self.found: dict[str, str | None] = {}
        self.cutters: set[str] = set()  # folders whose tokenizer was made
        self.refused: dict[str, str] = {}

    # Folders

    def folder(self, name: str, modelscope: bool = False) -> str | None:
        """A folder that stands for this id or folder: with its configuration, and a tokenizer and processor."""
        name = str(name)
        if name not in self.found:
            self.found[name] = None
            if os.path.isdir(name):
                self.found[name] = self.completed(name, name)
            elif re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) and not os.path.exists(name):
                found = self.resolve(name, modelscope)
                self.found[name] = self.completed(name, found, True) if found else None
        return self.found[name]

    def resolve(self, name: str, modelscope: bool) -> str | None:
        """The folder with the configuration of an id, which the program finds."""
        program = os.environ.get(PROGRAM)
        if not program:
            return None
        words = [program, "models", name, "--folder"]
        words += ["--modelscope"] * modelscope + ["--offline"] * self.offline
        env = {k: v for k, v in os.environ.items() if k not in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")}
        try:
            process = Popen(
                words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=env
            )
        except OSError as error:  # the program was taken away during the run
            self.refused[name] = f"{program} does not start: {error.strerror}"
            return None
        out, said = process.communicate()
        if process.returncode != 0:
            self.refused[name] = re.sub(r"^error: ", "", said.strip())
            return None
        for line in said.splitlines():
            self.notes.tell(name, line.removeprefix("note: "))
        return out.strip()

    def completed(self, name: str, folder: str, found: bool = False) -> str | None:
        """The folder itself if nothing is missing there, else one with what is missing; None if it holds no model.

        Of a configuration that was `found`, its class of transformers is added where it is left out: tools look at it.
        """
        lacking, config = made_files.missing(folder), made_files.read(folder)
        if config is None:
            return None
        named = found and not config.get("architectures")
        if not lacking and not named:
            return folder
        made = tempfile.mkdtemp(dir=self.made.name)
        files: dict[str, str] = {}
        kinds = []
        if named:
            files["config.json"] = json.dumps({**config, "architectures": architectures(folder)})
        for entry in os.listdir(folder):
            if entry not in files:
                os.symlink(os.path.join(os.path.abspath(folder), entry), os.path.join(made, entry))
        config = made_files.whole(folder)
        if "processor" in lacking:
            more, kind = made_files.processor(config)
            files |= more
            if kind:
                kinds.append(f"images by transformers' defaults of {kind}")
        if "tokenizer" in lacking:
            files |= made_files.tokenizer(config)
            kinds.append(
                f"a tokenizer of {made_files.Specials(config).size:,} entries with its special tokens at their ids, "
                "which cuts text by rule"
            )
        for entry, text in files.items():
            path = os.path.join(made, entry)
            if not os.path.lexists(path):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        if "tokenizer" in lacking:
            self.cutters.add(made)
        if kinds:
            self.notes.tell(
                f"{name}: {' and '.join(lacking)}", f"not there; made of the configuration: {'; '.join(kinds)}"
            )
        return made

    def remove(self) -> None:
        """Takes the folders away."""
        self.made.cleanup()

    # Libraries

    def actions(self, patches: Patches) -> dict[str, Any]:
        """What is done as soon as one of these modules is imported."""
        return {
            "transformers.utils.hub": lambda m: self.transformers(m, patches),
            "transformers.models.auto.tokenization_auto": lambda m: self.auto_tokenizer(m, patches),
            "huggingface_hub.file_download": lambda m: self.file_download(m, patches),
            "huggingface_hub._snapshot_download": lambda m: self.snapshot(m, patches, False),
            "modelscope.hub.snapshot_download": lambda m: self.snapshot(m, patches, True),
            "modelscope.hub.file_download": lambda m: self.modelscope_file(m, patches),
        }

    def transformers(self, module: ModuleType, patches: Patches) -> None:
        """`cached_files`, by which transformers finds every file."""
        real = module.cached_files

        def cached_files(path_or_repo_id: Any, filenames: Any, *args: Any, **kwargs: Any) -> Any:
            failed: Exception | None = None
            found = None
            try:
                found = real(path_or_repo_id, filenames, *args, **kwargs)
            except (OSError, ValueError) as e:
                failed = e
            if found is not None and len(found) == len(filenames):
                return found
            folder = self.folder(str(path_or_repo_id)) if kwargs.get("repo_type") in (None, "model") else None
            if folder is None or folder == str(path_or_repo_id):
                if failed is not None:
                    raise failed
                return found
            kwargs.pop("_commit_hash", None)
            return real(folder, filenames, *args, **kwargs)

        patches.set(module, "cached_files", cached_files)
        if hasattr(module, "list_repo_templates"):
            listed = module.list_repo_templates

            def list_repo_templates(repo_id: Any, *args: Any, **kwargs: Any) -> Any:
                folder = self.folder(str(repo_id))
                if folder is None:
                    return listed(repo_id, *args, **kwargs)
                inside = os.path.join(folder, "additional_chat_templates")
                return [n.removesuffix(".jinja") for n in os.listdir(inside)] if os.path.isdir(inside) else []

            patches.set(module, "list_repo_templates", list_repo_templates)

    def auto_tokenizer(self, module: ModuleType, patches: Patches) -> None:
        """`AutoTokenizer`, which would read a made tokenizer as a class of the model's own."""
        from transformers.utils import hub

        kind = module.AutoTokenizer
        real = kind.from_pretrained.__func__

        def from_pretrained(cls: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
            quiet = dict.fromkeys(
                ("_raise_exceptions_for_missing_entries", "_raise_exceptions_for_connection_errors"), False
            )
            if str(name) not in self.found:
                hub.cached_file(name, "tokenizer_config.json", **quiet)
            folder = self.found.get(str(name))
            if folder in self.cutters or str(name) in self.cutters:
                from transformers import PreTrainedTokenizerFast

                return PreTrainedTokenizerFast.from_pretrained(folder or name)
            return real(cls, name, *args, **kwargs)

        patches.set(kind, "from_pretrained", classmethod(from_pretrained))

    def file_download(self, module: ModuleType, patches: Patches) -> None:
        """`hf_hub_download` of a model's file."""
        from huggingface_hub import errors

        real = module.hf_hub_download

        def hf_hub_download(repo_id: str, filename: str, *args: Any, **kwargs: Any) -> str:
            try:
                return str(real(repo_id, filename, *args, **kwargs))
            except (OSError, ValueError):
                folder = self.folder(repo_id) if kwargs.get("repo_type") in (None, "model") else None
                if folder is None:
                    raise
                path = os.path.join(folder, kwargs.get("subfolder") or "", filename)
                if os.path.isfile(path):
                    return path
                missing = getattr(errors, "LocalEntryNotFoundError", OSError)
                raise missing(
                    f"{repo_id} has no {filename} here; a dry run makes a model of its configuration"
                ) from None

        patches.set(module, "hf_hub_download", hf_hub_download)

    def snapshot(self, module: ModuleType, patches: Patches, modelscope: bool) -> None:
        """`snapshot_download`, of either hub: a folder without weights."""
        real = module.snapshot_download

        def snapshot_download(repo_id: Any = None, *args: Any, **kwargs: Any) -> str:
            name = str(repo_id if repo_id is not None else kwargs.get("model_id") or kwargs.get("repo_id"))
            kind = kwargs.get("repo_type")
            try:
                if modelscope:
                    # Its library asks the network before it looks into its cache.
                    kwargs["local_files_only"] = True
                given = () if repo_id is None else (repo_id,)
                found = str(real(*given, *args, **kwargs))
                if self.is_whole(found, kwargs.get("allow_patterns")):
                    return self.folder(found) or found
            except Exception:
                folder = self.folder(name, modelscope) if kind in (None, "model") else None
                if folder is None:
                    raise
                return folder
            folder = self.folder(name, modelscope) if kind in (None, "model") else None
            return folder or found

        patches.set(module, "snapshot_download", snapshot_download)

    @staticmethod
    def is_whole(folder: str, patterns: Any) -> bool:
        """True for a folder with a configuration, or with files of the names that were asked for."""
        if not os.path.isdir(folder):
            return False
        names = os.listdir(folder)
        if patterns:
            asked = [patterns] if isinstance(patterns, str) else list(patterns)
            return any(fnmatch.filter(names, p) for p in asked)
        return "config.json" in names or "adapter_config.json" in names

    def modelscope_file(self, module: ModuleType, patches: Patches) -> None:
        """`model_file_download` of ModelScope."""
        real = getattr(module, "model_file_download", None)
        if real is None:
            return

        def model_file_download(model_id: str, file_path: str, *args: Any, **kwargs: Any) -> str:
            folder = self.folder(model_id, True)
            path = os.path.join(folder, file_path) if folder else ""
            return path if os.path.isfile(path) else str(real(model_id, file_path, *args, **kwargs))

        patches.set(module, "model_file_download", model_file_download)

    def explain(self, error: BaseException) -> RecordingError | None:
        """Why an id of a model was not found, where the program said it."""
        text = str(error)
        for name, why in self.refused.items():
            if why and (name in text or UNREACHED.search(text)):
                return RecordingError(
                    f"The model {name} is not on this machine, and its configuration was not found: {why}\nGive the "
                    "path of a folder with its config.json in place of the id; weights are not needed."
                )
        return None


def architectures(folder: str) -> list[str]:
    """The class that trains a model, as its configuration would name it."""
    from transformers import AutoConfig

    from vramscope.record.model import model_class

    return [model_class(AutoConfig.from_pretrained(folder)).__name__]
