"""A callback for transformers' Trainer that says before the first step whether it will fit.

trainer = Trainer(..., callbacks=[vramscope.warning()])
"""

from __future__ import annotations

import json
import subprocess
import warnings
from typing import Any

from vramscope.programs import program
from vramscope.watch import bare, case_of, first_leaf, plain, shapes_of

GIB = 1 << 30


class MemoryWarning(UserWarning):
    """The first step may not fit the card."""


class DoesNotFit(RuntimeError):
    """The first step does not fit the card, and `stop=True` was asked for."""


def warning(gpu: str | None = None, *, limit_gib: float | None = None, stop: bool = False) -> Any:
    """A callback that predicts the first step once its batch is there, before it runs, and warns if it does not fit.

    The card is the one that PyTorch sees, unless `gpu` or `limit_gib` names what it has to fit. With `stop`, a step
    that runs out of memory raises DoesNotFit in place of a warning. What cannot be told of the run is left out of the
    prediction, and said.
    """
    from transformers import TrainerCallback

    class Warning_(TrainerCallback):
        """Looks at the first forward of a training, and at no other."""

        def __init__(self) -> None:
            """Nothing is looked at yet."""
            self.hooks: list[Any] = []
            self.setup: dict[str, Any] = {}

        def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Waits for the first forward."""
            if self.hooks or state.global_step:
                return
            model = bare(given["model"])
            self.setup = {"clip": bool(args.max_grad_norm and args.max_grad_norm > 0), "trainer": "transformers"}
            optimizer, steps = given.get("optimizer"), args.gradient_accumulation_steps
            seen: dict[str, Any] = {}

            def see(module: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
                """Takes the batch's shapes."""
                seen.update(shapes_of(positional, named))

            def look(module: Any, positional: tuple[Any, ...]) -> None:
                """Predicts where modules run, since accelerate enters autocast within the model's own call."""
                self.release()
                self.setup["autocast"] = autocast()
                case, notes = case_of(model, optimizer, self.setup, steps)
                say(plain(model.config.to_dict()), {**case, **seen}, notes)

            self.hooks = [
                model.register_forward_pre_hook(see, with_kwargs=True),
                first_leaf(model).register_forward_pre_hook(look),
            ]

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            """Leaves the model as it was."""
            self.release()

        def release(self) -> None:
            """Takes the hooks away."""
            for hook in self.hooks:
                hook.remove()
            self.hooks.clear()

    def say(config: dict[str, Any], case: dict[str, Any], notes: list[str]) -> None:
        """Warns, or raises, if the prediction says that the step does not fit."""
        room = room_of(gpu, limit_gib)
        if room is None:
            return
        answer = predicted(config, case, room)
        if isinstance(answer, str):
            warnings.warn(f"vramscope cannot predict this run: {answer}", MemoryWarning, stacklevel=2)
            return
        target = answer["target"]
        left = f" (not told by the run, and taken as usual: {', '.join(notes)})" if notes else ""
        said = f"{target['needed'] / GIB:.2f} GiB of {target['room'] / GIB:.2f} on {target['name']}{left}"
        if target["verdict"] == "oom":
            if stop:
                raise DoesNotFit(f"the first step needs {said}")
            warnings.warn(f"the first step runs out of memory: it needs {said}", MemoryWarning, stacklevel=2)
        elif target["verdict"] == "tight":
            warnings.warn(f"the first step is tight: it needs {said}", MemoryWarning, stacklevel=2)

    return Warning_()


def autocast() -> str | None:
    """The type that autocast computes in, if it is on."""
    import torch

    if not torch.is_autocast_enabled("cuda"):
        return None
    return str(torch.get_autocast_dtype("cuda")).removeprefix("torch.")


def room_of(gpu: str | None, limit_gib: float | None) -> list[str] | None:
    """Flags of what the run has to fit; None where neither a card is named nor PyTorch sees one."""
    words = ["--gpu", gpu] if gpu else []
    words += ["--limit-gib", str(limit_gib)] if limit_gib else []
    if words:
        return words
    import torch

    return ["--gpu", torch.cuda.get_device_name()] if torch.cuda.is_available() else None


def predicted(config: dict[str, Any], case: dict[str, Any], room: list[str]) -> dict[str, Any] | str:
    """The estimate of a step, or why there is none."""
    words = [program(), "--color", "never", "estimate", "--config", "-", "--format", "json", *room]
    for key, value in case.items():
        if value is None or key == "inputs":
            continue
        text = "x".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words.append(f"--{key.replace('_', '-')}={text.lower() if isinstance(value, bool) else text}")
    done = subprocess.run(words, input=json.dumps(config), capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        return done.stderr.strip().removeprefix("error: ")
    return json.loads(done.stdout)
