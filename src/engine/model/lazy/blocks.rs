//! Blocks of decoders that have some of their own, loaded with the lazily loaded families.

use std::rc::Rc;

use crate::model::decoder::DecoderConfig;
use crate::model::decoder::block::Block;
use crate::model::families::decoders;
use crate::nn::Builder;

/// Function that makes the block of an index of a decoder with blocks of its own.
pub(super) type Make = fn(&Builder, &DecoderConfig, usize) -> Rc<dyn Block>;

#[cfg(feature = "lazy-models")]
static PROVIDED: std::sync::OnceLock<Make> = std::sync::OnceLock::new();

/// Returns the function that makes them, which is linked in.
#[cfg(not(feature = "lazy-models"))]
pub(crate) fn make() -> Make {
    own
}

/// Returns the function that makes them, which must have been provided.
///
/// # Panics
/// If they were not provided: the frontend must check [`crate::Model::is_lazy`] first.
#[cfg(feature = "lazy-models")]
pub(crate) fn make() -> Make {
    *PROVIDED
        .get()
        .expect("the frontend provides lazy models before it runs one")
}

/// Makes them available from now on.
#[cfg(feature = "lazy-models")]
pub(super) fn provide(make: Make) {
    // A second call provides the same function, so its error is ignored.
    PROVIDED.set(make).ok();
}

/// Makes the block of this index, with the code of all of them.
pub(super) fn own(b: &Builder, c: &DecoderConfig, index: usize) -> Rc<dyn Block> {
    match decoders::own_block(b, c, index) {
        Some(block) => block,
        None => unreachable!("the registry names the blocks of {}", c.family.name()),
    }
}
