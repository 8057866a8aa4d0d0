"""Makes PyTorch's wheel load on a machine without NVIDIA's libraries.

usage: stand_ins.py TORCH_LIB_FOLDER
PyPI's wheel for Linux links CUDA's libraries, two gigabytes that reading a configuration never calls. Each is stood in
for by a small library with the same names, whose functions all answer "no device" (cudaErrorNoDevice, 100).
"""
import collections, os, re, subprocess, sys

folder = sys.argv[1]
ours = sorted(f for f in os.listdir(folder) if f.startswith("lib") and ".so" in f and not os.path.exists(os.path.join(folder, f + ".map")))


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


needed, wanted, made = set(), set(), set()
for name in ours:
    path = os.path.join(folder, name)
    needed |= {m for line in lines("readelf", "-d", path) for m in re.findall(r"NEEDED.*\[(.*)\]", line)}
    wanted |= {line.split()[-1] for line in lines("nm", "-D", "--undefined-only", path) if " U " in line}
    made |= {line.split()[-1].split("@")[0] for line in lines("nm", "-D", "--defined-only", path)}

known = re.compile(r"lib(cudart|cublas|cublasLt|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|cusparseLt|nccl|nvrtc|nvshmem_host|nvjitlink|nvToolsExt)\.so")
missing = sorted(name for name in needed if known.match(name) and name not in ours)
# a symbol with a version names its library; those without one may lie in any
of_library = collections.defaultdict(lambda: collections.defaultdict(set))
prefix = re.compile(r"^(_*cu[A-Z_]|cuda|cublas|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|nccl|nvrtc|nvshmem|__cuda|__fatbin|nvJit|nvtx)")
for symbol in wanted:
    name, _, version = symbol.replace("@@", "@").partition("@")
    if name in made:
        continue
    if version:
        stem = re.match(r"(lib[A-Za-z_]+)", version)
        library = next((m for m in missing if stem and m.startswith(stem.group(1) + ".so")), None)
        library = library or next((m for m in missing if version.lower() in m.lower()), None)
        if library:
            of_library[library][version].add(name)
    elif prefix.match(name) and missing:
        of_library[missing[0]][""].add(name)

for library in missing:
    source, script = [".text"], ""
    for version, names in of_library[library].items():
        for name in sorted(names):
            source += [f".globl {name}", f".type {name},@function", f"{name}: mov $100,%eax", "ret", f".size {name},.-{name}"]
        if version:
            script += f"{version} {{ global: {'; '.join(sorted(names))}; }};\n"
    stem = os.path.join(folder, library)
    open(stem + ".s", "w").write("\n".join(source) + '\n.section .note.GNU-stack,"",@progbits\n')
    command = ["cc", "-shared", "-nostdlib", "-o", stem, stem + ".s", f"-Wl,-soname,{library}"]
    # kept: it tells a stand-in from a library of the wheel
    open(stem + ".map", "w").write(script or "{ global: *; };\n")
    command.append(f"-Wl,--version-script,{stem}.map")
    subprocess.run(command, check=True)
    os.remove(stem + ".s")
print(f"{len(missing)} libraries stood in for")
