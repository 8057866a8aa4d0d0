"""torchvision's video ResNets, and language models whose layers scan a state: Mamba and its kin."""
from .common import R, ch, maybe, some

def torchvision_video_resnet():
    block = ch("BasicBlock", "BasicBlock", "Bottleneck"); makers = ["Conv3DSimple", "Conv3DNoTemporal", "Conv2Plus1D"]; one = ch(*makers); n = ch(2, 10, 400)
    config = dict(block=block, conv_makers=[ch(one, one, one, *makers) for _ in range(4)], layers=[R.randint(1, 2) for _ in range(4)], stem=ch("BasicStem", "R2Plus1dStem"), num_classes=n, num_frames=ch(8, 9, 16), image_size=ch(32, 56, 65, 112))
    return config, {}, dict(seq=0)

def video_resnet(config, given, case, g):
    import torch, measure
    from torchvision.models.video import resnet
    from types import SimpleNamespace
    named = lambda name: getattr(resnet, name)
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = resnet.VideoResNet(named(config["block"]), [named(name) for name in config["conv_makers"]], config["layers"], named(config["stem"]), config["num_classes"])
        def forward(self, pixel_values, labels):
            logits = self.model(pixel_values)
            return SimpleNamespace(loss=torch.nn.functional.cross_entropy(logits, labels), logits=logits)
    torch.set_default_dtype(measure.DT["fp32" if case["precision"].startswith("amp") else case["precision"]])
    with torch.device("cuda"): model = Model()
    torch.set_default_dtype(torch.float32); model.train()
    B, side = case["batch"], config["image_size"]
    def inp(): return dict(pixel_values=torch.randn(B, 3, config["num_frames"], side, side, device="cuda", generator=g), labels=torch.randint(0, config["num_classes"], (B,), device="cuda", generator=g))
    return model, inp

def mamba(t):
    return dict(model_type=t, vocab_size=ch(1000, 50280), hidden_size=ch(96, 256, 512), state_size=ch(8, 16, 33), num_hidden_layers=R.randint(1, 2), expand=ch(1, 2, 3), conv_kernel=ch(2, 4, 4), hidden_act=ch("silu", "silu", "gelu"), tie_word_embeddings=maybe(.6),
                **some(.4, use_bias=[True]), **some(.3, use_conv_bias=[False]), **some(.4, residual_in_fp32=[False]), **some(.4, time_step_rank=[7, 32]))

def mamba2():
    heads, groups, d, expand = ch(4, 8, 16), ch(1, 2, 4), ch(16, 32, 48), ch(1, 2)
    return dict(mamba("mamba2"), num_heads=heads, head_dim=d, n_groups=groups, expand=expand, hidden_size=heads * d // expand, chunk_size=ch(8, 19, 64))

TEXT = {t: (lambda t=t: mamba(t)) for t in ("mamba", "falcon_mamba")}; TEXT["mamba2"] = mamba2
OTHERS = dict(torchvision_video_resnet=torchvision_video_resnet)
BUILD = dict(torchvision_video_resnet=video_resnet)
# torchvision's class has no checkpointing; Mamba's scan position by position, which is slow, and refuse `sdpa`.
CASES = dict(torchvision_video_resnet=dict(ckpt="none"), **{t: dict(attn="eager", seq=19) for t in TEXT})
