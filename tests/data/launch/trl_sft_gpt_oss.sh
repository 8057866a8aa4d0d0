accelerate launch \
    --config_file trl_zero3.yaml \
    examples/scripts/sft_gpt_oss.py \
    --model_name_or_path openai/gpt-oss-20b \
    --dtype bfloat16 \
    --packing \
    --max_length 4096 \
    --attn_implementation kernels-community/vllm-flash-attn3 \
    --dataset_name someone/thoughts \
    --dataset_num_proc 12 \
    --per_device_train_batch_size 2 \
    --num_train_epochs 1 \
    --logging_steps 1 \
    --warmup_steps 0.03 \
    --lr_scheduler_type cosine_with_min_lr \
    --lr_scheduler_kwargs '{"min_lr_rate": 0.1}' \
    --run_name full-eager \
    --output_dir reasoner \
    --report_to trackio \
    --seed 42
