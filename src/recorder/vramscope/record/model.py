"""The usual step of a model that transformers knows: made, fed and trained without a script."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import torch

from vramscope.record import inputs
from vramscope.record.errors import Finished, RecordingError
from vramscope.record.script import complaint, progress
from vramscope.record.session import recording
from vramscope.record.vary import model_words

DTYPES = {
    "bf16": torch.bfloat16,
    "bf16-amp": torch.bfloat16,
    "fp32": torch.float32,
    "amp-bf16": torch.float32,
    "amp-fp16": torch.float32,
}
AUTOCAST = {"bf16-amp": torch.bfloat16, "amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


def run(options: argparse.Namespace, out: str) -> None:
    """Records `--steps` steps of `--model` to the file at `out`."""
    form = inputs.Form()
    with recording(os.devnull, gpu=options.gpu):
        config = read_config(options.model)
        model = make(config, options)
        if inputs.takes_images(model):
            form = inputs.find(model, config, options)
        del model
    command = model_words(options, {})
    session = recording(out, gpu=options.gpu, steps=options.steps, command=command, progress=progress(options.steps))
    with session:
        config = read_config(options.model)
        if form.images is not None:
            session.recorder.noted.note("batch", form.images, None)
        train(make(config, options), config, options, form)
    if session.done == 0:
        raise RecordingError(f"No step of {options.model} was recorded.")


def read_config(name: str) -> Any:
    """Configuration in a folder, a file, or the local cache of the hub."""
    from transformers import AutoConfig

    path = os.path.dirname(os.path.abspath(name)) if os.path.isfile(name) and name.endswith("config.json") else name
    if os.path.isfile(name) and os.path.basename(name) != "config.json":
        import json

        with open(name, encoding="utf-8") as file:
            known = json.load(file)
        if "model_type" not in known:
            raise RecordingError(f'"{name}" has no model_type, so it is no configuration of transformers.')
        return AutoConfig.for_model(**known)
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True)
    except OSError as e:
        raise RecordingError(
            f'The configuration of "{name}" is not on this machine, and the recorder does not use the network. '
            "Bring its config.json (and preprocessor_config.json, if it has one) into a folder and give the folder."
        ) from e
    except ValueError as e:
        raise RecordingError(f'transformers can\'t read the configuration of "{name}": {e}') from e


def model_class(config: Any) -> Any:
    """Class that trains this configuration: its own architecture, else what transformers maps it to."""
    import transformers
    from transformers.models.auto import modeling_auto as auto

    for name in getattr(config, "architectures", None) or []:
        if hasattr(transformers, name):
            return getattr(transformers, name)
    for mapping in (
        "IMAGE_TEXT_TO_TEXT",
        "CAUSAL_LM",
        "SEQ_TO_SEQ_CAUSAL_LM",
        "VIDEO_CLASSIFICATION",
        "IMAGE_CLASSIFICATION",
    ):
        names = getattr(auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES", {})
        if config.model_type in names:
            name = names[config.model_type]
            return getattr(transformers, name if isinstance(name, str) else name[0])
    raise RecordingError(f'transformers has no class that trains a "{config.model_type}". Record a script that does.')


def make(config: Any, options: argparse.Namespace) -> Any:
    """The model on the card, as `from_pretrained` and `.cuda()` leave it."""
    for part in (config, config.get_text_config()):
        if hasattr(part, "use_cache"):
            part.use_cache = False
    cls = model_class(config)
    try:
        with torch.device("cuda"):
            model = cls._from_config(config, dtype=DTYPES[options.precision], attn_implementation=options.attn or None)
    except ModuleNotFoundError as e:
        raise RecordingError(f"{cls.__name__} needs the package {e.name}: install it in {sys.executable}.") from e
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as e:
        raise RecordingError(
            f"{cls.__name__} can't be built from this configuration: {complaint(e, e.__traceback__)}\n"
            "Compare it with the config.json of a published model of this family."
        ) from e
    model.cuda()  # `torch.normal`, which a few classes call, makes its tensor on the host whatever the default is
    if options.lora:
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(
            model, LoraConfig(r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear")
        )
    if options.ckpt:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if options.lora:
            model.enable_input_require_grads()
    model.train()
    return model


def optimizer(model: Any, name: str) -> torch.optim.Optimizer:
    """An optimizer of the parameters that are trained."""
    trained = [p for p in model.parameters() if p.requires_grad]
    if name.startswith("adamw"):
        how = {"adamw": dict(foreach=True), "adamw_fused": dict(fused=True), "adamw_loop": dict(foreach=False)}[name]
        return torch.optim.AdamW(trained, lr=1e-6, **how)
    return torch.optim.SGD(trained, lr=1e-6, momentum=0.9 if name == "sgdm" else 0.0)


def train(model: Any, config: Any, options: argparse.Namespace, form: inputs.Form) -> None:
    """Trains on such batches until the recording has its steps."""
    stepper = optimizer(model, options.optim)
    low = AUTOCAST.get(options.precision)
    scaler = torch.amp.GradScaler("cuda", enabled=low is torch.float16)
    try:
        while True:
            batch = inputs.batch(model, config, options, form)
            with torch.autocast("cuda", dtype=low, enabled=low is not None):
                loss = inputs.loss(model(**batch))
            scaler.scale(loss).backward()
            scaler.step(stepper)
            scaler.update()
            stepper.zero_grad(set_to_none=True)
            del loss, batch
    except Finished:
        return
    except (RecordingError, RuntimeError, IndexError, ValueError) as e:
        inputs.refuse_length(config, options, e)
        raise
