//! The sample that the binary carries: a real training loop on a CPU whose input pipeline cannot keep up.

use stepscope_read::{Bytes, Input};

const SAMPLE: &[u8] =
    include_bytes!("../../../fixtures/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb");

/// What the sample is called.
pub const SAMPLE_NAME: &str = "sample.xplane.pb";
/// The host that it was recorded on.
pub const SAMPLE_HOST: &str = "trainer";

/// The sample, as if it had been opened.
pub fn sample() -> Input {
    Input::from_bytes(SAMPLE_NAME, Bytes::fixed(SAMPLE))
}
