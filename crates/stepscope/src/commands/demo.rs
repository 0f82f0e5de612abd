//! `stepscope demo`: the main job on a sample profile that the binary carries.

use stepscope_read::{Bytes, Input};

use super::report::{self, Form};
use crate::load::Looked;
use crate::output::Terminal;
use crate::problem::{Exit, Failure};

/// A real training loop on a CPU whose input pipeline cannot keep up.
const SAMPLE: &[u8] = include_bytes!(
    "../../../../fixtures/tf-input-bound/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb"
);

pub(crate) fn run(form: &Form, terminal: &Terminal) -> Result<Exit, Failure> {
    let sample = || Ok(Input::from_bytes("sample.xplane.pb", Bytes::fixed(SAMPLE)));
    let session = "sample".to_owned();
    let inputs = vec![("trainer".to_owned(), sample)];
    let looked = Looked::at_inputs(session.clone(), vec![session], inputs, report::look)?;
    let (report, problems) = report::judge(looked, "sample.xplane.pb".to_owned())?;
    report::show(&report, form, terminal)?;
    Ok(Looked::<()>::end(&problems, terminal))
}
