//! `stepscope serve`: the web page on this machine.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use stepscope_read::files;
use stepscope_render::format::plural;
use stepscope_serve::{FleetOptions, Limits, Options, Record, Server, SessionSource, TokenUse};
use stepscope_session::{Cause, Problem, Query, ResolvedSession};

use crate::commands::capture::page::FromPage;
use crate::exit::Exit;

use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::{duration, size};

/// Show profiles on a web page: the report, every view, the timeline, comparisons.
///
/// Listens on this machine only. New sessions below the paths appear automatically. Nothing is ever written to
/// these paths, unless you name a folder for recordings with --record-into.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope serve logs/                  every session below logs/, the newest first\n  \
    stepscope serve before/ after/ --open  two folders to compare; open the browser\n  \
    stepscope serve logs/ --port 8080      on another port\n  \
    stepscope serve week.part              a merged partial of a fleet, with the profiles that it was made of\n  \
    stepscope serve logs/ --record-into logs/   the page can record from running processes, into logs/\n\n\
    From another machine, forward the port and open http://127.0.0.1:6200/ there:\n  \
    ssh -L 6200:127.0.0.1:6200 HOST stepscope serve logs/\n\n\
    If other users of this machine run programs, the printed address contains a token. Open the whole address once; the\n\
    browser then keeps the token in a cookie. --token=never turns this off. With --record-into there is always a token.")]
pub(crate) struct ServeArgs {
    /// Profiles, session folders or log directories, at any depth; or partials of `stepscope fleet`.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Let the page record from running processes, and write what it records below this log directory.
    #[arg(long, value_name = "DIR")]
    record_into: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where to serve the page.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Listen on this port; 0 picks any free port [default: 6200, or the next free port].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Listen on this address. From other machines, the page needs the token printed with its address.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: String,
    /// Require the token in the printed address. `auto`: if other users of this machine run programs, or other
    /// machines can reach the page.
    #[arg(long, value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true,
        default_value = "auto", default_missing_value = "always")]
    token: TokenWhen,
    /// Keep open sessions within this much memory [default: a quarter of the machine's].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Stop loading a session after this time.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    load_time: Duration,
}

/// What records for the page; nothing if it may not.
type Recorder = Option<Arc<dyn Record>>;

/// When the page needs a token.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum TokenWhen {
    Auto,
    Always,
    Never,
}

impl ServeArgs {
    /// One recording, in the browser.
    pub(crate) fn of(path: PathBuf) -> Self {
        let place = PlaceArgs {
            port: None,
            open: true,
            listen: "127.0.0.1".to_owned(),
            token: TokenWhen::Auto,
            memory: None,
            load_time: Duration::from_secs(300),
        };
        ServeArgs { paths: vec![path], record_into: None, place }
    }

    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let what = match &self.paths[..] {
            [only] => format!("{}", only.display()),
            several => plural(several.len() as u64, "path", "paths"),
        };
        let (paths, record) = self.recording()?;
        let server = self.place.start_with(SessionSource::Paths(paths), FleetOptions::default(), record)?;
        if server.sessions() == 0 && !server.has_fleet() {
            // Same messages as elsewhere. A folder may still get its first profile; a file never does.
            let wanted = Query { paths: self.paths.clone(), ..Query::default() };
            let remark = ResolvedSession::of(&wanted, &|_| {}).err();
            if let Some(problem) = remark {
                if !self.paths.iter().any(|path| files::is_folder(path)) {
                    return Err(problem.into());
                }
                terminal.remark(&format!("{problem}\nwaiting for the first profile"));
            }
        }
        let sessions = plural(server.sessions() as u64, "session", "sessions");
        self.place.run(server, &format!("{sessions} in {what}"), terminal)
    }

    /// What to serve, and what records. The folder for recordings is served too, or nobody would see them.
    fn recording(&self) -> Result<(Vec<PathBuf>, Recorder), Problem> {
        let mut paths = self.paths.clone();
        let Some(folder) = &self.record_into else { return Ok((paths, None)) };
        std::fs::create_dir_all(folder).map_err(|error| {
            Problem::new(Cause::Usage, format!("cannot record into {}", folder.display()))
                .then(error.to_string())
                .then("name a folder that can be written to with --record-into")
        })?;
        let real = |path: &Path| files::canonical(path).ok();
        let within =
            |path: &PathBuf| real(folder).zip(real(path)).is_some_and(|(one, all)| one.starts_with(all));
        if !paths.iter().any(within) {
            paths.push(folder.clone());
        }
        Ok((paths, Some(Arc::new(FromPage::into(folder.clone())))))
    }
}

impl PlaceArgs {
    pub(crate) fn start(&self, source: SessionSource, fleet: FleetOptions) -> Result<Server, Failure> {
        self.start_with(source, fleet, None)
    }

    fn start_with(
        &self,
        source: SessionSource,
        fleet: FleetOptions,
        record: Recorder,
    ) -> Result<Server, Failure> {
        let limits = Limits::default();
        let limits = Limits { bytes: self.memory.unwrap_or(limits.bytes), load: self.load_time, ..limits };
        let token = match self.token {
            TokenWhen::Auto => TokenUse::Auto,
            TokenWhen::Always => TokenUse::Always,
            TokenWhen::Never => TokenUse::Never,
        };
        let (port, listen) = (self.port, self.listen.clone());
        let options = Options { port, listen, limits, token, fleet, record, ..Options::new(source) };
        Ok(Server::start(options)?)
    }

    /// Prints the address, opens the browser if requested, and serves until Ctrl-C.
    pub(crate) fn run(&self, server: Server, what: &str, terminal: &Terminal) -> Result<Exit, Failure> {
        self.run_at(server, "", what, terminal)
    }

    /// The same, with a page to start with.
    pub(crate) fn run_at(
        &self,
        server: Server,
        page: &str,
        what: &str,
        terminal: &Terminal,
    ) -> Result<Exit, Failure> {
        let url = format!("{}{page}", server.url());
        let mut out = terminal.stdout();
        writeln!(out, "{url}")?;
        let stop =
            if std::io::stdout().is_terminal() { "press Ctrl-C to stop" } else { "an interrupt stops it" };
        writeln!(out, "serving {what}; {stop}")?;
        if server.has_token() {
            writeln!(out, "open the whole address: it contains the token that this server requires")?;
        }
        out.flush()?;
        drop(out);
        if self.open && !open_browser(&url) {
            terminal.remark(&format!("cannot open a browser; open {url} yourself"));
        }
        server.run()?;
        Ok(Exit::Done)
    }
}

fn open_browser(url: &str) -> bool {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let quiet = Stdio::null;
    Command::new(program).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().is_ok()
}
