//! The sample profile in the binary: a real training loop on a CPU whose input pipeline cannot keep up.

use stepscope_read::{Bytes, Input};

const SAMPLE: &[u8] =
    include_bytes!("../../../fixtures/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb");

/// File name of the sample.
pub const SAMPLE_NAME: &str = "sample.xplane.pb";
/// Host on which it was recorded.
pub const SAMPLE_HOST: &str = "trainer";

/// The sample as an opened file.
pub fn sample() -> Input {
    Input::from_bytes(SAMPLE_NAME, Bytes::fixed(SAMPLE))
}
