#!/bin/bash

set -x
WEIGHTS=Qwen/Qwen3-4B-Instruct-2507

llamafactory-cli train \
    --stage sft \
    --do_train \
    --model_name_or_path ${WEIGHTS} \
    --trust_remote_code \
    --finetuning_type lora \
    --lora_target all \
    --lora_rank 8 \
    --template qwen3_nothink \
    --dataset talk,facts \
    --cutoff_len 2048 \
    --max_samples 1000 \
    --preprocessing_num_workers 16 \
    --dataloader_num_workers 4 \
    --output_dir saves/c \
    --overwrite_output_dir \
    --save_only_model false \
    --save_steps 500 \
    --logging_steps 10 \
    --plot_loss \
    --report_to none \
    --per_device_train_batch_size 1 \
    --gradient_accumulation_steps 8 \
    --num_train_epochs 3.0 \
    --learning_rate 1e-4 \
    --lr_scheduler_type cosine \
    --warmup_ratio 0.1 \
    --bf16 \
    --ddp_timeout 180000000
