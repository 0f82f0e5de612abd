//! The sample profile in the binary: a real training loop on a CPU whose input pipeline cannot keep up.

use stepscope_read::{Bytes, Input};

/// A copy of the fixture `tf-input-bound`: a published crate holds no file from outside its folder.
const SAMPLE: &[u8] = include_bytes!("../sample/trainer.xplane.pb");

/// File name of the sample.
pub const SAMPLE_NAME: &str = "sample.xplane.pb";
/// Host on which it was recorded.
pub const SAMPLE_HOST: &str = "trainer";

/// The sample as an opened file.
pub fn sample() -> Input {
    Input::from_bytes(SAMPLE_NAME, Bytes::fixed(SAMPLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_the_fixture_that_other_tests_know() {
        let fixture = "fixtures/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb";
        let fixture = std::fs::read(stepscope_testkit::corpus::repository().join(fixture)).unwrap();
        assert!(fixture == SAMPLE, "copy the fixture into crates/session/sample/");
    }
}
