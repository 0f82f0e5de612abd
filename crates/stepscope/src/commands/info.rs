//! `stepscope info`: what a profile contains.

use std::io::Write;

use stepscope_analyze::Selection;
use stepscope_analyze::recording::info::{Info, info};
use stepscope_render::info::{Description, write_json, write_text};
use stepscope_session::{Hosts, Query};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

pub(crate) fn run(wanted: &Query, json: bool, terminal: &Terminal) -> Result<Exit, Failure> {
    let of = |hosts: &Hosts<'_>| {
        let each = hosts.visit(|loaded| info(&[loaded.source()]).hosts);
        hosts.any()?;
        let info = Info { hosts: each.into_iter().flatten().collect() };
        Ok((info, hosts.session.to_owned(), hosts.sessions.to_vec()))
    };
    let ((info, session, sessions), problems) = load::hosts(wanted, Selection::default(), terminal, of)?;
    let description = Description { session: &session, sessions: &sessions, info: &info };
    let mut out = terminal.stdout_as(json);
    if json {
        write_json(&description, &mut out)?;
    } else {
        write_text(&description, terminal.out, &mut out)?;
    }
    out.flush()?;
    Ok(load::named(&problems, terminal))
}
