//! Targets behind the readers: analyses, rules, text and pages, the server's answers.

use std::fs;
use std::sync::OnceLock;

use stepscope_analyze::recording::info::info;
use stepscope_read::Progress;
use stepscope_render::{Style, report, table};
use stepscope_results::Select;
use stepscope_results::views::VIEWS;
use stepscope_serve::{Offline, SessionSource};
use stepscope_session::report::report as report_of;
use stepscope_session::{Hosts, Profile};

use crate::targets::input;

fn profile(bytes: &[u8]) -> Option<Profile> {
    let inputs = vec![("host".to_owned(), Ok(input(bytes)))];
    Profile::read("fuzz".to_owned(), vec!["fuzz".to_owned()], inputs, &Progress::new()).ok()
}

/// Every analysis and every rule: the report, the summary and all views.
pub fn analyses(bytes: &[u8]) {
    let Some(profile) = profile(bytes) else { return };
    let _ = report_of(&profile, Vec::new());
    info(&profile.sources());
    VIEWS.iter().for_each(|view| drop(Hosts::of(&profile).table(view, view.table)));
}

/// Everything that is written: the report in all its forms, and all views in theirs.
pub fn rendering(bytes: &[u8]) {
    let Some(profile) = profile(bytes) else { return };
    let mut out = Vec::new();
    if let Ok(report) = report_of(&profile, Vec::new()) {
        let written = report::write_text(&report, Style::PLAIN, &mut out)
            .and_then(|()| report::write_json(&report, &mut out))
            .and_then(|()| report::write_html(&report, &mut out))
            .and_then(|()| report::write_markdown(&report, &mut out));
        assert!(written.is_ok());
    }
    for view in VIEWS {
        let Ok(of_view) = Hosts::of(&profile).table(view, view.table) else { continue };
        let Ok(picked) = of_view.pick(&Select::default(), None) else { continue };
        out.clear();
        let written = table::write_text(&of_view, &picked, Style::PLAIN, &mut out)
            .and_then(|()| table::write_json(&of_view, &picked, &mut out))
            .and_then(|()| table::write_csv(&of_view, &picked, &mut out));
        assert!(written.is_ok());
    }
}

/// What the page asks about a session.
const ASKED: [&str; 15] = [
    "report",
    "info",
    "view/ops",
    "csv/kernels",
    "timeline",
    "tiles?level=20&tile=0&tracks=0",
    "tiles?level=62&tile=0&tracks=0,1,2",
    "event?track=0&event=0",
    "neighbour?track=0&event=0&dir=next&same=name",
    "at?track=0&row=0&t_ns=0&tolerance_ns=1000000",
    "search?q=a",
    "area?start_ns=0&end_ns=1000000000",
    "overview",
    "memory_at?allocator=0&t_ns=0",
    "model",
];

/// The page of a session whose file these bytes are.
pub fn tiles(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    if fs::write(folder.path().join("a.xplane.pb"), bytes).is_err() {
        return;
    }
    let Ok(Some(server)) = Offline::new(SessionSource::Paths(vec![folder.path().to_owned()])) else { return };
    for asked in ASKED {
        let answer = server.get_open(&format!("/api/s/0/{asked}"));
        assert!(answer.is_some_and(|(status, _)| status != 500), "{asked}");
    }
}

/// Requests about the sample: the bytes choose the address and make up its query.
pub fn requests(bytes: &[u8]) {
    static SERVER: OnceLock<Option<Offline>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Offline::new(SessionSource::Sample).ok().flatten());
    let (Some(server), Some((first, rest))) = (server, bytes.split_first()) else { return };
    let known = ASKED.get(usize::from(*first) % ASKED.len()).copied().unwrap_or_default();
    let path = known.split('?').next().unwrap_or_default();
    // Bytes that no address can have are left out, so that most requests reach a route.
    let query: String =
        rest.iter().take(2_000).map(|&byte| char::from(byte)).filter(char::is_ascii_graphic).collect();
    for address in [format!("/api/s/0/{path}?{query}"), format!("/{query}")] {
        let answer = server.get_open(&address);
        assert!(answer.is_none_or(|(status, _)| status != 500), "{address}");
    }
}
