accelerate launch \
    --config_file trl_zero3.yaml \
    examples/scripts/sft_vlm_gemma3.py \
    --model_name_or_path google/gemma-3-4b-it \
    --attn_implementation eager \
    --dataset_name someone/many-pictures \
    --dataset_train_split test \
    --per_device_train_batch_size 1 \
    --output_dir gemma-sft \
    --dtype bfloat16 \
    --use_peft \
    --lora_target_modules all-linear
