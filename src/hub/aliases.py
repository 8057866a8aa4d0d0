"""Lists the names that training tools give to models, from the tools' own tables.

    pip install --no-deps --target PACKAGES llamafactory==0.9.5 ms-swift==4.6.0
    pip install --no-deps --target OLDER ms-swift==2.6.1
    python3 src/hub/aliases.py PACKAGES OLDER

reads the sources below both folders without importing them, and writes `src/hub/aliases/*.tsv`, a name and the model's id
at the Hugging Face Hub: `ms_swift_2.tsv` (the values of ms-swift 2's `model_type`), `modelscope.tsv` (ids at ModelScope
that differ from those at the Hugging Face Hub) and `llama_factory.tsv` (the names of LLaMA-Factory's menu).
"""

import ast
import pathlib
import sys

OUT = pathlib.Path(__file__).parent / "aliases"


def text(node):
    """The string that a node is, or None."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def calls(tree, name):
    """Every call of a function of this name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == name:
            yield node


def registered(body, known):
    """Calls of `register_model` with the variables of the loops around them: loops run over literals."""
    for node in body:
        is_loop = isinstance(node, ast.For) and isinstance(node.target, ast.Name)
        if is_loop and isinstance(node.iter, (ast.List, ast.Tuple)):
            for value in filter(None, map(text, node.iter.elts)):
                yield from registered(node.body, {**known, node.target.id: value})
        elif isinstance(node, ast.Assign) and filled(node.value, known):
            known = {**known, node.targets[0].id: filled(node.value, known)}
        else:
            for call in calls(node, "register_model"):
                yield call, known


def filled(node, known):
    """The string that a node is, or None: a literal, a variable of a loop, an f-string, `.lower()` or `.replace()` of one."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):
        values = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        parts = [filled(value, known) for value in values]
        return "".join(parts) if all(parts) else None
    if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("lower", "replace"):
        of, given = filled(node.func.value, known), [text(arg) for arg in node.args]
        return getattr(of, node.func.attr)(*given) if of and all(one is not None for one in given) else None
    return text(node)


def of_ms_swift_2(root):
    """`ModelType` names the types; `@register_model(ModelType.NAME, MODELSCOPE_ID, …, hf_model_id=ID)` checkpoints."""
    tree = ast.parse((root / "swift/llm/utils/model.py").read_text())
    types, aliases, ids = {}, {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "ModelType":
            for line in node.body:
                if isinstance(line, ast.Assign) and text(line.value):
                    types[line.targets[0].id] = text(line.value)
    for call, known in registered(tree.body, {}):
        if len(call.args) < 2:
            continue
        given = next((filled(word.value, known) for word in call.keywords if word.arg == "hf_model_id"), None)
        alias = types.get(getattr(call.args[0], "attr", None)) or filled(call.args[0], known)
        at_modelscope = filled(call.args[1], known)
        if given and alias:
            aliases[alias] = given
            if at_modelscope:
                ids[at_modelscope] = given
    return aliases, ids


def of_ms_swift_4(root):
    """`Model(MODELSCOPE_ID, ID)` of every group."""
    ids = {}
    for path in sorted((root / "swift/model/models").glob("*.py")):
        for call in calls(ast.parse(path.read_text()), "Model"):
            names = [text(arg) for arg in call.args[:2]]
            if len(names) == 2 and all(names):
                ids[names[0]] = names[1]
    return ids


def of_llama_factory(root):
    """`register_model_group(models={NAME: {DownloadSource.DEFAULT: ID, …}})`."""
    names, ids = {}, {}
    for call in calls(ast.parse((root / "llamafactory/extras/constants.py").read_text()), "register_model_group"):
        models = next(word.value for word in call.keywords if word.arg == "models")
        for name, sources in zip(models.keys, models.values):
            of = {key.attr: text(value) for key, value in zip(sources.keys, sources.values)}
            if of.get("DEFAULT"):
                names[text(name)] = of["DEFAULT"]
                if of.get("MODELSCOPE"):
                    ids[of["MODELSCOPE"]] = of["DEFAULT"]
    return names, ids


def write(name, rows):
    rows = sorted({(key, value) for key, value in rows.items() if key != value and "/" in value})
    (OUT / f"{name}.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in rows))


def main():
    packages, older = (pathlib.Path(given) for given in sys.argv[1:3])
    types, ids_2 = of_ms_swift_2(older)
    menu, ids_of_menu = of_llama_factory(packages)
    write("ms_swift_2", types)
    write("llama_factory", menu)
    write("modelscope", {**ids_2, **ids_of_menu, **of_ms_swift_4(packages)})


main()
