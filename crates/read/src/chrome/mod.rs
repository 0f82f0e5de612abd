//! Chrome JSON.
use stepscope_trace::Trace;

use crate::{Input, Progress, ReadError, Reader};

/// Reads Chrome JSON.
#[derive(Debug)]
pub struct ChromeReader;

impl Reader for ChromeReader {
    fn format(&self) -> &'static str {
        "chrome"
    }

    fn recognises(&self, _head: &[u8]) -> bool {
        false
    }

    fn read(&self, input: &Input, _progress: &Progress) -> Result<Trace, ReadError> {
        Err(ReadError::Empty { path: input.path().to_owned() })
    }
}
