//! Vision tower of LLaVA's families, and the selection of its hidden states.

use super::features::{FeatureLayers, FeatureSelect};
use super::tower_config::TowerConfig;
use crate::model::forward::Run;
use crate::model::parts::clip_vision::ClipVision;
use crate::model::parts::siglip_vision::SiglipVision;
use crate::nn::Builder;
use crate::tape::{Component, Tape, Tensor};

/// A vision tower of which some hidden states become features.
pub struct FeatureTower {
    tower: Tower,
    name: &'static str,
    layers: FeatureLayers,
    select: FeatureSelect,
    /// True if several layers are concatenated whole, and their class tokens cut off afterwards (LLaVA-NeXT).
    joins_first: bool,
}

enum Tower {
    Clip(Box<ClipVision>),
    Siglip(Box<SiglipVision>),
}

impl Tower {
    fn new(b: &Builder, c: &TowerConfig) -> Self {
        match c {
            TowerConfig::Clip(c) => Self::Clip(Box::new(ClipVision::new(b, c))),
            TowerConfig::Siglip(c) => Self::Siglip(Box::new(SiglipVision::new(b, c))),
        }
    }

    /// Pixels → the tensors that the output holds: its last hidden state, and what its head makes of it.
    fn forward(&self, t: &Tape, run: &Run, pixels: &Tensor, see: impl FnMut(&Tensor)) -> Vec<Tensor> {
        match self {
            Self::Clip(tower) => {
                let output = tower.forward(t, run, pixels, see);
                vec![output.last, output.pooled]
            }
            Self::Siglip(tower) => {
                let (last, pooled) = tower.forward_seen(t, run, pixels, see);
                [Some(last), pooled].into_iter().flatten().collect()
            }
        }
    }
}

impl FeatureTower {
    /// Makes the module `name`.
    pub fn new(
        b: &Builder,
        name: &'static str,
        c: &TowerConfig,
        (layers, select): (FeatureLayers, FeatureSelect),
    ) -> Self {
        Self {
            tower: b.tape().component(name, Component::VisionTower, || Tower::new(b, c)),
            name,
            layers,
            select,
            joins_first: false,
        }
    }

    /// Concatenates several layers before their class tokens are cut off.
    pub fn joining_first(mut self, joins_first: bool) -> Self {
        self.joins_first = joins_first;
        self
    }

    /// Pixels [images, channels, side, side] → tensors of the tower's output: the last hidden states, and the
    /// pooled output of its head.
    pub fn output(&self, t: &Tape, run: &Run, pixels: &Tensor) -> Vec<Tensor> {
        t.component(self.name, Component::VisionTower, || {
            self.tower.forward(t, run, pixels, |_| {})
        })
    }

    /// Pixels [images, channels, side, side] → features [images, tokens, width], and the other tensors that the tower's
    /// output holds.
    pub fn features(&self, t: &Tape, run: &Run, pixels: &Tensor) -> (Tensor, Vec<Tensor>) {
        let mut hidden_states = Vec::new();
        let output = t.component(self.name, Component::VisionTower, || {
            self.tower.forward(t, run, pixels, |h| hidden_states.push(h.clone()))
        });
        let cut = |h: &Tensor| match self.select {
            FeatureSelect::Default => t.slice(h, 1, h.size(1) - 1),
            FeatureSelect::Full => h.clone(),
        };
        let chosen = self.layers.indices.iter().map(|&i| {
            let h = &hidden_states[i as usize];
            if self.joins_first { h.clone() } else { cut(h) }
        });
        let chosen: Vec<Tensor> = chosen.collect();
        let mut selected = match &chosen[..] {
            [one] if !self.layers.is_list => one.clone(),
            many => t.cat(&many.iter().collect::<Vec<_>>(), 2),
        };
        drop(chosen);
        if self.joins_first {
            selected = cut(&selected);
        }
        hidden_states.extend(output);
        (selected, hidden_states)
    }
}
