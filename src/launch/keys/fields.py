"""Lists the keys that each tool takes, from the tool's own classes, for the test that the tables leave none out.

    pip install --no-deps --target PACKAGES transformers==5.17.0 trl==1.16.0 llamafactory==0.9.5 ms-swift==4.6.0 \\
        axolotl==0.19.0 accelerate==1.15.0 deepspeed==0.19.8 torch==2.11.0   # or take target/exports, and axolotl
    python3 src/launch/keys/fields.py PACKAGES

reads the sources below PACKAGES without importing them, and writes `src/launch/keys/fields/TOOL.tsv`: a key, and its default
as JSON, or `?` where the default is no literal. Keys of transformers' TrainingArguments stand in its own list alone, unless
a tool declares them anew.
"""

import ast
import json
import pathlib
import re
import sys

OUT = pathlib.Path(__file__).parent / "fields"

# Classes of each tool: files, and the classes whose fields are its keys; bases are found among the same files.
SEQ2SEQ = "transformers/training_args_seq2seq.py"
TRL = ["trl/scripts/utils.py", "trl/trainer/model_config.py", "trl/trainer/base_config.py"]
SCRIPT = ["ScriptArguments", "ModelConfig", "DatasetMixtureConfig"]
CLASSES = {
    "transformers": (["transformers/training_args.py"], ["TrainingArguments"]),
    "trl_sft": ([*TRL, "trl/trainer/sft_config.py"], [*SCRIPT, "SFTConfig"]),
    "trl_dpo": ([*TRL, "trl/trainer/dpo_config.py"], [*SCRIPT, "DPOConfig"]),
    "trl_grpo": (
        [*TRL, "trl/trainer/grpo_config.py", "trl/scripts/grpo.py"],
        [*SCRIPT, "GRPOConfig", "GRPOScriptArguments"],
    ),
    "llama_factory": (
        ["llamafactory/hparams/*_args.py", SEQ2SEQ],
        ["ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments", "TrainingArguments"]
        + ["Seq2SeqTrainingArguments"],
    ),
    "ms_swift": (
        ["swift/arguments/*.py", "swift/arguments/base_args/*.py", "swift/trainers/arguments.py"]
        + ["swift/ray_utils/arguments.py", SEQ2SEQ],
        ["SftArguments", "TrainArgumentsMixin", "Seq2SeqTrainingArguments"],
    ),
    # What `swift rlhf` takes beside `swift sft`.
    "ms_swift_rlhf": (
        ["swift/arguments/*.py", "swift/arguments/base_args/*.py", "swift/trainers/arguments.py"]
        + ["swift/rlhf_trainers/*.py", "swift/ray_utils/arguments.py", SEQ2SEQ],
        ["RLHFArguments"],
    ),
    "axolotl": (["axolotl/utils/schemas/*.py", "axolotl/integrations/*/args.py"], ["AxolotlInputConfig", "*Args"]),
}
# Lists that leave out the keys of another one.
BEYOND = {"ms_swift_rlhf": "ms_swift"}
# Distribution of each tool's list, for its version.
DISTRIBUTIONS = {
    "transformers": "transformers",
    "trl_sft": "trl",
    "trl_dpo": "trl",
    "trl_grpo": "trl",
    "llama_factory": "llamafactory",
    "ms_swift": "ms_swift",
    "ms_swift_rlhf": "ms_swift",
    "axolotl": "axolotl",
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "launchers": "accelerate deepspeed torch",
}
# Objects of DeepSpeed's JSON whose keys are listed one by one; of others the table has a row for the whole object.
DEEPSPEED = {
    "zero_optimization": ("runtime/zero/config.py", "DeepSpeedZeroConfig"),
    "zero_optimization.offload_param": ("runtime/zero/offload_config.py", "DeepSpeedZeroOffloadParamConfig"),
    "zero_optimization.offload_optimizer": ("runtime/zero/offload_config.py", "DeepSpeedZeroOffloadOptimizerConfig"),
    "fp16": ("runtime/precision_config.py", "DeepSpeedFP16Config"),
    "bf16": ("runtime/precision_config.py", "DeepSpeedBF16Config"),
}
# Objects of an accelerate config, by the group of `accelerate launch` that holds their keys.
ACCELERATE = {
    "deepspeed_args": "deepspeed_config",
    "fsdp_args": "fsdp_config",
    "megatron_lm_args": "megatron_lm_config",
    "fp8_args": "fp8_config",
    "parallelism_config_args": "parallelism_config",
    "mpirun_args": "mpirun_config",
    "resource_args": "dynamo_config",
}


def default_of(node, constants):
    """Default of a field as JSON; `?` where it is no literal."""
    if node is None:
        return "?"
    if isinstance(node, ast.Call):
        named = {word.arg: word.value for word in node.keywords}
        if "default" in named:
            return default_of(named["default"], constants)
        is_field = isinstance(node.func, ast.Name) and node.func.id in {"field", "Field"}
        first = node.args[0] if is_field and node.args else None
        return "?" if first is None else default_of(first, constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return json.dumps(constants[node.id])
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Pow)):
        left, right = (default_of(side, constants) for side in (node.left, node.right))
        if "?" in (left, right):
            return "?"
        left, right = json.loads(left), json.loads(right)
        return json.dumps(left * right if isinstance(node.op, ast.Mult) else left**right)
    try:
        return json.dumps(ast.literal_eval(node))
    except (ValueError, TypeError):
        return "?"


def is_key(name, value):
    """True for a field that a person may set."""
    is_call = isinstance(value, ast.Call)
    init = [word.value for word in value.keywords if word.arg == "init"] if is_call else []
    closed = any(isinstance(word, ast.Constant) and word.value is False for word in init)
    return not name.startswith("_") and name != "model_config" and not closed


def aliases(value):
    """Other names of a field of pydantic's."""
    words = value.keywords if isinstance(value, ast.Call) else []
    return [word.value.value for word in words if word.arg == "alias" and isinstance(word.value, ast.Constant)]


class Sources:
    """Classes and constants of some files below a folder."""

    def __init__(self, root, patterns):
        self.classes, self.constants = {}, {}
        for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
            for node in ast.parse(path.read_text()).body:
                self.add(node, path)

    def add(self, node, path):
        """Keeps a class or a constant; those in `try` and `if` too."""
        if isinstance(node, ast.ClassDef):
            # Two classes of one name stand in transformers and in a tool that derives from it.
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self.constants[target.id] = node.value.value
        elif isinstance(node, (ast.Try, ast.If)):
            for inner in [*node.body, *node.orelse]:
                self.add(inner, path)

    def keys(self, name, seen):
        """Fields of a class and of its bases, the nearest declaration first."""
        if name in seen:
            return {}
        seen.add(name)
        out, bases = {}, []
        for node in self.classes.get(name, []):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    if is_key(item.target.id, item.value) and "ClassVar" not in ast.unparse(item.annotation):
                        for key in (item.target.id, *aliases(item.value)):
                            out.setdefault(key, default_of(item.value, self.constants))
            bases += [base.id for base in node.bases if isinstance(base, ast.Name)]
        for base in bases:
            for key, default in self.keys(base, seen).items():
                out.setdefault(key, default)
        return out


def of_classes(root, tool):
    """Keys of a tool that declares them as fields."""
    patterns, names = CLASSES[tool]
    sources = Sources(root, patterns)
    wanted = [own for name in names for own in sources.classes if re.fullmatch(name.replace("*", r"\w+"), own)]
    out, seen = {}, set()
    for name in wanted:
        out = {**sources.keys(name, seen), **out}
    known = of_classes(root, BEYOND[tool]) if tool in BEYOND else {}
    return {key: default for key, default in out.items() if key not in known}


def options(path):
    """Options of a program that `argparse` reads: its name, the variable of its group, and its default."""
    for node in ast.walk(ast.parse(path.read_text())):
        is_option = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        if not is_option:
            continue
        words = {word.arg: word.value for word in node.keywords}
        default = default_of(words["default"], {}) if "default" in words else "null"
        if "action" in words and "default" not in words:
            default = "false"
        for name in (arg.value for arg in node.args if isinstance(arg, ast.Constant)):
            if isinstance(name, str) and name.startswith("--"):
                yield name.lstrip("-").replace("-", "_"), ast.unparse(node.func.value), default


def of_accelerate(root):
    """Keys of accelerate's config file."""
    sources = Sources(root, ["accelerate/commands/config/config_args.py"])
    out = {**sources.keys("ClusterConfig", set()), **sources.keys("BaseConfig", set())}
    launch = list(options(root / "accelerate/commands/launch.py"))
    for name, group, default in launch:
        holder = ACCELERATE.get(group)
        if holder and (holder != "dynamo_config" or name.startswith("dynamo_")):
            out[f"{holder}.{name}"] = default
    for holder in ACCELERATE.values():
        out.pop(holder, None)
    return out


def of_launchers(root):
    """Options of the programs that start processes."""
    paths = ["accelerate/commands/launch.py", "deepspeed/launcher/runner.py", "torch/distributed/run.py"]
    found = [option for path in paths if (root / path).exists() for option in options(root / path)]
    return {name: default for name, _, default in found}


def of_deepspeed(root):
    """Keys of DeepSpeed's JSON: what its parser asks for at the top, and the fields of some objects."""
    base = root / "deepspeed"
    paths = [path for path in base.glob("**/*config.py") if "inference" not in path.parts]
    constants = Sources(base, ["**/constants.py", "**/*config.py"]).constants
    out = {name: "?" for name in Asked(paths, constants).of("_initialize_params")}
    for holder, (path, name) in DEEPSPEED.items():
        sources = Sources(base, [path])
        for key, default in sources.keys(name, set()).items():
            out[f"{holder}.{key}"] = default
    inner = Sources(base, ["runtime/activation_checkpointing/config.py"]).constants
    for name, value in inner.items():
        if name.startswith("ACT_CHKPT_") and not name.endswith("_DEFAULT") and isinstance(value, str):
            out[f"activation_checkpointing.{value}"] = json.dumps(inner.get(f"{name}_DEFAULT"))
    objects = {key.rpartition(".")[0] for key in out}
    return {key: default for key, default in out.items() if key not in objects}


class Asked:
    """What functions ask the dictionary for that they are given, those that they hand it to included."""

    def __init__(self, paths, constants):
        self.constants, self.functions = constants, {}
        for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text()))):
            inner = node.body if isinstance(node, ast.ClassDef) else []
            for item in (item for item in inner if isinstance(item, ast.FunctionDef)):
                self.functions[node.name if item.name == "__init__" else item.name] = item
            if isinstance(node, ast.FunctionDef) and node.name != "__init__":
                self.functions.setdefault(node.name, node)

    def of(self, name, seen=None):
        """Keys that the function asks for."""
        seen = set() if seen is None else seen
        function = self.functions.get(name)
        if function is None or name in seen:
            return
        seen.add(name)
        given = [arg.arg for arg in function.args.args if arg.arg != "self"][:1]
        defaults = [node for node in function.args.defaults if not getattr(node, "id", "").endswith("_DEFAULT")]
        for key in defaults + [key for node in ast.walk(function) for key in keys_asked(node, given)]:
            value = self.constants.get(key.id) if isinstance(key, ast.Name) else getattr(key, "value", None)
            if isinstance(value, str):
                yield value
        for node in ast.walk(function):
            hands = isinstance(node, ast.Call) and any(getattr(arg, "id", None) in given for arg in node.args)
            if hands and isinstance(node.func, ast.Name):
                yield from self.of(node.func.id, seen)


def keys_asked(node, given):
    """Key for which an expression asks one of the dictionaries `given`."""

    def is_given(value):
        return isinstance(value, ast.Name) and value.id in given

    if isinstance(node, ast.Call) and len(node.args) > 0:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and is_given(node.func.value):
            yield node.args[0]
        elif len(node.args) > 1 and is_given(node.args[0]):
            yield node.args[1]
    elif isinstance(node, ast.Subscript) and is_given(node.value):
        yield node.slice
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
        holder = node.comparators[0]
        if is_given(holder) or is_given(getattr(getattr(holder, "func", None), "value", None)):
            yield node.left


def version(root, distribution):
    """Version of an installed distribution."""
    found = [path for path in root.glob(f"{distribution}-*.*-info")]
    return found[0].name.split("-")[1].removesuffix(".dist") if found else "unknown"


def main():
    root = pathlib.Path(sys.argv[1])
    OUT.mkdir(exist_ok=True)
    for tool, distribution in DISTRIBUTIONS.items():
        own = {"accelerate": of_accelerate, "deepspeed": of_deepspeed, "launchers": of_launchers}.get(tool)
        keys = own(root) if own else of_classes(root, tool)
        versions = ", ".join(f"{name} {version(root, name)}" for name in distribution.split())
        lines = [f"# {versions}, by fields.py"]
        lines += [f"{key}\t{default}" for key, default in sorted(keys.items())]
        (OUT / f"{tool}.tsv").write_text("\n".join(lines) + "\n")
        print(f"{tool}: {len(keys)} keys")


if __name__ == "__main__":
    main()
