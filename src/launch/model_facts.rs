//! What tools make settings of that no file gives: facts of the model.

use vramscope_engine::Model;

/// What tools make settings of that no file gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFacts {
    /// False for a model of text alone, for which the tools pass over what is said of the parts of a vision-language model.
    pub takes_images: bool,
    /// Width of which transformers makes DeepSpeed's sizes that are "auto".
    pub hidden_size: Option<u64>,
    /// Pixels a side of a token of an image, of a Qwen-VL model.
    pub token_side: Option<u64>,
    /// Its processor cuts images into tiles where it is asked to (`crop_to_patches`).
    pub cuts_where_asked: bool,
}

impl ModelFacts {
    /// Facts of a model that is not known: it may take images.
    pub const UNKNOWN: Self = Self {
        takes_images: true,
        hidden_size: None,
        token_side: None,
        cuts_where_asked: false,
    };

    /// Facts of a model.
    pub fn of(model: &Model) -> Self {
        Self {
            takes_images: model.takes().parts,
            hidden_size: model.hidden_size,
            token_side: model.sizes().image.filter(|_| model.takes().grid).map(|size| size.unit),
            cuts_where_asked: model.model_type == "internvl",
        }
    }
}
