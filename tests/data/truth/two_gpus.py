"""transformers' Trainer on one of two GPUs as people start it: DDP, DeepSpeed with sizes left to "auto", FSDP2 by accelerate.

usage: torchrun --nproc-per-node 2 two_gpus.py CASE.json OUT.json
       vramscope record --world 2 --steps 3 two_gpus.py CASE.json OUT.json
CASE.json: `config` of a model without a name (`configurations.py`), and `case`, which is measure.py's with `front`: ddp, z2, z3 (`_off`: offload), fsdp, fsdp_no_reshard, fsdp_offload. Rank 0 writes OUT.json.
"""
import gc, json, os, sys, tempfile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
DS = dict(bf16=dict(enabled="auto"), fp16=dict(enabled="auto"), train_batch_size="auto", train_micro_batch_size_per_gpu="auto", gradient_accumulation_steps="auto", gradient_clipping="auto")
Z2 = dict(stage=2, allgather_partitions=True, allgather_bucket_size=2e8, overlap_comm=True, reduce_scatter=True, reduce_bucket_size=2e8, contiguous_gradients=True)
Z3 = dict(stage=3, overlap_comm=True, contiguous_gradients=True, sub_group_size=1e9, reduce_bucket_size="auto", stage3_prefetch_bucket_size="auto", stage3_param_persistence_threshold="auto",
    stage3_max_live_parameters=1e9, stage3_max_reuse_distance=1e9, stage3_gather_16bit_weights_on_model_save=True)

# Names in transformers of measure.py's optimizers, which fronts.py and trl_runs.py take too.
OPTIMIZERS = dict(adamw_fused="adamw_torch_fused", adamw="adamw_torch", sgd="sgd", adafactor="adafactor", adagrad="adagrad", adamw_8bit="adamw_bnb_8bit", adamw8bit="adamw_bnb_8bit", paged_adamw_8bit="paged_adamw_8bit", paged_adamw="paged_adamw_32bit", lion="lion_32bit", lion_8bit="lion_8bit", paged_lion_8bit="paged_lion_8bit", paged_lion="paged_lion_32bit",
    adamw_torchao_8bit="adamw_torch_8bit", adamw_torchao_4bit="adamw_torch_4bit")

def front(case):
    """The front of a case that names none: that of its strategy."""
    strategy, offload = case["strategy"], case.get("offload")
    if strategy.startswith("deepspeed"): return "z" + strategy[-1] + ("_off" if offload else "")
    return strategy + ("_offload" if offload else "")

def fused(case):
    """Liger's loss, and nothing else of Liger."""
    if case.get("loss") != "fused_linear": return {}
    return dict(use_liger_kernel=True, liger_kernel_config=dict(rope=False, rms_norm=False, swiglu=False, geglu=False, layer_norm=False, cross_entropy=False, fused_linear_cross_entropy=True))

def sharing(front, case):
    """TrainingArguments of a front. A case without one gives sizes of DeepSpeed's itself, and what is offloaded."""
    if front.startswith("fsdp1"):  # with accelerate's own defaults
        c = dict(version=1, auto_wrap_policy="TRANSFORMER_BASED_WRAP", use_orig_params=False, backward_prefetch="backward_pre")
        return dict(fsdp="full_shard offload auto_wrap" if front.endswith("_offload") else "full_shard auto_wrap", fsdp_config=c)
    if front.startswith("fsdp"):
        c = dict(version=2, auto_wrap_policy="TRANSFORMER_BASED_WRAP", reshard_after_forward=not front.startswith("fsdp_no_reshard"))
        return dict(fsdp=True, fsdp_config=dict(c, cpu_offload=True) if front.endswith("_offload") else c)
    if not front.startswith("z"): return {}
    z = dict(Z3 if front.startswith("z3") else Z2)
    offload = case.get("offload", "optimizer,param" if front == "z3_off" else "optimizer") if front.endswith("_off") else ""
    if "front" not in case: z = dict(stage=int(front[1]), **case.get("zero", {}))
    if offload: z["offload_optimizer"] = dict(device="cpu", pin_memory=True)
    if offload == "optimizer,param": z["offload_param"] = dict(device="cpu", pin_memory=True)
    return dict(deepspeed=dict(DS, zero_optimization=z, zero_force_ds_cpu_optimizer=False))

def run(line):
    import torch
    from transformers import Trainer, TrainingArguments
    import configurations, fronts, measure
    case = line["case"]
    if line.get("config"): measure.build = configurations.maker({"inputs": {}, **line})
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"])); torch.backends.cuda.matmul.allow_tf32 = False
    measure.dev = f"cuda:{os.environ['LOCAL_RANK']}"
    B, accum, steps, p, ck = case["batch"], case.get("accum", 1), 4, case["precision"], case.get("ckpt", "none") != "none"
    # before the model is made, which stage 3 cuts as it is made
    args = TrainingArguments(output_dir=tempfile.mkdtemp(), max_steps=steps, per_device_train_batch_size=B, gradient_accumulation_steps=accum, bf16=p in ("amp-bf16", "bf16-amp"), fp16=p == "amp-fp16",
        optim=OPTIMIZERS[case.get("optim", "adamw_fused")], gradient_checkpointing=ck, gradient_checkpointing_kwargs=dict(use_reentrant=case.get("reentrant", False)) if ck else None, save_strategy="no", report_to=[], logging_steps=1,
        dataloader_num_workers=0, remove_unused_columns=False, learning_rate=1e-6, max_grad_norm=1.0 if case.get("clip", True) else 0.0, disable_tqdm=True,
        label_smoothing_factor=0.1 if case.get("loss") == "smoothed" else 0.0, neftune_noise_alpha=5 if case.get("neftune") else None, **fused(case), **sharing(case.get("front") or front(case), case))
    model, inp = fronts.made(case)
    samples = []
    for _ in range(accum):
        b = inp(); samples.append({k: v.cpu() if torch.is_tensor(v) else v for k, v in b.items()}); del b
    class Data(torch.utils.data.Dataset):
        def __len__(self): return case.get("world", 2) * B * accum * steps
        def __getitem__(self, i): return i
    n = [0]
    def collate(ix):
        b = samples[n[0] % accum]; n[0] += 1
        if p in ("bf16", "bf16-amp"): b = {k: (v.to(torch.bfloat16) if k == "pixel_values" else v) for k, v in b.items()}
        return dict(b)
    marks = []; gc.collect(); torch.cuda.empty_cache()
    r = dict(case=case, after_model=torch.cuda.memory_allocated())
    t = Trainer(model=model, args=args, train_dataset=Data(), data_collator=collate, callbacks=[fronts.meter(marks)], compute_loss_func=fronts.own_loss(case))
    del model
    t.train()
    return fronts.settled(r, marks)

if __name__ == "__main__":
    r = run(json.load(open(sys.argv[1])))
    if os.environ["LOCAL_RANK"] == "0": json.dump(r, open(sys.argv[2], "w"))
