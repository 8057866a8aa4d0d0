accelerate launch --num_processes 1 --num_machines 1 --mixed_precision fp16 -m trl.scripts.dpo \
    --model_name_or_path models/qwen2text \
    --dataset_name data/trl_textprefs \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 1 \
    --fp16 true --bf16 false \
    --use_peft \
    --max_steps 4 \
    --report_to none \
    --output_dir out/accel_trl_dpo_text_fp16
