//! An open profile for Python.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stepscope_analyze::Selection;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_query::{Database, Limits};
use stepscope_read::Progress;
use stepscope_results::views::{DEFAULT_GROUPING, VIEWS, View};
use stepscope_session::{
    Cause, Hosts, Problem, Profile, Query, ResolvedSession, SAMPLE_HOST, SAMPLE_NAME, sample,
};
use stepscope_trace::{Span, Time};

use crate::report::Report;
use pyo3::prelude::*;

use crate::frame::Frame;
use crate::work::{self, Shown};
use crate::{Error, error, sql};

/// One session, read and ready for questions.
#[pyclass(frozen, module = "stepscope._stepscope")]
pub(crate) struct Recording {
    pub(crate) profile: Arc<Profile>,
    /// The paths as given.
    targets: Vec<String>,
    /// What queries have computed so far.
    database: Database,
}

impl Recording {
    fn new(profile: Profile, targets: Vec<String>) -> Self {
        let profile = Arc::new(profile);
        let database = Database::new(Arc::clone(&profile) as _, Limits::TERMINAL);
        Recording { profile, targets, database }
    }
}

/// What to read of which session, as Python gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Asked {
    paths: Vec<PathBuf>,
    session: Option<String>,
    host: Option<String>,
    whole: bool,
    steps: Option<(i64, i64)>,
    seconds: Option<(f64, f64)>,
    warm_up: bool,
}

impl Asked {
    fn selection(&self) -> Selection {
        let time = self.seconds.map(|(from, until)| Span::new(at(from), at(until)));
        let range = match (self.steps, time) {
            (Some((first, last)), _) => Range::Steps(first, last),
            (None, Some(time)) if self.whole => Range::Piece(time),
            (None, Some(time)) => Range::Time(time),
            (None, None) if self.whole => Range::Whole,
            (None, None) => Range::Counted,
        };
        Selection { range, warm_up: self.warm_up }
    }
}

fn at(seconds: f64) -> Time {
    // A cast saturates, and a number that is none becomes 0.
    Time::from_ps((seconds * 1e12) as i64)
}

#[pymethods]
impl Recording {
    /// Finds and reads a session. `tick` is called with bytes, total bytes and events about ten times per second.
    #[staticmethod]
    #[pyo3(signature = (asked, tick=None))]
    fn open(py: Python<'_>, asked: Asked, tick: Option<Py<PyAny>>) -> PyResult<Self> {
        let selection = asked.selection();
        let Asked { paths, session, host, .. } = asked;
        let targets = paths.iter().map(|path| path.display().to_string()).collect();
        let query = Query { paths, session, host, ..Query::default() };
        let progress = Arc::new(Progress::new());
        let shown = Shown { progress: Arc::clone(&progress), tick };
        let read =
            move || ResolvedSession::of(&query, &|_| {}).and_then(|chosen| Profile::load(chosen, &progress));
        let profile = work::run(py, Some(shown), read)?.map_err(|problem| error(&problem))?;
        Ok(Recording::new(profile.selecting(selection), targets))
    }

    /// Reads the sample that is built in.
    #[staticmethod]
    fn sample(py: Python<'_>) -> PyResult<Self> {
        let read = || {
            let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
            Profile::read("sample".to_owned(), vec!["sample".to_owned()], inputs, &Progress::new())
        };
        let profile = work::run(py, None, read)?.map_err(|problem| error(&problem))?;
        Ok(Recording::new(profile, vec![SAMPLE_NAME.to_owned()]))
    }

    /// Name of the session.
    #[getter]
    fn session(&self) -> &str {
        &self.profile.session
    }

    /// All sessions below the paths, newest first.
    #[getter]
    fn sessions(&self) -> Vec<String> {
        self.profile.sessions.to_vec()
    }

    /// Names of the hosts.
    #[getter]
    fn hosts(&self) -> Vec<String> {
        self.profile.hosts.iter().map(|host| host.host.clone()).collect()
    }

    /// The files: path, format, bytes, host and number of events of each.
    #[getter]
    fn sources(&self) -> Vec<(String, &'static str, u64, String, u64)> {
        let rows = self.profile.hosts.iter().map(|host| host.source_row());
        rows.map(|row| (row.path, row.format.name, row.bytes, row.host, row.events)).collect()
    }

    /// Damage in the files, in words.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.profile.problems().iter().map(Problem::to_string).collect()
    }

    /// One view as a table.
    #[pyo3(signature = (name, by=None))]
    fn view(&self, py: Python<'_>, name: &str, by: Option<&str>) -> PyResult<Frame> {
        let view = View::named(name).ok_or_else(|| error(&unknown_view(name)))?;
        let by = by.unwrap_or(DEFAULT_GROUPING);
        let make = view.grouped(by).ok_or_else(|| error(&unknown_grouping(view, by)))?;
        let profile = Arc::clone(&self.profile);
        let made = move || Hosts::of(&profile).table(view, make).map(Frame::of);
        work::run(py, None, made)?.map_err(|problem| error(&problem))
    }

    /// All events as a table.
    fn events(&self, py: Python<'_>) -> PyResult<Frame> {
        let profile = Arc::clone(&self.profile);
        let columns = work::run(py, None, move || stepscope_frame::events::frame(&profile))?;
        Ok(Frame { columns: Arc::new(columns), table: None })
    }

    /// Runs one SELECT, for at most `seconds`; returns at most `rows` rows, and whether there were more.
    #[pyo3(signature = (query, rows=None, seconds=None))]
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        rows: Option<usize>,
        seconds: Option<f64>,
    ) -> PyResult<(Frame, bool)> {
        let most = Limits::TERMINAL;
        let time =
            seconds.map_or(most.time, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(most.time));
        let database = self.database.limited(Limits { rows: rows.unwrap_or(most.rows), time, ..most });
        // Analyses run in the pool, which a query must not block while it waits for them.
        let pool = work::pool()?;
        let database = database.spawning(Arc::new(move |work| pool.spawn(work)));
        let shown = Shown { progress: Arc::default(), tick: None };
        let progress = Arc::clone(&shown.progress);
        let asked = move || database.query_until(&query, &progress);
        let answer =
            work::run_on_thread(py, &shown, asked)?.map_err(|error| Error::new_err(error.to_string()))?;
        let truncated = answer.truncated;
        Ok((Frame::of(sql::table(answer)), truncated))
    }

    /// The report.
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        let (profile, targets) = (Arc::clone(&self.profile), self.targets.clone());
        work::run(py, None, move || Report::of(&profile, targets))?.map_err(|problem| error(&problem))
    }
}

fn unknown_view(name: &str) -> Problem {
    let names: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    Problem::new(Cause::Usage, format!("there is no view `{name}`"))
        .then(format!("the views are {}", names.join(", ")))
        .then("choose one of them")
}

fn unknown_grouping(view: &View, by: &str) -> Problem {
    let ways = match &view.ways()[..] {
        [] => "it has only one grouping".to_owned(),
        ways => format!("its groupings are {}", ways.join(", ")),
    };
    Problem::new(Cause::Usage, format!("`{}` cannot be grouped by `{by}`", view.name))
        .then(ways)
        .then("omit `by`, or choose one of them")
}
