//! Tests the simulated models' parameter counts against those published on the hub (the total of each checkpoint's
//! safetensors index, tied weights once).

use crate::{Model, Setup, simulate};

const PUBLISHED: [(&str, u64); 95] = [
    ("openai-community/gpt2", 124_439_808),
    ("meta-llama/Llama-2-7b-hf", 6_738_415_616),
    ("meta-llama/Llama-2-13b-hf", 13_015_864_320),
    ("meta-llama/Llama-3.1-8B", 8_030_261_248),
    ("meta-llama/Llama-3.1-70B", 70_553_706_496),
    ("meta-llama/Llama-3.2-1B", 1_235_814_400),
    ("meta-llama/Llama-3.2-3B", 3_212_749_824),
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 1_100_048_384),
    ("HuggingFaceTB/SmolLM2-135M", 134_515_008),
    ("HuggingFaceTB/SmolLM2-360M", 361_821_120),
    ("HuggingFaceTB/SmolLM2-1.7B", 1_711_376_384),
    ("mistralai/Mistral-7B-v0.1", 7_241_732_096),
    ("mistralai/Mistral-7B-v0.3", 7_248_023_552),
    ("mistralai/Mistral-Nemo-Base-2407", 12_247_782_400),
    ("Qwen/Qwen2.5-0.5B-Instruct", 494_032_768),
    ("Qwen/Qwen2.5-1.5B-Instruct", 1_543_714_304),
    ("Qwen/Qwen2.5-3B-Instruct", 3_085_938_688),
    ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
    ("Qwen/Qwen2.5-14B-Instruct", 14_770_033_664),
    ("Qwen/Qwen2.5-32B-Instruct", 32_763_876_352),
    ("Qwen/Qwen2.5-72B-Instruct", 72_706_203_648),
    ("Qwen/Qwen3-0.6B", 596_049_920),
    ("Qwen/Qwen3-1.7B", 1_720_574_976),
    ("Qwen/Qwen3-4B", 4_022_468_096),
    ("Qwen/Qwen3-8B", 8_190_735_360),
    ("Qwen/Qwen3-14B", 14_768_307_200),
    ("Qwen/Qwen3-32B", 32_762_123_264),
    ("google/gemma-2b", 2_506_172_416),
    ("google/gemma-7b", 8_537_680_896),
    ("google/gemma-2-2b", 2_614_341_888),
    ("google/gemma-2-9b", 9_241_705_984),
    ("google/gemma-2-27b", 27_227_128_320),
    ("google/gemma-3-1b-pt", 999_885_952),
    ("google/gemma-3-4b-it", 4_300_079_472),
    ("google/gemma-3-12b-it", 12_187_325_040),
    ("google/gemma-3-27b-it", 27_432_406_640),
    ("google/paligemma-3b-pt-224", 2_923_466_480),
    ("google/paligemma2-3b-pt-224", 3_032_242_416),
    ("microsoft/phi-1_5", 1_418_270_720),
    ("microsoft/phi-2", 2_779_683_840),
    ("microsoft/Phi-3-mini-4k-instruct", 3_821_079_552),
    ("microsoft/phi-4", 14_659_507_200),
    ("microsoft/Phi-4-mini-instruct", 3_836_021_760),
    ("facebook/opt-1.3b", 1_315_758_080),
    ("llava-hf/llava-1.5-7b-hf", 7_063_427_072),
    ("llava-hf/llava-v1.6-mistral-7b-hf", 7_566_747_648),
    ("Qwen/Qwen2-VL-2B-Instruct", 2_208_985_600),
    ("Qwen/Qwen2-VL-7B-Instruct", 8_291_375_616),
    ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292_166_656),
    ("Qwen/Qwen2.5-VL-32B-Instruct", 33_452_718_336),
    ("Qwen/Qwen2.5-VL-72B-Instruct", 73_410_777_344),
    ("Qwen/Qwen3-VL-4B-Instruct", 4_437_815_808),
    ("Qwen/Qwen3-VL-8B-Instruct", 8_767_123_696),
    ("HuggingFaceTB/SmolVLM-500M-Instruct", 507_482_304),
    ("HuggingFaceTB/SmolVLM2-2.2B-Instruct", 2_246_784_880),
    ("meta-llama/Llama-3.2-11B-Vision-Instruct", 10_670_220_835),
    ("openai/clip-vit-base-patch32", 151_277_313),
    ("google/siglip-base-patch16-224", 203_155_970),
    ("google/vit-base-patch16-224", 86_567_656),
    ("Qwen/Qwen3-30B-A3B", 30_532_122_624),
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", 30_532_122_624),
    ("Qwen/Qwen3-Coder-30B-A3B-Instruct", 30_532_122_624),
    ("Qwen/Qwen3-235B-A22B", 235_093_634_560),
    ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 480_154_875_392),
    ("Qwen/Qwen1.5-MoE-A2.7B", 14_315_784_192),
    ("mistralai/Mixtral-8x7B-v0.1", 46_702_792_704),
    ("mistralai/Mixtral-8x22B-v0.1", 140_630_071_296),
    ("allenai/OLMoE-1B-7B-0924", 6_919_161_856),
    ("openai/gpt-oss-20b", 20_914_757_184),
    ("openai/gpt-oss-120b", 116_829_156_672),
    ("baidu/ERNIE-4.5-21B-A3B-PT", 21_825_437_888),
    ("bigcode/starcoder2-3b", 3_030_371_328),
    ("CohereForAI/c4ai-command-r-v01", 34_980_831_232),
    ("zai-org/GLM-4-9B-0414", 9_400_279_040),
    ("THUDM/glm-4-9b-chat", 9_399_951_360),
    ("allenai/OLMo-2-1124-7B", 7_298_617_344),
    ("allenai/Olmo-3-7B-Instruct", 7_298_011_136),
    ("ByteDance-Seed/Seed-OSS-36B-Instruct", 36_151_104_512),
    ("ibm-granite/granite-3.0-8b-base", 8_170_848_256),
    ("meta-llama/Llama-3.3-70B-Instruct", 70_553_706_496),
    ("meta-llama/Llama-3.1-405B", 405_853_388_800),
    ("mistralai/Mistral-Small-24B-Instruct-2501", 23_572_403_200),
    ("EleutherAI/gpt-neox-20b", 20_554_567_680),
    ("stabilityai/stablelm-3b-4e1t", 2_795_443_200),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", 31_070_754_032),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24_011_361_280),
    ("zai-org/GLM-4.1V-9B-Thinking", 10_292_777_472),
    ("LiquidAI/LFM2-1.2B", 1_170_340_608),
    ("meta-llama/Llama-2-70b-hf", 68_976_648_192),
    ("allenai/OLMo-2-1124-13B", 13_716_198_400),
    ("deepseek-ai/DeepSeek-V2-Lite", 15_706_484_224),
    ("HuggingFaceTB/SmolLM3-3B", 3_075_098_624),
    // `num_params` of the weights in `torchvision/models/video/resnet.py`.
    ("r3d_18", 33_371_472),
    ("mc3_18", 11_695_440),
    ("r2plus1d_18", 31_505_325),
];

#[test]
fn parameters_are_as_published() {
    for (name, published) in PUBLISHED {
        let model = Model::from_catalogue(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        if !model.has_forward() {
            continue;
        }
        let setup = Setup {
            seq: model.default_seq(),
            ..Setup::default()
        };
        let report = simulate(&model, &setup).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(report.params, published, "{name}");
    }
}
