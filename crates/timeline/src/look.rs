//! The category of each kind of event, which decides its colour.

use stepscope_analyze::{Category, Context};
use stepscope_trace::KindId;

/// For kinds without a category.
pub const NONE: u8 = u8::MAX;

/// The category of each kind of a trace, as an index into [`Category::ALL`].
pub fn categories(context: &Context) -> Vec<u8> {
    let (vocabulary, states) = (context.vocabulary(), context.states());
    let feeds_device = states.has_device || states.device_unseen;
    let kinds = (0..context.trace.kinds().len()).map(KindId::from_index);
    let one =
        |kind| Category::of_role(vocabulary.role(kind), feeds_device).map_or(NONE, |category| category as u8);
    kinds.map(one).collect()
}
