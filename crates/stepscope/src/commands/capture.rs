//! `stepscope capture`.

use clap::Args;
use stepscope_session::Exit;

use crate::failure::Failure;
use crate::output::Terminal;

/// Not yet.
#[derive(Debug, Args)]
pub(crate) struct CaptureArgs {}

impl CaptureArgs {
    pub(crate) fn run(&self, _terminal: &Terminal) -> Result<Exit, Failure> {
        Ok(Exit::Done)
    }
}
