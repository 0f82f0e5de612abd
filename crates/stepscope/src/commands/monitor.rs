//! `stepscope monitor`.

use clap::Args;
use stepscope_session::Exit;

use crate::failure::Failure;
use crate::output::Terminal;

/// Not yet.
#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {}

impl MonitorArgs {
    pub(crate) fn run(&self, _terminal: &Terminal) -> Result<Exit, Failure> {
        Ok(Exit::Done)
    }
}
