//! `stepscope info`: what a profile contains.

use std::io::Write;

use stepscope_analyze::recording::info::info;
use stepscope_render::info::{Description, write_json, write_text};
use stepscope_session::Query;

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

pub(crate) fn run(wanted: &Query, json: bool, terminal: &Terminal) -> Result<Exit, Failure> {
    let profile = load::profile(wanted, terminal)?;
    let info = info(&profile.sources());
    let description = Description { session: &profile.session, sessions: &profile.sessions, info: &info };
    let mut out = terminal.stdout();
    if json {
        write_json(&description, &mut out)?;
    } else {
        write_text(&description, terminal.out, &mut out)?;
    }
    out.flush()?;
    Ok(load::end(profile, terminal))
}
