//! One colour per category, the same in the report file and in every other drawing.
//!
//! From the palettes of Okabe and Ito and of Paul Tol, which are distinguishable with any kind of colour
//! blindness. Work is blue and green, waiting for others is warm, building is purple, unknown is grey. All have
//! enough contrast on white and on near-black, and a name always appears beside the colour.

use stepscope_analyze::Category;

/// A category's colour as `#rrggbb`.
pub fn color(category: Category) -> &'static str {
    match category {
        Category::Compute => "#2f7fc1",
        Category::Communication => "#56b4e9",
        Category::TransferIn => "#117d55",
        Category::TransferOut => "#2fae8f",
        Category::TransferDevice => "#7fc8a9",
        Category::Input => "#e69f00",
        Category::Tracing => "#a0336f",
        Category::Compile => "#cc79a7",
        Category::Launch => "#c9b037",
        Category::Dispatch => "#8f8b2b",
        Category::Python => "#d55e00",
        Category::Output => "#9a6bc4",
        Category::Sync => "#6a63c4",
        Category::Idle => "#9aa0a6",
        Category::Unknown => "#c3c7cb",
    }
}

/// The same for terminals: the nearest of 256 colours.
pub(super) fn terminal(category: Category) -> u8 {
    match category {
        Category::Compute => 32,
        Category::Communication => 74,
        Category::TransferIn => 29,
        Category::TransferOut => 36,
        Category::TransferDevice => 115,
        Category::Input => 214,
        Category::Tracing => 125,
        Category::Compile => 175,
        Category::Launch => 178,
        Category::Dispatch => 100,
        Category::Python => 166,
        Category::Output => 134,
        Category::Sync => 62,
        Category::Idle => 247,
        Category::Unknown => 251,
    }
}
