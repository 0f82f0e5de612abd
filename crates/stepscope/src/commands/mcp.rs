//! `stepscope mcp`: a Model Context Protocol server on standard input and output, for coding assistants.

use std::io;
use std::path::PathBuf;

use clap::Args;
use stepscope_agents::{Server, serve};

use crate::exit::Exit;

use crate::failure::Failure;

/// Let coding assistants ask about profiles: a Model Context Protocol server.
///
/// Speaks the protocol on standard input and output; an assistant starts it. It only reads, and only files below the
/// given folders: links that lead out of them are not followed. Answers have at most 8 kB and come in pages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope mcp logs/                    for an assistant that works with logs/\n  \
    stepscope mcp before/ after/           several folders\n  \
    claude mcp add stepscope -- stepscope mcp ~/logs\n\n\
    docs/agents.md shows the configuration of other assistants, and a recorded conversation.")]
pub(crate) struct McpArgs {
    /// Folders whose profiles may be read.
    #[arg(value_name = "DIR", default_value = ".")]
    folders: Vec<PathBuf>,
}

impl McpArgs {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        let server = Server::new(&self.folders, env!("CARGO_PKG_VERSION"))?;
        serve(&server, io::stdin().lock(), io::stdout())?;
        Ok(Exit::Done)
    }
}
