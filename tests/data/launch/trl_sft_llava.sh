# pip install pillow

accelerate launch \
    --config_file trl_zero3.yaml \
    examples/scripts/sft_vlm.py \
    --model_name_or_path llava-hf/llava-1.5-7b-hf \
    --dataset_name someone/pictures \
    --gradient_accumulation_steps 8 \
    --dtype bfloat16 \
    --output_dir llava-sft
