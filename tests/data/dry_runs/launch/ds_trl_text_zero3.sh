accelerate launch --use_deepspeed --zero_stage 3 --num_processes 1 --num_machines 1 --mixed_precision bf16 -m trl.scripts.sft \
    --model_name_or_path models/llamatext \
    --dataset_name data/trl_text \
    --per_device_train_batch_size 2 \
    --gradient_accumulation_steps 2 \
    --bf16 true \
    --max_steps 4 \
    --report_to none \
    --output_dir out/ds_trl_text_zero3
