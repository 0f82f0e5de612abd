//! `stepscope demo`: the main job on a sample profile that the binary carries.

use stepscope_read::Progress;
use stepscope_session::report::{judge, look};
use stepscope_session::{Exit, Looked, SAMPLE_HOST, SAMPLE_NAME, sample};

use super::report::{self, Form};
use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

pub(crate) fn run(form: &Form, terminal: &Terminal) -> Result<Exit, Failure> {
    let session = "sample".to_owned();
    let inputs = vec![(SAMPLE_HOST.to_owned(), || Ok(sample()))];
    let looked = Looked::at_inputs(session.clone(), vec![session], inputs, &Progress::new(), look)?;
    let (report, problems) = judge(looked, SAMPLE_NAME.to_owned())?;
    report::show(&report, form, terminal)?;
    Ok(load::named(&problems, terminal))
}
