//! A family of the table, and its capabilities.

use serde_json::Value;

/// A family and its capabilities: text, several images, parts that can be frozen.
#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    pub text: bool,
    pub images: bool,
    pub parts: bool,
    config: fn(u64) -> Value,
}

impl Family {
    /// Text of the family's `config.json`.
    pub fn config(&self, width: u64) -> String {
        (self.config)(width).to_string()
    }
}

/// A family of text models.
pub const fn text(name: &'static str, config: fn(u64) -> Value) -> Family {
    Family {
        name,
        text: true,
        images: false,
        parts: false,
        config,
    }
}

/// A family of language models beside images.
pub const fn beside_text(name: &'static str, images: bool, config: fn(u64) -> Value) -> Family {
    Family {
        name,
        text: true,
        images,
        parts: true,
        config,
    }
}

/// A family of models of images without text.
pub const fn images(name: &'static str, config: fn(u64) -> Value) -> Family {
    Family {
        name,
        text: false,
        images: false,
        parts: false,
        config,
    }
}
