"""run.py WORK OUT --site S --lf-site L --ax-site A [--only a,b] [--gib 70] [--seconds 480]: each case of launch/ by its own tool, several side by side."""
import json, os, shutil, signal, subprocess, sys, time
words = sys.argv[1:]; value = lambda n, d=None: words[words.index(n) + 1] if n in words else d
work, out = os.path.abspath(words[0]), os.path.abspath(words[1]); here = os.path.dirname(os.path.abspath(__file__)); start = time.time()
site, lf, ax = value("--site"), value("--lf-site"), value("--ax-site")
gib, seconds, jobs = float(value("--gib", 72)), float(value("--seconds", 480)), int(value("--jobs", 9))
os.makedirs(work, exist_ok=True); os.makedirs(out + "/logs", exist_ok=True)
for n in ("launch", "examples"):
    l = os.path.join(work, n)
    if not os.path.lexists(l): os.symlink(os.path.join(here, n), l)
files = {f.rsplit(".", 1)[0]: f for f in sorted(os.listdir(here + "/launch")) if f.endswith((".sh", ".yaml", ".yml"))}
names = value("--only").split(",") if value("--only") else list(files)
BIG = {"swift_internvl3_full_vit": 14, "lf_qwen25vl_full": 18, "lf_internvl3_freeze": 10, "lf_llava_lora_liger": 12, "swift_qwen3vl_lora": 12, "lf_qwen3vl_lora": 10, "ds_trl_text_zero3": 12, "trl_text_dpo_full": 14, "ax_text_full": 12, "trl_grpo_qwen25vl_lora": 10, "trl_sft_qwen25vl_lora": 12, "swift_qwen25vl_lora_vit": 14}
size = lambda n: BIG.get(n, 7)
def environment(name=None, hook=True):
    paths = [here + "/hook"] if hook else []
    if name and name.startswith("lf_"): paths.append(lf)
    if name and name.startswith("ax_"): paths.append(ax)
    if name and name.startswith("swift") and ("dpo" in name or "grpo" in name): paths.append(os.path.dirname(site) + "/rlhf")
    paths.append(site)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in paths if p), PATH=here + "/bin" + os.pathsep + os.environ["PATH"], HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", PYTHONUNBUFFERED="1", USE_HF="1", WANDB_DISABLED="true", WANDB_MODE="disabled", DISABLE_VERSION_CHECK="1", OMP_NUM_THREADS="2", AXOLOTL_DO_NOT_TRACK="1", DO_NOT_TRACK="1", HF_HOME=f"{work}/cache/{name or 'all'}", MODELSCOPE_CACHE=f"{work}/cache/ms", TRITON_CACHE_DIR=f"{work}/cache/triton", MASTER_PORT=str(20000 + abs(hash(name)) % 20000))
    if hook: env["VLM_RECORD"] = f"{work}/{name}.json"
    return env
def command(name):
    f = "launch/" + files[name]
    if f.endswith(".sh"): return ["bash", f]
    first = open(os.path.join(here, f)).readline().strip("# \n").split()
    return [*first[:-1], f] if first[-1].endswith(".yaml") else [*first, f]
def prepare():
    env = environment(hook=False); log = lambda n: open(f"{out}/logs/{n}.log", "w")
    runs = [subprocess.Popen([sys.executable, here + "/make_models.py", work + "/models", "--device", "cuda", m], env=env, stdout=log("m_" + m), stderr=subprocess.STDOUT) for m in ("qwen25vl", "qwen3vl", "internvl3", "gemma3", "llava")]
    subprocess.run([sys.executable, here + "/make_data.py", work + "/data"], env=env, stdout=log("data"), stderr=subprocess.STDOUT)
    subprocess.run([sys.executable, here + "/make_text.py", work, "--device", "cuda"], env=env, stdout=log("text"), stderr=subprocess.STDOUT)
    print("prepared", [r.wait() for r in runs], round(time.time() - start), flush=True)
def begin(n):
    f = open(f"{out}/logs/{n}.log", "w")
    return dict(name=n, run=subprocess.Popen(command(n), cwd=work, env=environment(n), stdout=f, stderr=subprocess.STDOUT, start_new_session=True), at=time.time(), log=f.name)
def stop(e):
    try: os.killpg(e["run"].pid, signal.SIGKILL)
    except ProcessLookupError: pass
prepare(); waiting = sorted(names, key=lambda n: -size(n)); running = []; table = open(out + "/results.jsonl", "w")
while waiting or running:
    left = seconds - (time.time() - start)
    for n in list(waiting):
        if len(running) < jobs and sum(size(e["name"]) for e in running) + size(n) <= gib and left > 45:
            waiting.remove(n); running.append(begin(n))
    if left < 45: waiting = []
    for e in list(running):
        rc = e["run"].poll()
        if rc is None and (time.time() - e["at"] > 200 or left < 0): stop(e); rc = "timeout"
        if rc is not None:
            running.remove(e); n = e["name"]; row = dict(case=n, launch=files[n], rc=rc, seconds=round(time.time() - e["at"], 1)); r = f"{work}/{n}.json"
            if os.path.exists(r): row["record"] = json.load(open(r))
            if not row.get("record", {}).get("finished"): row["tail"] = open(e["log"], errors="replace").read()[-2500:]
            table.write(json.dumps(row) + "\n"); table.flush(); stop(e); shutil.rmtree(f"{work}/out/{n}", ignore_errors=True)
            print(n, rc, row["seconds"], len(row.get("record", {}).get("steps", [])), round(row.get("record", {}).get("run_peak_allocated", 0) / 2**30, 3), (row.get("tail") or "")[-300:].replace("\n", " | "), flush=True)
    time.sleep(.3)
print("done", round(time.time() - start), flush=True)
