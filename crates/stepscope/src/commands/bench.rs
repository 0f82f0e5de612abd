//! `stepscope bench`.

use clap::Args;
use stepscope_session::Exit;

use crate::failure::Failure;
use crate::output::Terminal;

/// Not yet.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {}

impl BenchArgs {
    pub(crate) fn run(&self, _terminal: &Terminal) -> Result<Exit, Failure> {
        Ok(Exit::Done)
    }
}
