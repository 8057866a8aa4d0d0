//! Tests of kernels' internal memory against allocator traces of the same operations.

use super::text::{Text, step};
use super::{born, run};
use crate::allocator::Options;

/// Returns the bytes that the lines written by `operation` allocate, in order.
fn taken(operation: impl FnOnce(&mut Text)) -> Vec<u64> {
    born(&run(&step(operation)))
}

#[test]
fn each_thread_has_its_workspaces() {
    let workspaces = taken(|text| {
        let a = text.tensor("bf16", &[128, 64]);
        let bias = text.tensor("bf16", &[64]);
        let b = text.tensor("bf16", &[64, 64]);
        for keys in ["", r#","b":1"#, "", r#","b":1"#] {
            text.op("aten.mm.default", &format!("{},{}", a.name, b.name), keys, &[]);
        }
        text.op(
            "aten.addmm.default",
            &format!("{},{},{}", bias.name, a.name, b.name),
            "",
            &[("bf16", &[128, 64])],
        );
    });
    let cublas = 4096 * 8 * 1024;
    assert_eq!(workspaces[3..], [cublas, cublas, 128 * 64 * 2, 1 << 20]);
}

#[test]
fn a_bias_of_two_dimensions_goes_through_cublas() {
    let taken = taken(|text| {
        let [bias, a, b] = [[128, 64], [128, 64], [64, 64]].map(|shape| text.tensor("bf16", &shape));
        let arguments = format!("{},{},{}", bias.name, a.name, b.name);
        text.op("aten.addmm.default", &arguments, "", &[("bf16", &[128, 64])]);
    });
    assert_eq!(taken[3..], [128 * 64 * 2, 4096 * 8 * 1024]);
}

/// A gradient that `expand` repeats is copied before cuBLAS multiplies it.
#[test]
fn cublas_gets_a_copy_of_rows_that_repeat() {
    let taken = taken(|text| {
        let row = text.tensor("bf16", &[1, 64]);
        let rows = text.view(&row, "bf16", &[128, 64], &[0, 1]);
        let b = text.tensor("bf16", &[64, 32]);
        text.op(
            "aten.mm.default",
            &format!("{},{}", rows.name, b.name),
            "",
            &[("bf16", &[128, 32])],
        );
    });
    assert_eq!(taken[2..], [128 * 32 * 2, 4096 * 8 * 1024, 128 * 64 * 2]);
}

/// Checks bias gradients of GPT-2 against its allocator trace.
#[test]
fn sums_take_the_buffers_of_the_trace() {
    let taken = taken(|text| {
        let grad = text.tensor("bf16", &[1024, 3072]);
        text.op(
            "aten.sum.dim_IntList",
            &format!("{},[0],true", grad.name),
            "",
            &[("bf16", &[1, 3072])],
        );
        text.op(
            "aten.sum.dim_IntList",
            &format!("{},[-1]", grad.name),
            "",
            &[("bf16", &[1024])],
        );
    });
    assert_eq!(taken[1..], [3072 * 2, 25_165_824, 96, 1024 * 2]);
}

/// Booleans are copied to int64 to be summed.
#[test]
fn booleans_are_widened_to_be_summed() {
    let taken = taken(|text| {
        let mask = text.tensor("bool", &[4, 100]);
        text.op("aten.sum.default", &mask.name.clone(), "", &[("i64", &[])]);
    });
    assert_eq!(taken[1..], [8, 400 * 8]);
}

/// Checks the gradient of Qwen3-VL's learned positions against its allocator trace; few ids are not sorted.
#[test]
fn many_ids_of_an_embedding_are_sorted() {
    let gradient = |n: u64| {
        taken(|text| {
            let grad = text.tensor("bf16", &[n, 1024]);
            let ids = text.tensor("i64", &[n]);
            let arguments = format!("{},{},2304,-1,false", grad.name, ids.name);
            text.op(
                "aten.embedding_dense_backward.default",
                &arguments,
                "",
                &[("bf16", &[2304, 1024])],
            );
        })
    };
    let sorting = [73_728, 73_728, 73_728, 166_399];
    let runs = [4_718_592, 73_728, 8, 73_728, 1279];
    let partials = [18_432, 18_432, 1279, 8, 25_800, 13_209_600];
    assert_eq!(gradient(9216)[2..], [&sorting[..], &runs, &partials].concat());
    assert_eq!(gradient(3072)[2..], [4_718_592]);
}

/// Checks Qwen3-VL's features, added at 576 image tokens of 2 × 1024 positions, against its allocator trace.
#[test]
fn rows_at_a_mask_are_found_first_and_sorted_to_be_summed() {
    let taken = taken(|text| {
        let x = text.tensor("bf16", &[2, 1024, 2048]);
        let mask = text.tensor("bool", &[2, 1024]);
        let arguments = format!("{},[{}]", x.name, mask.name);
        let rows = text
            .op("aten.index.Tensor", &arguments, "", &[("bf16", &[576, 2048])])
            .remove(0);
        let arguments = format!("{},[{}],{},true", x.name, mask.name, rows.name);
        text.op("aten._index_put_impl_.default", &arguments, "", &[]);
    });
    let found = [4, 1, 9216, 1023];
    let sorting = [4608, 4608, 4608, 4608, 4608, 4608, 4608, 1];
    assert_eq!(taken[2..], [&found[..], &[2_359_296], &found, &sorting].concat());
}

/// Checks a number repeated for each image and read by the host against Qwen3-VL's allocator trace.
#[test]
fn what_the_host_reads_lies_in_one_run() {
    let taken = taken(|text| {
        let one = text.tensor("i64", &[1]);
        let four = text.view(&one, "i64", &[4], &[0]);
        let on_host = text.meta("i64", &[4], None);
        let function = text.function("aten._to_copy.default");
        for x in [&one, &four] {
            text.line(format!(
                r##"{{"t":"op","f":{function},"a":[{}],"k":{{"device":"@cpu"}},"o":["#h:{on_host}"]}}"##,
                x.name
            ));
        }
    });
    assert_eq!(taken[1..], [32]);
}

/// Writes Qwen3-VL's positions of a sample, [3, 802], under a mask that picks 802.
#[test]
fn a_mask_may_stand_behind_dimensions_that_are_whole() {
    let taken = taken(|text| {
        let x = text.tensor("i64", &[3, 802]);
        let mask = text.tensor("bool", &[802]);
        let values = text.tensor("i64", &[3, 802]);
        let arguments = format!("{},[null,{}],{}", x.name, mask.name, values.name);
        text.op("aten.index_put_.default", &arguments, "", &[]);
    });
    assert_eq!(taken[3..], [4, 1, 6416, 1023]);
}

/// Checks the padding of keys that transformers looks up for each query against LLaVA-1.5's allocator trace.
#[test]
fn index_tensors_that_lie_apart_are_copied() {
    let taken = taken(|text| {
        let mask = text.tensor("bool", &[1, 777]);
        let sample = text.tensor("i64", &[1, 1, 1, 1]);
        let key = text.tensor("i64", &[1, 1, 1, 777]);
        for [first, second] in [[&sample, &key], [&key, &key]] {
            let arguments = format!("{},[{},{}]", mask.name, first.name, second.name);
            text.op("aten.index.Tensor", &arguments, "", &[("bool", &[1, 1, 1, 777])]);
        }
    });
    assert_eq!(taken[3..], [6216, 777, 777]);
}

#[test]
fn attention_of_cudnn_sums_in_fp32_in_backward() {
    let [b, h, s, d] = [2, 12, 512, 64];
    let taken = taken(|text| {
        let [grad, q, k, v, out] = [(); 5].map(|()| text.tensor("bf16", &[b, h, s, d]));
        let arguments = [grad, q, k, v, out].map(|x| x.name).join(",");
        let shape = [b, h, s, d];
        let results: [(&str, &[u64]); 3] = [("bf16", &shape); 3];
        text.op(
            "aten._scaled_dot_product_cudnn_attention_backward.default",
            &arguments,
            "",
            &results,
        );
    });
    let rows = b * h * s;
    assert_eq!(taken[5..8], [rows * d * 2; 3]);
    assert_eq!(taken[8..], [4 * rows * d + 4 * rows + 256]);
}

/// Masks of dropout are made before its result.
#[test]
fn dropout_makes_its_mask_first() {
    let taken = taken(|text| {
        let x = text.tensor("bf16", &[8, 100]);
        let results: [(&str, &[u64]); 2] = [("bf16", &[8, 100]), ("bool", &[8, 100])];
        text.op(
            "aten.native_dropout.default",
            &format!("{},0.1,true", x.name),
            "",
            &results,
        );
    });
    assert_eq!(taken[1..], [800, 1600]);
}

/// Checks ViT-L's patches against its allocator trace; the workspaces of other convolutions are unknown.
#[test]
fn convolutions_of_patches_take_what_was_measured() {
    let convolution = |stride: u64, side: u64| {
        step(|text| {
            let x = text.tensor("f16", &[8, 3, 224, 224]);
            let weight = text.tensor("f16", &[1024, 3, 16, 16]);
            let arguments = format!(
                "{},{},null,[{stride},{stride}],[0,0],[1,1],false,[0,0],1",
                x.name, weight.name
            );
            text.op(
                "aten.convolution.default",
                &arguments,
                "",
                &[("f16", &[8, 1024, side, side])],
            );
        })
    };
    let patches = run(&convolution(16, 14));
    assert_eq!(born(&patches)[2..], [8 * 1024 * 196 * 2, 13_828_112]);
    assert!(patches.about.unknown.is_empty());
    let overlapping = run(&convolution(8, 27));
    assert_eq!(born(&overlapping)[2..], [8 * 1024 * 27 * 27 * 2]);
    assert_eq!(overlapping.about.unknown, [("convolution", 1)]);
}

#[test]
fn a_workspace_can_be_set_and_cleared() {
    let text = step(|text| {
        let [a, b] = [(); 2].map(|()| text.tensor("bf16", &[64, 64]));
        for _ in 0..2 {
            text.op("aten.mm.default", &format!("{},{}", a.name, b.name), "", &[]);
            text.line(r#"{"t":"clear_cublas_workspaces"}"#);
        }
    });
    let set = text
        .all()
        .replace(r#""cublas_workspace":"""#, r#""cublas_workspace":":4096:2""#);
    let run = super::read(set.as_bytes(), None).unwrap();
    assert_eq!(born(&run)[2..], [8 << 20, 8 << 20]);
    assert_eq!(run.options, Options::default());
}
