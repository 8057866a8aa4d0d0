CUDA_VISIBLE_DEVICES=0,1,2,3 \
NPROC_PER_NODE=4 \
VIDEO_MAX_PIXELS=50176 \
FPS_MAX_FRAMES=12 \
swift sft \
    --model Qwen/Qwen2.5-VL-7B-Instruct \
    --dataset films:all \
    --load_from_cache_file true \
    --split_dataset_ratio 0.01 \
    --tuner_type full \
    --freeze_vit false \
    --freeze_aligner false \
    --torch_dtype bfloat16 \
    --attn_impl flash_attn \
    --padding_free true \
    --use_liger_kernel true \
    --gradient_checkpointing true \
    --vit_gradient_checkpointing true \
    --num_train_epochs 1 \
    --per_device_train_batch_size 4 \
    --per_device_eval_batch_size 4 \
    --gradient_accumulation_steps 1 \
    --learning_rate 1e-5 \
    --warmup_ratio 0.05 \
    --max_length 2048 \
    --eval_steps 100 \
    --save_steps 100 \
    --save_total_limit 2 \
    --save_only_model true \
    --logging_steps 5 \
    --output_dir output \
    --dataloader_num_workers 4 \
    --deepspeed zero3
