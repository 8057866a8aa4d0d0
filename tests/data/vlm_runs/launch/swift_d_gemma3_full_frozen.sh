CUDA_VISIBLE_DEVICES=0 \
MAX_PIXELS=1003520 \
swift sft \
    --load_from_cache_file true \
    --split_dataset_ratio 0 \
    --torch_dtype bfloat16 \
    --num_train_epochs 1 \
    --max_steps 3 \
    --learning_rate 1e-4 \
    --gradient_accumulation_steps 2 \
    --logging_steps 5 \
    --max_length 4096 \
    --dataloader_num_workers 2 \
    --report_to none \
    --dataset data/same.jsonl \
    --output_dir out/swift_d_gemma3_full_frozen \
    --model models/gemma3 \
    --model_type gemma3_vision \
    --template gemma3_vision \
    --per_device_train_batch_size 1 \
    --tuner_type full \
    --freeze_vit true \
    --freeze_aligner true
