//! torchvision's video ResNets (`torchvision/models/video/resnet.py`).

use super::config::{Block, ConvMaker, Stem, VideoResNetConfig};
use crate::model::forward::{Batch, Forward, Output, Run};
use crate::nn::{self, BatchNorm, Builder, Linear};
use crate::tape::{Component, Module, Tape, Tensor};

/// `VideoResNet`.
pub struct VideoResNet {
    stem: Chain,
    layers: [Vec<Residual>; 4],
    fc: Linear,
    /// Channels, frames, height, width of one video.
    video: [u64; 4],
}

/// A residual block.
struct Residual {
    /// `conv1`, `conv2`, and `conv3` of a `Bottleneck`.
    convs: Vec<Chain>,
    downsample: Option<Chain>,
}

/// `torch.nn.Sequential`.
struct Chain {
    module: Module,
    steps: Vec<Step>,
}

enum Step {
    Conv(Conv3d),
    Norm(BatchNorm),
    Relu,
    Chain(Chain),
}

/// `torch.nn.Conv3d` without a bias.
struct Conv3d {
    weight: Tensor,
    stride: [u64; 3],
    padding: [u64; 3],
}

/// A step of a chain that is yet to be made.
enum Plan {
    /// Channels before and after, kernel, stride, padding.
    Conv([u64; 2], [u64; 3], [u64; 3], [u64; 3]),
    Norm(u64),
    Relu,
    Chain(Vec<Self>),
}

const LAYERS: [&str; 4] = ["layer1", "layer2", "layer3", "layer4"];
const CONVS: [&str; 3] = ["conv1", "conv2", "conv3"];

impl VideoResNet {
    pub fn new(b: &Builder, c: &VideoResNetConfig) -> Self {
        let t = b.tape();
        let mut channels = 64;
        let (stem, layers) = t.component("", Component::VisionTower, || {
            let stem = t.scope("stem", || Chain::new(b, stem(c.stem)));
            let layers = std::array::from_fn(|i| {
                let planes = 64 << i;
                let from = std::mem::replace(&mut channels, planes * c.block.expansion());
                layer(b, c, i, [from, planes])
            });
            (stem, layers)
        });
        let fc = t.component("", Component::Head, || Linear::new(b, "fc", channels, c.classes, true));
        Self {
            stem,
            layers,
            fc,
            video: [3, c.frames, c.image, c.image],
        }
    }

    /// Pixels [batch, channels, frames, side, side] → [batch, channels].
    fn features(&self, t: &Tape, pixels: &Tensor) -> Tensor {
        let mut h = self.stem.call(t, pixels.clone());
        for (name, blocks) in LAYERS.into_iter().zip(&self.layers) {
            for (i, block) in blocks.iter().enumerate() {
                h = t.layer(name, i, || block.forward(t, &h));
            }
        }
        let pooled = t.scope("avgpool", || t.pool_volume(&h));
        t.view(&pooled, [pooled.size(0), pooled.size(1)])
    }
}

impl Forward for VideoResNet {
    fn batch(&self, t: &Tape, run: &Run) -> Batch {
        let [channels, frames, height, width] = self.video;
        Batch::of_classes(t, run, &[run.setup.batch, channels, frames, height, width])
    }

    fn loss(&self, t: &Tape, run: &Run, batch: &Batch) -> Output {
        let _ = run;
        let (Some(pixels), Some(labels)) = (&batch.pixels, &batch.labels) else {
            unreachable!("a batch to classify has pixels and labels")
        };
        let features = t.component("", Component::VisionTower, || self.features(t, pixels));
        t.component("", Component::Head, || {
            let logits = self.fc.call(t, &features);
            let loss = t.scope("loss", || nn::classification_loss(t, &logits, labels));
            Output {
                loss,
                held: vec![logits],
            }
        })
    }
}

/// `BasicStem` or `R2Plus1dStem`.
fn stem(kind: Stem) -> Vec<Plan> {
    match kind {
        Stem::Basic => vec![
            Plan::Conv([3, 64], [3, 7, 7], [1, 2, 2], [1, 3, 3]),
            Plan::Norm(64),
            Plan::Relu,
        ],
        Stem::PlaneThenTime => vec![
            Plan::Conv([3, 45], [1, 7, 7], [1, 2, 2], [0, 3, 3]),
            Plan::Norm(45),
            Plan::Relu,
            Plan::Conv([45, 64], [3, 1, 1], [1; 3], [1, 0, 0]),
            Plan::Norm(64),
            Plan::Relu,
        ],
    }
}

/// Blocks of layer `i`, which `_make_layer` makes from `from` channels.
fn layer(b: &Builder, c: &VideoResNetConfig, i: usize, [from, planes]: [u64; 2]) -> Vec<Residual> {
    let t = b.tape();
    let to = planes * c.block.expansion();
    let stride = if i == 0 { 1 } else { 2 };
    let block = |at: usize, from: u64, stride: u64| {
        let name = LAYERS[i];
        let shrinks = at == 0 && (stride != 1 || from != to);
        t.layer(name, at, || {
            let (downsample, convs) = b.early(
                || {
                    shrinks.then(|| {
                        t.scope("downsample", || {
                            Chain::new(b, downsample(c.conv_makers[i], [from, to], stride))
                        })
                    })
                },
                || {
                    let plans = convolutions(c.block, c.conv_makers[i], [from, planes], stride);
                    let made = CONVS.into_iter().zip(plans);
                    made.map(|(name, plan)| t.scope(name, || Chain::new(b, plan))).collect()
                },
            );
            Residual { convs, downsample }
        })
    };
    (0..c.layers[i] as usize)
        .map(|at| {
            if at == 0 {
                block(0, from, stride)
            } else {
                block(at, to, 1)
            }
        })
        .collect()
}

/// What brings a block's input to the shape of its output.
fn downsample(maker: ConvMaker, channels: [u64; 2], stride: u64) -> Vec<Plan> {
    let in_time = if maker == ConvMaker::Plane { 1 } else { stride };
    vec![
        Plan::Conv(channels, [1; 3], [in_time, stride, stride], [0; 3]),
        Plan::Norm(channels[1]),
    ]
}

/// `conv1`, `conv2`, and `conv3` of a block.
fn convolutions(block: Block, maker: ConvMaker, [from, planes]: [u64; 2], stride: u64) -> Vec<Vec<Plan>> {
    let between = (from * planes * 27) / (from * 9 + 3 * planes);
    let conv = |channels, stride| convolution(maker, channels, between, stride);
    match block {
        Block::Basic => vec![
            vec![conv([from, planes], stride), Plan::Norm(planes), Plan::Relu],
            vec![conv([planes, planes], 1), Plan::Norm(planes)],
        ],
        Block::Bottleneck => {
            let single = |channels: [u64; 2]| Plan::Conv(channels, [1; 3], [1; 3], [0; 3]);
            let to = planes * block.expansion();
            vec![
                vec![single([from, planes]), Plan::Norm(planes), Plan::Relu],
                vec![conv([planes, planes], stride), Plan::Norm(planes), Plan::Relu],
                vec![single([planes, to]), Plan::Norm(to)],
            ]
        }
    }
}

/// What a `conv_builder` makes, with `between` channels between its two convolutions if it has two.
fn convolution(maker: ConvMaker, channels: [u64; 2], between: u64, s: u64) -> Plan {
    let [from, to] = channels;
    match maker {
        ConvMaker::Volume => Plan::Conv(channels, [3; 3], [s; 3], [1; 3]),
        ConvMaker::Plane => Plan::Conv(channels, [1, 3, 3], [1, s, s], [0, 1, 1]),
        ConvMaker::PlaneThenTime => Plan::Chain(vec![
            Plan::Conv([from, between], [1, 3, 3], [1, s, s], [0, 1, 1]),
            Plan::Norm(between),
            Plan::Relu,
            Plan::Conv([between, to], [3, 1, 1], [s, 1, 1], [1, 0, 0]),
        ]),
    }
}

impl Residual {
    fn forward(&self, t: &Tape, x: &Tensor) -> Tensor {
        let mut out = x.clone();
        for conv in &self.convs {
            out = conv.call(t, out);
        }
        let residual = match &self.downsample {
            Some(chain) => chain.call(t, x.clone()),
            None => x.clone(),
        };
        let sum = t.add_(out, &residual);
        t.scope("relu", || t.relu_(sum))
    }
}

impl Chain {
    fn new(b: &Builder, plans: Vec<Plan>) -> Self {
        let steps = plans.into_iter().enumerate();
        Self {
            module: b.module(),
            steps: steps
                .map(|(i, plan)| b.tape().layer("", i, || Step::new(b, plan)))
                .collect(),
        }
    }

    fn call(&self, t: &Tape, x: Tensor) -> Tensor {
        self.module.call(t, move || self.forward(t, x))
    }

    /// Runs it for a caller that has entered the module.
    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        let mut h = x;
        for (i, step) in self.steps.iter().enumerate() {
            h = t.layer("", i, || step.forward(t, h));
        }
        h
    }
}

impl Step {
    fn new(b: &Builder, plan: Plan) -> Self {
        match plan {
            Plan::Conv([from, to], [time, height, width], stride, padding) => Self::Conv(Conv3d {
                weight: b.weight("weight", [to, from, time, height, width]),
                stride,
                padding,
            }),
            Plan::Norm(channels) => Self::Norm(BatchNorm::new(b, channels)),
            Plan::Relu => Self::Relu,
            Plan::Chain(plans) => Self::Chain(Chain::new(b, plans)),
        }
    }

    fn forward(&self, t: &Tape, x: Tensor) -> Tensor {
        match self {
            Self::Conv(conv) => t.conv3d(&x, &conv.weight, conv.stride, conv.padding),
            Self::Norm(norm) => norm.forward(t, &x),
            Self::Relu => t.relu_(x),
            Self::Chain(chain) => chain.forward(t, x),
        }
    }
}
