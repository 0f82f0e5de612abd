//! XPlane.
use stepscope_trace::Trace;

use crate::{Input, Progress, ReadError, Reader};

/// Reads XPlane.
#[derive(Debug)]
pub struct XPlaneReader;

impl Reader for XPlaneReader {
    fn format(&self) -> &'static str {
        "xplane"
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input, _progress: &Progress) -> Result<Trace, ReadError> {
        Err(ReadError::Empty { path: input.path().to_owned() })
    }
}
