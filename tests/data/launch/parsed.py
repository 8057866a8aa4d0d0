"""Reads the launch files of this folder with the tools' own parsers, and writes what they take to `parsed.json`.

usage: parsed.py
Needs the packages of tests/exports/requirements.txt, and bash, which puts in the variables of scripts: the programs that
they start are functions here that print their arguments. What a class checks or derives after parsing (`__post_init__`)
is left out, since it asks for GPUs, files and models; values are those of the parser.
"""

import dataclasses, enum, json, os, pathlib, subprocess, sys

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_VERSION_CHECK="1")
HERE = pathlib.Path(__file__).parent
PROGRAMS = ["swift", "llamafactory-cli", "accelerate", "torchrun", "deepspeed"]
STUBS = "".join(f"{name}() {{ printf '%s\\0' {name} \"$@\"; printf '\\0'; env -0; exit; }}\n" for name in PROGRAMS)


def started(path):
    """Arguments of the program that a script starts, and the variables that it sets."""
    before = dict(os.environ)
    script = STUBS + "pip() { :; }\n" + f"source {path.name} 2>/dev/null"
    out = subprocess.run(["bash", "-c", script], cwd=HERE, capture_output=True, check=True).stdout.decode()
    arguments, _, variables = out.partition("\0\0")
    pairs = dict(line.split("=", 1) for line in variables.strip("\0").split("\0") if "=" in line)
    ignored = {"_", "SHLVL", "PWD", "OLDPWD", "BASH_EXECUTION_STRING"}
    return arguments.split("\0"), {k: v for k, v in pairs.items() if before.get(k) != v and k not in ignored}


def named(arguments):
    """Keys that a command gives."""
    return {word.split("=")[0].lstrip("-").replace("-", "_") for word in arguments if word.startswith("--")}


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def without_checks(classes):
    """Switches off what classes do after parsing."""
    for one in (own for each in classes for own in each.__mro__):
        if "__post_init__" in vars(one):
            one.__post_init__ = lambda self, *args, **more: None
    return classes


def of_objects(objects, keys):
    """Values of some keys among the objects that a parser made."""
    out = {}
    for key in sorted(keys):
        holders = [one for one in objects if dataclasses.is_dataclass(one) and key in {f.name for f in dataclasses.fields(one)}]
        if holders:
            # A key that two classes share is given to both.
            out[key] = plain(getattr(holders[0], key))
    return out


def llama_factory(path):
    from omegaconf import OmegaConf
    from transformers import HfArgumentParser
    from llamafactory.hparams.parser import _TRAIN_ARGS

    parser = HfArgumentParser(without_checks(_TRAIN_ARGS))
    if path.suffix == ".yaml":
        given = OmegaConf.to_container(OmegaConf.merge(OmegaConf.load(path), OmegaConf.from_cli([])))
        # Keys of transformers' older versions (`warmup_ratio`) are no longer read, and have YAML's value.
        return given | of_objects(parser.parse_dict(given, allow_extra_keys=True), given)
    words, variables = started(path)
    *objects, _older = parser.parse_args_into_dataclasses(args=words[2:], return_remaining_strings=True)
    return variables | of_objects(objects, named(words))


def ms_swift(path):
    from transformers import HfArgumentParser
    from swift.arguments import SftArguments

    words, out = started(path)
    if words[0] == "torchrun":
        out, words = torchrun(words[1:], out)
    else:
        words = words[2:]
    objects = HfArgumentParser(without_checks([SftArguments])).parse_args_into_dataclasses(args=words)
    return out | of_objects(objects, named(words))


def torchrun(words, out):
    """Values of torchrun's own options, and the arguments of the script."""
    from torch.distributed.run import get_args_parser

    read = get_args_parser().parse_args(words)
    own = named(words) - named(read.training_script_args)
    return out | {key: plain(getattr(read, key)) for key in own}, read.training_script_args


def accelerate(words, out):
    """The same for `accelerate launch`."""
    from accelerate.commands.launch import launch_command_parser

    read = launch_command_parser().parse_args(words[2:])
    own = named(words) - named(read.training_script_args)
    return out | {key: plain(getattr(read, key)) for key in own}, read.training_script_args


def trl(path):
    from trl import DPOConfig, ModelConfig, ScriptArguments, SFTConfig, TrlParser

    config = DPOConfig if "dpo" in path.name else SFTConfig
    parser = TrlParser(without_checks((ScriptArguments, config, ModelConfig)))
    if path.suffix == ".yaml":
        import yaml

        keys = yaml.safe_load(path.read_text())
        return of_objects(parser.parse_args_and_config(["--config", str(path)]), keys)
    words, out = started(path)
    out, words = accelerate(words, out)
    return out | of_objects(parser.parse_args_and_config(words), named(words))


def accelerate_file(path):
    import yaml
    from accelerate.commands.config.config_args import ClusterConfig

    read, given = ClusterConfig.from_yaml_file(str(path)), yaml.safe_load(path.read_text())
    return {key: plain(getattr(read, key)) for key in given}


def axolotl(path):
    """PyYAML's values, which are what axolotl hands to its models of pydantic."""
    import yaml

    return yaml.safe_load(path.read_text())


def deepspeed_file(path):
    import hjson
    from deepspeed.runtime.config_utils import dict_raise_error_on_duplicate_keys

    return json.loads(hjson.dumpsJSON(hjson.loads(path.read_text(), object_pairs_hook=dict_raise_error_on_duplicate_keys)))


def deepspeed(path):
    from deepspeed.launcher.runner import parse_args
    from transformers import HfArgumentParser, TrainingArguments

    @dataclasses.dataclass
    class Model:
        model_name_or_path: str = None

    words, out = started(path)
    read = parse_args(words[1:])
    own = named(words) - named(read.user_args)
    out |= {key: plain(getattr(read, key)) for key in own}
    parser = HfArgumentParser(without_checks((Model, TrainingArguments)))
    return out | of_objects(parser.parse_args_into_dataclasses(args=read.user_args), named(read.user_args))


def reader(path):
    """The parser for a file of this folder, by its name."""
    if path.suffix == ".json":
        return deepspeed_file
    if path.name in {"trl_zero3.yaml", "trl_two_gpus.yaml"}:
        return accelerate_file
    tools = {"llama_factory": llama_factory, "ms_swift": ms_swift, "axolotl": axolotl, "trl": trl, "deepspeed": deepspeed}
    return next(read for tool, read in tools.items() if path.name.startswith(tool))


def main():
    out = {}
    for path in sorted(HERE.iterdir()):
        if path.suffix in {".yaml", ".sh", ".json"} and path.name != "parsed.json":
            out[path.name] = reader(path)(path)
            print(path.name, len(out[path.name]), file=sys.stderr)
    lines = [f"{json.dumps(name)}: {json.dumps(values, sort_keys=True)}" for name, values in out.items()]
    (HERE / "parsed.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
