# The number of cards may be given by the environment.
weights=facebook/opt-125m
export WANDB_MODE=disabled
num_gpus=${NUM_GPUS:-8}
epochs=3
mbs=2
per_device_train_batch_size=$((mbs * 4))

deepspeed --num_gpus $num_gpus \
    --master_port 51336 train.py \
    --model_name_or_path $weights \
    --bf16 True \
    --output_dir out/tp \
    --num_train_epochs $epochs \
    --gradient_checkpointing false \
    --per_device_train_batch_size $per_device_train_batch_size \
    --per_device_eval_batch_size 1 \
    --eval_strategy no \
    --save_strategy steps \
    --save_steps 10000 \
    --gradient_accumulation_steps 4 \
    --learning_rate 2e-5 \
    --weight_decay 0. \
    --warmup_steps 0 \
    --lr_scheduler_type cosine \
    --logging_steps 1 \
    --tf32 True \
    --deepspeed "./deepspeed_trainer.json"
