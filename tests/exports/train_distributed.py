"""Trains one step of each exported DeepSpeed and accelerate file, on the processor and a small random model.

usage: train_distributed.py FOLDER
DeepSpeed's file goes to its own `initialize` as it was exported, on rank 0 of as many as the plan has: PyTorch's fake
process group stands for the others. accelerate's goes to its own `launch`, for plans on one GPU: on processors it shards
nothing. Prints a line for each file that trained; ends with 1 where one did not.
"""
import json, multiprocessing, os, subprocess, sys, warnings

warnings.filterwarnings("ignore")
os.environ.update(CUDA_VISIBLE_DEVICES="", DS_ACCELERATOR="cpu", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")

import train_trl


def micro_batches(best):
    import torch

    ids = torch.arange(best["batch"] * 16).reshape(best["batch"], 16) % 190 + 3
    return [dict(input_ids=ids, labels=ids)] * best["accum"]


def deepspeed(path, plan, folder):
    """Runs a process for each file, because DeepSpeed keeps its groups as long as its process lives."""
    import deepspeed, torch, transformers  # imported once, here, for all

    own = multiprocessing.get_context("fork").Process(target=step_of_deepspeed, args=(path, plan))
    own.start()
    own.join()
    assert own.exitcode == 0, own.exitcode


def step_of_deepspeed(path, plan):
    import deepspeed as tool
    import deepspeed.comm.torch
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    # between processes of one machine it would compile a way through shared memory; here is one
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
    best, world = plan["recommended"]["setup"], plan["gpus"]
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(world))
    torch.distributed.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
    model = train_trl.small(plan["model"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    engine = tool.initialize(model=model, optimizer=optimizer, config=path, dist_init_required=False)[0]
    for batch in micro_batches(best):
        loss = engine(**batch).loss
        engine.backward(loss)
        engine.step()
        assert loss.item() > 0
    assert engine.global_steps == 1, engine.global_steps


def accelerate(path, plan, folder):
    if plan["gpus"] > 1:
        raise SystemExit("accelerate shards nothing on processors: give plans on one GPU")
    words = ["-m", "accelerate.commands.launch", "--config_file", path, "--cpu", __file__, "--step", json.dumps(plan)]
    out = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert out.returncode == 0 and out.stdout.endswith("stepped\n"), out.stdout + out.stderr


def step_of_accelerate(plan):
    """One step under `accelerate launch`, whose precision comes from the file."""
    import torch
    from accelerate import Accelerator

    plan = json.loads(plan)
    best = plan["recommended"]["setup"]
    accelerator = Accelerator(gradient_accumulation_steps=best["accum"])
    own = train_trl.small(plan["model"])
    model, optimizer = accelerator.prepare(own, torch.optim.AdamW(own.parameters(), lr=1e-4))
    before = [p.detach().clone() for p in own.parameters()]
    for micro in micro_batches(best):
        with accelerator.accumulate(model):
            accelerator.backward(model(**micro).loss)
            optimizer.step()
            optimizer.zero_grad()
    assert any((p != b).any() for p, b in zip(own.parameters(), before))


if __name__ == "__main__":
    if sys.argv[1] == "--step":
        train_trl.without_libraries()
        train_trl.without_network()
        step_of_accelerate(sys.argv[2])
        print("stepped")
    else:
        train_trl.train_all(sys.argv[1], {"deepspeed": deepspeed, "accelerate": accelerate})
