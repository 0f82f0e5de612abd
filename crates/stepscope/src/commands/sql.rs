//! `stepscope sql`: any question about a recording, as a query.

mod prompt;
mod write;

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use stepscope_query::{
    Answer, Database, EXAMPLES, FUNCTIONS, Holder, Limits, LogFiles, QueryError, TABLES, VIEWS,
};
use stepscope_read::files;
use stepscope_session::{Cause, Problem, Profile, Query};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::load;
use crate::near::near;
use crate::output::Terminal;
use crate::quantity::some_time;
use write::Form;

/// Longest query file, in bytes: SQLite takes no longer query.
const LONGEST: u64 = 64 << 10;
/// Rows of a table on a terminal, unless --limit says otherwise.
const SHOWN: usize = 10_000;

/// Ask anything: run a SQL query over the recording and stepscope's results.
///
/// The engine is SQLite. Events, tracks, counters and launches are tables, and so are steps, their breakdown, ops, kernels
/// and findings; the same names work for every format, and so do the tables of `nsys export`. Times are in ns. Queries only
/// read: they cannot change the recording, open files or set options.
///
/// `.tables` lists the tables, `.schema [TABLE]` their columns. Without a query, a terminal gets a prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope sql logs/ \"SELECT name, count(*) FROM event GROUP BY name ORDER BY 2 DESC LIMIT 10\"\n  \
    stepscope sql logs/ --examples                         a dozen useful queries\n  \
    stepscope sql logs/ .schema                            tables and columns\n  \
    stepscope sql logs/ --file query.sql --csv > rows.csv  a longer query\n  \
    stepscope sql logs/ - < query.sql                      the same from standard input\n  \
    stepscope sql run.sqlite \"SELECT * FROM step\" --parquet steps.parquet")]
pub(crate) struct SqlArgs {
    /// A profile, session folder or log directory.
    #[arg(value_name = "PATH", required_unless_present = "examples")]
    path: Option<PathBuf>,
    /// One SELECT, `.tables` or `.schema [TABLE]`; `-` reads it from standard input, as does a pipe without a query.
    #[arg(value_name = "QUERY", conflicts_with = "file")]
    query: Vec<String>,
    /// Read the query from this file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print a dozen useful queries and end.
    #[arg(long, conflicts_with_all = ["query", "file"])]
    examples: bool,
    /// Use the session with this name instead of the newest one.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Read only hosts whose name matches.
    #[arg(long, value_name = "REGEX")]
    host: Option<String>,
    /// Show at most this many rows; 0 for as many as fit [default: 10000 as text, otherwise 0].
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Stop the query after this long, such as 10s or 2m; a number alone is seconds.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = seconds_or_time)]
    timeout: Duration,
    /// Write JSON (schema stepscope.sql.v1).
    #[arg(long, conflicts_with_all = ["csv", "parquet"])]
    json: bool,
    /// Write CSV.
    #[arg(long, conflicts_with = "parquet")]
    csv: bool,
    /// Write the rows to this file as Parquet.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
}

/// A number alone is seconds, as in other programs that run SQL.
fn seconds_or_time(text: &str) -> Result<Duration, String> {
    some_time(&if text.parse::<f64>().is_ok() { format!("{text}s") } else { text.to_owned() })
}

impl SqlArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        if self.examples {
            write_examples(&mut terminal.stdout())?;
            return Ok(Exit::Done);
        }
        let query = self.text()?;
        if let Some(listed) = query.as_deref().map(listing).transpose()?.flatten() {
            let mut out = terminal.stdout();
            out.write_all(listed.as_bytes())?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        let recording = self.open(terminal)?;
        let database = Database::new(recording.clone(), self.limits());
        match &query {
            Some(query) => self.answer(&database, recording.profile(), query, terminal)?,
            None => prompt::run(&database, terminal)?,
        }
        // The system reclaims the memory of the trace faster than it is freed.
        std::mem::forget(database);
        let problems = recording.problems();
        std::mem::forget(recording);
        Ok(load::named(&problems, terminal))
    }

    /// The profile, or what was logged where there is none.
    fn open(&self, terminal: &Terminal) -> Result<Arc<dyn Holder>, Problem> {
        let paths = self.path.iter().cloned().collect();
        let wanted =
            Query { paths, session: self.session.clone(), host: self.host.clone(), ..Query::default() };
        let missing = match load::profile(&wanted, terminal) {
            Ok(profile) => return Ok(Arc::new(profile)),
            Err(problem) => problem,
        };
        let is_any_wanted = self.session.is_none() && self.host.is_none();
        let below = self.path.as_ref().filter(|_| missing.cause == Cause::Nothing && is_any_wanted);
        let logs = below.and_then(|path| LogFiles::below(path)).ok_or(missing)?;
        terminal.remark("found event files and no profile: only the table scalar has rows");
        Ok(Arc::new(logs))
    }

    /// The query, from wherever it is; `None` for a prompt.
    fn text(&self) -> Result<Option<String>, Problem> {
        if let Some(path) = &self.file {
            let unreadable = |found: String| {
                Problem::new(Cause::Usage, format!("cannot read the query in {}", path.display()))
                    .then(found)
                    .then("give a text file with one SELECT of at most 64 KiB")
            };
            return files::read_text(path, LONGEST).map(Some).map_err(|error| unreadable(error.to_string()));
        }
        let piped = self.query.is_empty() && !io::stdin().is_terminal();
        if piped || self.query == ["-"] {
            let mut text = String::new();
            let read = io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
            let found = match read {
                Ok(size) if size as u64 <= LONGEST => None,
                Ok(_) => Some("found more than 64 KiB".to_owned()),
                Err(error) => Some(error.to_string()),
            };
            if let Some(found) = found {
                return Err(Problem::new(Cause::Usage, "cannot read the query from standard input")
                    .then(found)
                    .then("give one SELECT of at most 64 KiB"));
            }
            if !text.trim().is_empty() {
                return Ok(Some(text));
            }
        } else if !self.query.is_empty() {
            return Ok(Some(self.query.join(" ")));
        } else if io::stdout().is_terminal() {
            return Ok(None);
        }
        Err(Problem::new(Cause::Usage, "there is no query")
            .then("found a path only, and no terminal for a prompt")
            .then("give a SELECT, `.tables`, `.schema` or --file; --examples prints queries that work"))
    }

    fn limits(&self) -> Limits {
        let text = !self.json && !self.csv && self.parquet.is_none();
        let most = Limits::TERMINAL.rows;
        let rows = match self.limit {
            Some(0) => most,
            Some(rows) => rows.min(most),
            None if text => SHOWN,
            None => most,
        };
        Limits { rows, time: self.timeout, ..Limits::TERMINAL }
    }

    fn answer(
        &self,
        database: &Database,
        profile: &Profile,
        query: &str,
        terminal: &Terminal,
    ) -> Result<(), Failure> {
        let answer = database.query(query).map_err(problem)?;
        if let Some(path) = &self.parquet {
            super::export::refuse_to_overwrite(path, profile)?;
            write::parquet(&answer, path)?;
            terminal.remark(&format!("{} rows written to {}", answer.rows.len(), path.display()));
        } else {
            let form = if self.json {
                Form::Json
            } else if self.csv {
                Form::Csv
            } else {
                Form::Text
            };
            let mut out = terminal.stdout_as(form == Form::Json);
            write::answer(&answer, form, terminal.out, &mut out)?;
            out.flush()?;
        }
        note_if_cut(&answer, terminal);
        if answer.rows.is_empty()
            && let Some(why) = database.remark(query)
        {
            terminal.remark(why);
        }
        Ok(())
    }
}

fn note_if_cut(answer: &Answer, terminal: &Terminal) {
    if answer.truncated {
        let rows = answer.rows.len();
        terminal.remark(&format!("the answer was cut after {rows} rows; add a LIMIT, or raise --limit"));
    }
}

/// Why a query failed, with names that may have been meant.
fn problem(error: QueryError) -> Problem {
    let columns = TABLES.iter().flat_map(|table| table.columns.iter()).map(|column| column.name);
    let calls = FUNCTIONS.iter().filter_map(|function| function.call.split('(').next());
    let is_table = error.parts()[1].starts_with("no such table");
    let mut known: Vec<&str> = tables().chain(columns.chain(calls).filter(|_| !is_table)).collect();
    known.sort_unstable();
    known.dedup();
    let unknown = error.unknown_name().map(str::to_owned);
    let is_it = |name: &str| unknown.as_ref().is_some_and(|unknown| unknown.eq_ignore_ascii_case(name));
    let mut meant = unknown.as_ref().map(|name| near(name, known.into_iter())).unwrap_or_default();
    meant.retain(|name| !is_it(name));
    let of_tables: Vec<&str> = TABLES
        .iter()
        .filter(|table| table.columns.iter().any(|column| is_it(column.name)))
        .map(|table| table.name)
        .collect();
    let problem = Problem::from(error);
    if !is_table && !of_tables.is_empty() {
        return problem.hint(format!("these tables have such a column: {}", of_tables.join(", ")));
    }
    if meant.is_empty() { problem } else { problem.hint(format!("did you mean {}?", meant.join(" or "))) }
}

/// Names of all tables and views.
fn tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name))
}

fn write_examples(out: &mut dyn Write) -> io::Result<()> {
    for example in EXAMPLES {
        write!(out, "-- {}\n{};\n\n", example.question, example.sql)?;
    }
    out.flush()
}

/// What a line that begins with a dot lists; `None` for a query.
fn listing(query: &str) -> Result<Option<String>, Problem> {
    let mut words = query.split_whitespace();
    match (words.next(), words.next()) {
        (Some(".tables"), None) => {
            let tables = TABLES.iter().map(|table| (table.name, table.about));
            let lines = tables.chain(VIEWS.iter().map(|view| (view.name, view.about)));
            Ok(Some(lines.map(|(name, about)| format!("{name:<28} {about}\n")).collect()))
        }
        (Some(".schema"), table) => {
            let described = Database::schema(table);
            if described.is_empty() {
                return Err(Problem::new(
                    Cause::Usage,
                    format!("there is no table `{}`", table.unwrap_or_default()),
                )
                .then("`.tables` lists the tables"));
            }
            Ok(Some(described))
        }
        (Some(".examples"), None) => {
            let mut text = Vec::new();
            // Writing to memory cannot fail.
            let _ = write_examples(&mut text);
            Ok(Some(String::from_utf8_lossy(&text).into_owned()))
        }
        (Some(word), _) if word.starts_with('.') => {
            Err(Problem::new(Cause::Usage, format!("there is no command `{word}`"))
                .then("the commands are .tables, .schema [TABLE] and .examples"))
        }
        _ => Ok(None),
    }
}
