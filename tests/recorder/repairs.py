"""What families of transformers need beyond their default configuration to be built and trained, and why.

Each function changes a configuration after it was made small. Without it transformers 5.17 raises, on a GPU too, if
its docstring doesn't say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

CONFIGURATIONS: dict[str, Callable[[Any], None]] = {}
IMAGES: dict[str, Callable[[Making], dict[str, torch.Tensor]]] = {}
AFTERWARDS: dict[str, Callable[[Making, dict[str, Any], torch.Tensor], None]] = {}
# Image tokens where a model does not count them, or counts what the text does not hold.
COUNTS = {
    "instructblip": 32,
    "instructblipvideo": 128,
    "janus": 576,
    "video_llava": 256,
    "vipllava": 576,
    "chameleon": 196,
    "granite4_vision": 154,
}
UNCOUNTED = {"mllama", "instructblip", "instructblipvideo", "janus", "kosmos-2", "video_llava", "vipllava", "chameleon"}
BOXES = {"udop"}
# Configurations that have no default, and batches that are not text with images.
DEFAULTS: dict[str, Callable[[], Any]] = {}
BATCHES: dict[str, Callable[[Making], dict[str, Any]]] = {}


def first_of(config: Any, *names: str, default: Any = None) -> Any:
    """The first of these attributes that a configuration has."""
    for name in names:
        value = getattr(config, name, None) if config is not None else None
        if value is not None:
            return value
    return default


class Making:
    """What a batch is made from."""

    def __init__(self, config: Any, batch: int) -> None:
        """Sizes of images by the vision part of `config`."""
        vision = getattr(config, "vision_config", None)
        self.config, self.batch = config, batch
        side = first_of(vision, "image_size", default=224)
        side = side[0] if isinstance(side, (list, tuple)) else (side.get("height") if isinstance(side, dict) else side)
        self.side = side if isinstance(side, int) and side >= 64 else 224
        patch = first_of(vision, "patch_size", "spatial_patch_size", default=14)
        self.patch = patch[0] if isinstance(patch, (list, tuple)) else patch
        self.frames = first_of(vision, "temporal_patch_size", default=1)
        self.channels = first_of(vision, "in_channels", "num_channels", "in_chans", default=3)

    def floats(self, *shape: int) -> torch.Tensor:
        """Random numbers in bf16."""
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    def tensor(self, values: Any) -> torch.Tensor:
        """Given integers."""
        return torch.tensor(values, device="cuda")

    def ones(self, *shape: int) -> torch.Tensor:
        """A mask that lets all through."""
        return torch.ones(*shape, dtype=torch.long, device="cuda")


def configures(*families: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Registers a change of configurations."""

    def register(change: Callable[[Any], None]) -> Callable[[Any], None]:
        CONFIGURATIONS.update(dict.fromkeys(families, change))
        return change

    return register


# Configurations


@configures("llama4")
def _llama4(c: Any) -> None:
    """The projector's widths are those of no part of the default model."""
    v = c.vision_config
    v.intermediate_size = v.hidden_size * 4
    v.projector_input_dim = v.projector_output_dim = v.vision_output_dim = 4096


@configures("aria")
def _aria(c: Any) -> None:
    """The default vision part has patches of 32 pixels, and the projector's queries are for 980 by 14."""
    c.vision_config.image_size, c.vision_config.patch_size = 980, 14


def _siglip(v: Any, side: int) -> None:
    """Widths of SigLIP So400m: the default's 12 heads do not divide what the projector expects."""
    v.image_size, v.patch_size, v.hidden_size, v.num_attention_heads = side, 14, 1152, 16


@configures("aya_vision")
def _aya_vision(c: Any) -> None:
    """Its pixel shuffle needs an even number of patches a side."""
    _siglip(c.vision_config, 364)


@configures("gemma3", "shieldgemma2")
def _gemma3(c: Any) -> None:
    """Its pooling needs 64 patches a side."""
    _siglip(c.vision_config, 896)


@configures("t5gemma2")
def _t5gemma2(c: Any) -> None:
    """As Gemma 3; the vision part is the encoder's."""
    _siglip(c.encoder.vision_config, 896)
    c.vision_config = c.encoder.vision_config


@configures("blip-2", "instructblip")
def _blip2(c: Any) -> None:
    """No image token by default, and a vocabulary without it."""
    c.image_token_index = c.image_token_id = 50265
    c.text_config.vocab_size = 50304


@configures("instructblipvideo")
def _instructblipvideo(c: Any) -> None:
    """No token for videos by default, and a vocabulary without it."""
    c.image_token_index = c.video_token_index = c.video_token_id = 50265
    c.text_config.vocab_size = 50304


@configures("chameleon")
def _chameleon(c: Any) -> None:
    """No vocabulary of image codes by default."""
    letters = "ABCDEFGHIJ"
    codes = {"IMGIMG" + "".join(letters[int(z)] for z in str(i)) + "Z": 4 + i for i in range(8192)}
    c.vocabulary_map = {"<image>": 8711, **codes}
    c.image_token_id = 8711


@configures("emu3")
def _emu3(c: Any) -> None:
    """No vocabulary of image codes by default."""
    codes = {f"<|visual token {i:06d}|>": 1000 + i for i in range(32768)}
    c.vocabulary_map = {"<|extra_200|>": 7, "<image>": 6, **codes}
    c.text_config.vocab_size = 184622
    c.image_token_id = 6


@configures("cohere_compass")
def _cohere_compass(c: Any) -> None:
    """No sections of the rotary embedding by default."""
    t = c.get_text_config()
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 24, 24]}
    t.rope_parameters = {kind: dict(rope) for kind in set(t.layer_types)}


@configures("glm46v", "glm4v", "glmga")
def _glm4v(c: Any) -> None:
    """Sections of the rotary embedding that do not fill the default head."""
    t = c.text_config
    width = getattr(t, "head_dim", None) or t.hidden_size // t.num_attention_heads
    rope = dict(t.rope_parameters or {})
    half = int(width * rope.get("partial_rotary_factor", getattr(t, "partial_rotary_factor", 1.0) or 1.0)) // 2
    a = half // 4
    rope["mrope_section"] = [a, (half - a) // 2, half - a - (half - a) // 2]
    t.rope_parameters = rope


@configures("glm4v_moe")
def _glm4v_moe(c: Any) -> None:
    """Sections of the rotary embedding that do not fill the default head."""
    c.text_config.rope_parameters = {**(c.text_config.rope_parameters or {}), "mrope_section": [3, 4, 4]}


@configures("idefics3", "smolvlm")
def _idefics3(c: Any) -> None:
    """Its pixel shuffle needs a number of patches a side that the default 7 is not."""
    c.vision_config.image_size = 256


@configures("granite4_vision")
def _granite4_vision(c: Any) -> None:
    """The default text part is of another family; no layers are paired, no rate and no grid fit the vision part.

    SigLIP has no class token to drop, and 14 patches a side.
    """
    c.text_config = CONFIG_MAPPING["granite"](num_hidden_layers=4)
    c.deepstack_layer_map, c.spatial_target_layers = [(-1, 0)], [0, 1, 2, 3]
    c.downsample_rate, c.vision_feature_select_strategy = "1/2", "full"
    c.image_grid_pinpoints = [[224, 448], [448, 224], [448, 448]]


@configures("hunyuan_vl")
def _hunyuan_vl(c: Any) -> None:
    """No width of heads and no sections of the rotary embedding by default."""
    t = c.text_config
    t.head_dim = t.hidden_size // t.num_attention_heads
    quarter = [t.head_dim // 8] * 4
    t.rope_parameters = {**(t.rope_parameters or {}), "mrope_section": quarter, "xdrope_section": list(quarter)}


@configures("deepseek_ocr2")
def _deepseek_ocr2(c: Any) -> None:
    """Its default kinds of layers are for more layers than are left; no number of chosen experts; odd widths."""
    t, v = c.text_config, c.vision_config.encoder_config
    t.mlp_layer_types = ["dense"] + ["sparse"] * (t.num_hidden_layers - 1)
    t.num_experts_per_tok, t.moe_intermediate_size = 6, 1408
    v.hidden_size, v.intermediate_size, v.num_attention_heads, v.num_key_value_heads = 896, 4864, 14, 2


@configures("gemma4")
def _gemma4(c: Any) -> None:
    """No vision part by default."""
    c.vision_config = CONFIG_MAPPING["gemma4_vision"](num_hidden_layers=4)


@configures("gemma4_unified")
def _gemma4_unified(c: Any) -> None:
    """No vision part by default."""
    c.vision_config = CONFIG_MAPPING["gemma4_unified_vision"]()


@configures("diffusion_gemma")
def _diffusion_gemma(c: Any) -> None:
    """No vision part and no experts by default."""
    c.vision_config = CONFIG_MAPPING["gemma4_vision"](num_hidden_layers=4)
    t = c.text_config
    t.num_experts, t.top_k_experts, t.moe_intermediate_size = 8, 2, 704


@configures("qwen4_exp")
def _qwen4_exp(c: Any) -> None:
    """No sizes of the indexer by default, of which one layer in four has one."""
    t = c.text_config
    t.indexer_n_heads, t.indexer_kv_heads, t.indexer_head_dim = 4, 1, t.head_dim
    t.indexer_budget, t.indexer_compress_ratio = 64, 16


@configures("perception_lm")
def _perception_lm(c: Any) -> None:
    """The default vision part is a ResNet-50 without a width."""
    size = dict(embed_dim=1024, depth=4, img_size=[448, 448], ref_feat_shape=[32, 32])
    kind = dict(global_pool="", use_post_transformer_norm=False, init_values=0.1)
    c.vision_config = CONFIG_MAPPING["timm_wrapper"](
        architecture="vit_pe_core_large_patch14_336", model_args={**size, **kind}
    )


@configures("gemma3n")
def _gemma3n(c: Any) -> None:
    """Its last 15 layers share keys and values; four layers have none to share."""
    c.text_config.num_kv_shared_layers = 0


@configures("mllama")
def _mllama(c: Any) -> None:
    """The vision part's output is as wide as the layers that are left."""
    c.vision_config.vision_output_dim = 1280 * (1 + len(c.vision_config.intermediate_layers_indices))


@configures("ovis2")
def _ovis2(c: Any) -> None:
    """Its own width is not the default text part's."""
    c.hidden_size = c.text_config.hidden_size


@configures("qwen2_vl")
def _qwen2_vl(c: Any) -> None:
    """The vision part's output is not as wide as the default text part.

    Before transformers 5.9 its rotary embeddings have no sections by default, and the model raises.
    """
    text = c.text_config
    c.vision_config.hidden_size = text.hidden_size
    name = "rope_parameters" if hasattr(text, "rope_parameters") else "rope_scaling"
    known = getattr(text, name) or {"rope_type": "default"}
    setattr(text, name, {**known, "mrope_section": known.get("mrope_section", [16, 24, 24])})


@configures("qwen2_5_omni_thinker")
def _omni(c: Any) -> None:
    """No tokens for vision and audio by default."""
    c.vision_start_token_id, c.vision_end_token_id, c.audio_token_id = 151652, 151653, 151646
    c.vision_config.out_hidden_size = c.text_config.hidden_size


@configures("qwen3_omni_moe_thinker")
def _qwen3_omni(c: Any) -> None:
    """As Qwen2.5-Omni, and its 28 heads leave an odd width, which rotary embeddings can't halve."""
    _omni(c)
    c.text_config.num_attention_heads = 16


@configures("step3p7")
def _step3p7(c: Any) -> None:
    """No window for its sliding attention by default."""
    c.get_text_config().sliding_window = 128


@configures("udop")
def _udop(c: Any) -> None:
    """No first token of the decoder by default."""
    c.decoder_start_token_id = 0


@configures("vipllava")
def _vipllava(c: Any) -> None:
    """Its default layers of the vision part are not among those that are left."""
    c.vision_feature_layers = [-1, -2, -3, -4, 1]


@configures("janus")
def _janus(c: Any) -> None:
    """The projector's width is not the default text part's."""
    t = c.text_config
    t.hidden_size, t.num_attention_heads, t.num_key_value_heads = 2048, 16, 16
    c.vision_config.projection_dim = 2048


# Images


def _tiles(count: int) -> Callable[[Making], dict[str, torch.Tensor]]:
    return lambda m: dict(pixel_values=m.floats(m.batch, count, m.channels, m.side, m.side))


def _halves(m: Making) -> dict[str, torch.Tensor]:
    sizes = m.tensor([[m.side, m.side * 2]] * m.batch)
    return dict(pixel_values=m.floats(m.batch, 3, 3, m.side, m.side), image_sizes=sizes)


def _patches(m: Making) -> dict[str, torch.Tensor]:
    pixels = m.floats(m.batch * 256, 3, m.patch, m.patch)
    return dict(pixel_values=pixels, image_grid_thw=m.tensor([[1, 16, 16]] * m.batch))


def _plain(m: Making) -> dict[str, torch.Tensor]:
    return dict(pixel_values=m.floats(m.batch, m.channels, m.side, m.side))


def _placed(m: Making, rows: int, columns: int, width: int) -> dict[str, torch.Tensor]:
    grid = torch.meshgrid(torch.arange(rows, device="cuda"), torch.arange(columns, device="cuda"), indexing="ij")
    places = torch.stack(grid, -1).reshape(1, rows * columns, 2)
    return dict(
        pixel_values=m.floats(m.batch, rows * columns, width),
        image_position_ids=places.expand(m.batch, -1, -1).contiguous(),
    )


def _gemma4_images(m: Making) -> dict[str, torch.Tensor]:
    return _placed(m, 60, 42, 3 * 16 * 16)


def _gemma4_unified_images(m: Making) -> dict[str, torch.Tensor]:
    return _placed(m, 16, 16, 3 * m.config.vision_config.model_patch_size**2)


def _pix2struct_images(m: Making) -> dict[str, torch.Tensor]:
    """The first two numbers of a patch are its row and column, which look embeddings up."""
    patches = m.floats(m.batch, 512, 2 + 768)
    places = torch.arange(512, device="cuda")
    patches[:, :, 0], patches[:, :, 1] = places // 32, places % 32
    return dict(flattened_patches=patches, attention_mask=torch.ones(m.batch, 512, device="cuda"))


# Text alone, as it was measured: `image_patches`, which transformers 5.24 calls `pixel_values`, were not given.
IMAGES |= {"fuyu": lambda m: {}}
IMAGES |= dict.fromkeys(("idefics", "idefics2", "idefics3", "smolvlm"), _tiles(1))
IMAGES |= dict.fromkeys(("llava_next", "llava_next_video", "llava_onevision", "granite4_vision"), _halves)
IMAGES |= dict.fromkeys(("paddleocr_vl", "kimi_k25"), _patches)
IMAGES |= dict.fromkeys(("llava", "vipllava"), _plain)
IMAGES |= {
    "lfm2_vl": lambda m: dict(
        pixel_values=m.floats(m.batch, 256, 3 * 16 * 16),
        spatial_shapes=m.tensor([[16, 16]] * m.batch),
        pixel_attention_mask=m.ones(m.batch, 256),
    ),
    "video_llava": lambda m: dict(pixel_values_images=m.floats(m.batch, 3, m.side, m.side)),
    "mllama": lambda m: dict(
        pixel_values=m.floats(m.batch, 1, 4, 3, m.side, m.side),
        aspect_ratio_ids=torch.full((m.batch, 1), 6, device="cuda"),
        aspect_ratio_mask=m.ones(m.batch, 1, 4),
    ),
    "perception_lm": lambda m: dict(pixel_values=m.floats(m.batch, 1, 3, 448, 448)),
    "gemma4": _gemma4_images,
    "gemma4_unified": _gemma4_unified_images,
    "aria": lambda m: dict(
        pixel_values=m.floats(m.batch, 3, 490, 490),
        pixel_mask=torch.ones(m.batch, 490, 490, dtype=torch.bool, device="cuda"),
    ),
    "deepseek_vl_hybrid": lambda m: dict(
        pixel_values=m.floats(m.batch, 3, m.config.vision_config.image_size, m.config.vision_config.image_size),
        high_res_pixel_values=m.floats(m.batch, 3, 1024, 1024),
    ),
    "instructblipvideo": lambda m: dict(pixel_values=m.floats(m.batch, 4, 3, 224, 224)),
    "muse_glimmer": lambda m: dict(
        pixel_values=m.floats(m.batch * 256, 1176), image_grid_thw=m.tensor([[1, 16, 16]] * m.batch)
    ),
    "pix2struct": _pix2struct_images,
    "minicpmv4_6": lambda m: dict(
        pixel_values=m.floats(1, 3, m.patch, m.batch * 1024 * m.patch), target_sizes=m.tensor([[32, 32]] * m.batch)
    ),
    "video_llama_3": lambda m: dict(
        pixel_values=m.floats(m.batch * 256, m.channels * m.patch * m.patch),
        image_grid_thw=m.tensor([[1, 16, 16]] * m.batch),
        image_merge_sizes=m.tensor([2] * m.batch),
    ),
    "inkling_mm_model": lambda m: {},
    "t5gemma2": lambda m: dict(pixel_values=m.floats(m.batch, 3, 896, 896)),
}


# What is added to a batch


def _after(family: str, add: Callable[[Making, dict[str, Any], torch.Tensor], None]) -> None:
    AFTERWARDS[family] = add


def _mllama_batch(m: Making, batch: dict[str, Any], x: torch.Tensor) -> None:
    batch["cross_attention_mask"] = m.ones(m.batch, x.shape[1], 1, 4)


def _idefics_batch(m: Making, batch: dict[str, Any], x: torch.Tensor) -> None:
    batch["image_attention_mask"] = m.ones(m.batch, x.shape[1], 1)


def _qformer_batch(m: Making, batch: dict[str, Any], x: torch.Tensor) -> None:
    """The Q-Former's vocabulary lacks the image token."""
    batch["qformer_input_ids"] = x[:, -16:].clone()
    batch["qformer_attention_mask"] = torch.ones_like(batch["qformer_input_ids"])


def _kosmos2_batch(m: Making, batch: dict[str, Any], x: torch.Tensor) -> None:
    mask = torch.zeros(m.batch, x.shape[1], dtype=torch.long, device="cuda")
    mask[:, 2:66] = 1
    batch["image_embeds_position_mask"] = mask


_after("mllama", _mllama_batch)
_after("idefics", _idefics_batch)
_after("instructblip", _qformer_batch)
_after("instructblipvideo", _qformer_batch)
_after("kosmos-2", _kosmos2_batch)


def _diffusion_gemma_batch(m: Making, batch: dict[str, Any], x: torch.Tensor) -> None:
    batch["decoder_input_ids"] = x[:, : m.config.canvas_length].clone()


_after("diffusion_gemma", _diffusion_gemma_batch)


# What has no default


def _captioner() -> Any:
    """A ViT with a GPT-2 that attends to it: the class needs both named."""
    decoder = dict(model_type="gpt2", add_cross_attention=True, is_decoder=True)
    config = CONFIG_MAPPING["vision-encoder-decoder"](encoder=dict(model_type="vit"), decoder=decoder)
    config.decoder_start_token_id = config.pad_token_id = 0
    return config


def _actions(m: Making) -> dict[str, Any]:
    """Text with 256 image tokens, a robot's state and its actions."""
    c = m.config
    x = torch.randint(5, 200, (m.batch, 288), device="cuda")
    x[:, :256] = c.vlm_config.image_token_id
    return dict(
        state=m.floats(m.batch, c.max_state_dim),
        actions=m.floats(m.batch, c.chunk_size, c.max_action_dim),
        pixel_values=m.floats(m.batch, 1, 3, 224, 224),
        pixel_attention_mask=m.ones(m.batch, 1).bool(),
        input_ids=x,
        attention_mask=torch.ones_like(x),
    )


DEFAULTS["vision-encoder-decoder"] = _captioner
BATCHES["pi0"] = _actions
