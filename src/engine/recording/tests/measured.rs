//! Tests of kernels' internal memory against measurements on an H100 with PyTorch 2.11
//! (`torch.cuda.memory._record_memory_history` around each operation).

use super::text::{Text, step};
use super::{born, run};

/// Returns the bytes that an operation allocates after `given` tensors, its results first.
fn taken(given: usize, operation: impl FnOnce(&mut Text)) -> Vec<u64> {
    born(&run(&step(operation))).split_off(given)
}

#[test]
fn group_norm_keeps_a_factor_and_a_term_of_each_channel() {
    let forward = |dtype: &'static str, affine: bool| {
        taken(2, |text| {
            let x = text.tensor(dtype, &[4, 320, 64, 64]);
            let w = text.tensor(dtype, &[320]);
            let w = if affine { &*w.name } else { "null" };
            text.op(
                "aten.native_group_norm.default",
                &format!("{},{w},{w},4,320,4096,32,1e-5", x.name),
                "",
                &[(dtype, &[4, 320, 64, 64]), (dtype, &[4, 32]), (dtype, &[4, 32])],
            );
        })
    };
    assert_eq!(forward("f32", true), [20_971_520, 512, 512, 5120, 5120]);
    assert_eq!(forward("f32", false), [20_971_520, 512, 512]);
    assert_eq!(forward("bf16", true), [10_485_760, 256, 256, 5120, 5120]);
}

#[test]
fn group_norm_sums_gradients_of_channels() {
    let backward = |shape: [u64; 4], affine: bool| {
        taken(5, |text| {
            let [samples, channels, height, width] = shape;
            let [grad, x] = [(); 2].map(|()| text.tensor("bf16", &shape));
            let [mean, rstd] = [(); 2].map(|()| text.tensor("bf16", &[samples, 32]));
            let w = text.tensor("bf16", &[channels]);
            let w = if affine { &*w.name } else { "null" };
            let arguments = format!(
                "{},{},{},{},{w},{samples},{channels},{},32,[true,true,true]",
                grad.name,
                x.name,
                mean.name,
                rstd.name,
                height * width
            );
            text.op(
                "aten.native_group_norm_backward.default",
                &arguments,
                "",
                &[("bf16", &shape)],
            );
        })
    };
    let wide = [4, 320, 64, 64];
    assert_eq!(backward(wide, true), [10_485_760, 5120, 5120, 512, 512, 5120]);
    assert_eq!(backward(wide, false), [10_485_760, 5120, 5120, 512, 512]);
}

/// Batch norm takes sums with channels last only; the usual layout takes nothing.
#[test]
fn batch_norm_of_channels_last_sums_in_blocks() {
    let forward = |shape: [u64; 4], last: bool| {
        taken(2, |text| {
            let [_, channels, height, width] = shape;
            let x = text.tensor("bf16", &shape);
            let strides = [channels * height * width, 1, width * channels, channels];
            let x = if last {
                text.view(&x, "bf16", &shape, &strides)
            } else {
                x
            };
            let w = text.tensor("f32", &[channels]);
            let arguments = format!("{},{w},{w},{w},{w},true,0.1,1e-5", x.name, w = w.name);
            let of_channel: (&str, &[u64]) = ("f32", &[channels]);
            text.op(
                "aten.native_batch_norm.default",
                &arguments,
                "",
                &[("bf16", &shape), of_channel, of_channel],
            );
        })
    };
    assert_eq!(forward([8, 64, 112, 112], true), [12_845_056, 256, 256, 131_072, 8]);
    assert_eq!(forward([32, 256, 14, 14], true), [3_211_264, 1024, 1024, 102_400, 32]);
    assert_eq!(forward([64, 2048, 7, 7], true), [12_845_056, 8192, 8192, 425_984, 256]);
    assert_eq!(forward([8, 64, 112, 112], false), [12_845_056, 256, 256]);
}

#[test]
fn gradients_of_many_short_rows_are_summed_in_two_steps() {
    let backward = |rows: u64, columns: u64| {
        taken(2, |text| {
            let [grad, x] = [(); 2].map(|()| text.tensor("bf16", &[rows, columns]));
            let arguments = format!(
                "{},{},[{columns}],null,null,null,null,[true,true,true]",
                grad.name, x.name
            );
            let results: [(&str, &[u64]); 3] = [("bf16", &[rows, columns]), ("bf16", &[columns]), ("bf16", &[columns])];
            text.op("aten.native_layer_norm_backward.default", &arguments, "", &results);
        })
    };
    let sums = [384, 6_291_456, 8];
    let expected = [&[50_331_648, 384, 384, 1_572_864, 1_572_864][..], &sums, &sums].concat();
    assert_eq!(backward(131_072, 192), expected);
    assert_eq!(backward(65_536, 96), [12_582_912, 192, 192]);
}

#[test]
fn sorts_are_by_row_by_rows_at_once_and_by_segments() {
    let sort = |shape: &[u64], dtype: &'static str| {
        taken(1, |text| {
            let x = text.tensor(dtype, shape);
            text.op(
                "aten.sort.default",
                &x.name.clone(),
                "",
                &[(dtype, shape), ("i64", shape)],
            );
        })
    };
    assert_eq!(sort(&[4096], "f32"), [16_384, 32_768, 32_768]);
    assert_eq!(sort(&[1000, 33], "bf16"), [66_000, 264_000, 264]);
    assert_eq!(sort(&[4097], "f32"), [16_388, 32_776, 32_776, 59_391]);
    let row = 12_200_191;
    assert_eq!(
        sort(&[2, 1_000_000], "f32"),
        [8_000_000, 16_000_000, 8_000_000, row, row]
    );
    let whole = [40_000, 160_000, 160_000, 160_000, 40_000, 208_895, 6_655];
    assert_eq!(sort(&[2, 10_000], "bf16"), whole);
    assert_eq!(sort(&[128, 4097], "i64"), [4_195_328, 4_195_328, 4_195_328, 8_390_911]);
}

#[test]
fn digits_of_long_rows_are_counted_in_blocks() {
    let highest = |shape: [u64; 2], dtype: &'static str| {
        taken(1, |text| {
            let x = text.tensor(dtype, &shape);
            let results: [(&str, &[u64]); 2] = [(dtype, &[shape[0], 8]), ("i64", &[shape[0], 8])];
            text.op("aten.topk.default", &format!("{},8", x.name), "", &results);
        })
    };
    let counted = [800, 800, 1600, 409_600, 102_400, 3200, 3200, 1279, 1279];
    assert_eq!(highest([100, 10_000], "i64"), [&[6400, 6400][..], &counted].concat());
    let counted = [2000, 8000, 8000, 512_000, 1_024_000, 4000, 4000, 1279, 1279];
    assert_eq!(
        highest([1000, 10_000], "bf16"),
        [&[16_000, 64_000][..], &counted].concat()
    );
    assert_eq!(highest([4096, 128], "bf16"), [65_536, 262_144]);
}

#[test]
fn products_of_experts_keep_operands_of_each() {
    let taken = taken(3, |text| {
        let a = text.tensor("bf16", &[8192, 2048]);
        let b = text.tensor("bf16", &[64, 2048, 1408]);
        let ends = text.tensor("i32", &[64]);
        let arguments = format!("{},{},{}", a.name, b.name, ends.name);
        text.op("aten._grouped_mm.default", &arguments, "", &[("bf16", &[8192, 1408])]);
    });
    assert_eq!(taken, [23_068_672, 3840, 67_584]);
}
