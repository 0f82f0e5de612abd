//! `stepscope monitor`: live hardware use, on a dashboard ([`draw`]) or as CSV and JSON.

mod draw;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use stepscope_capture::run::{Ended, Meter, RunError, ask_to_end, until_asked_to_stop};
use stepscope_capture::sample::{CsvWriter, Options, Sample, Sampler};
use stepscope_render::monitor as render;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use super::run::{interval, nvml, problem};
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::duration;
use crate::screen::Screen;
use draw::Dashboard;

/// Monitor the hardware live: cores, memory, disks, network, GPUs, and the processes of a command.
///
/// Without --pid or a command, monitors the whole machine. Keys: q quits, p pauses the display. The dashboard
/// needs a terminal; --csv and --json do not. The output of a command is not shown beside the dashboard.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope monitor                               this machine\n  \
    stepscope monitor --pid 4242                    a process and its children\n  \
    stepscope monitor -- python train.py            a command, until it ends\n  \
    stepscope monitor --csv samples.csv --pid 4242  ten lines per second to a file\n  \
    stepscope monitor --json --duration 10s         means and peaks over ten seconds")]
pub(crate) struct MonitorArgs {
    /// Monitor this process and its children.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "command")]
    pid: Option<u32>,
    /// Write one CSV line per sample to FILE, or to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    csv: Option<Option<PathBuf>>,
    /// Write a summary as JSON at the end (schema stepscope.monitor.v1).
    #[arg(long)]
    json: bool,
    /// How often to sample.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    interval: Duration,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Command to start and monitor until it ends.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl MonitorArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let plain = self.csv.is_some() || self.json;
        let watched_by_someone = io::stdout().is_terminal() && io::stdin().is_terminal();
        if !plain && !watched_by_someone {
            return Err(Problem::new(Cause::Usage, "the dashboard needs a terminal")
                .then("standard input or output is a file or a pipe")
                .then("add --csv for samples, or --json with --duration for a summary")
                .into());
        }
        if self.csv == Some(None) && self.json {
            return Err(Problem::new(Cause::Usage, "--csv and --json both go to standard output")
                .then("--csv has no file name")
                .then("give one: --csv FILE")
                .into());
        }
        if let Some(pid) = self.pid.filter(|pid| !PathBuf::from(format!("/proc/{pid}")).exists()) {
            return Err(Problem::new(Cause::Usage, format!("there is no process {pid}"))
                .then("it may have ended")
                .then("look for it with `ps` or `pgrep`")
                .into());
        }
        let stop = until_asked_to_stop()?;
        let mut child = self.start(plain)?;
        let options = Options {
            root: self.pid.or(child.as_ref().map(Child::id)),
            from_birth: child.is_some(),
            interval: self.interval,
            nvml: nvml(),
            ..Options::default()
        };
        let mut watch = Watch::new(&options, self.duration, stop);
        let watched =
            if plain { self.write(&mut watch, &mut child) } else { self.show(&mut watch, &mut child) };
        let code = end(child);
        watched?;
        self.summary(&watch, plain, terminal)?;
        Ok(code.map_or(Exit::Done, Exit::OfCommand))
    }

    /// Starts the command. If samples go to standard output, the command's output goes to standard error. A
    /// dashboard leaves no room for it.
    fn start(&self, plain: bool) -> Result<Option<Child>, Failure> {
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        let mut command = Command::new(program);
        command.args(arguments);
        if plain {
            command.stdout(io::stderr());
        } else {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        }
        let failed = |error| problem(RunError::Start { program: program.clone(), error });
        Ok(Some(command.spawn().map_err(failed)?))
    }

    /// Writes samples until the end.
    fn write(&self, watch: &mut Watch, child: &mut Option<Child>) -> Result<(), Failure> {
        let out: Option<Box<dyn Write>> = match &self.csv {
            Some(Some(path)) => {
                let failed = |error: io::Error| {
                    Problem::new(Cause::Usage, format!("cannot write {}", path.display()))
                        .then(error.to_string())
                        .then("choose a file in a writable folder")
                };
                Some(Box::new(File::create(path).map_err(failed)?))
            }
            Some(None) => Some(Box::new(Screen::new(true))),
            None => None,
        };
        let mut csv = out.map(|out| CsvWriter::new(out, &watch.sampler)).transpose()?;
        while !watch.is_over(child) {
            let asked = watch.stop.recv_timeout(watch.left()).is_ok();
            let sample = watch.sample();
            if let Some(csv) = &mut csv {
                csv.write(&sample)?;
            }
            if asked {
                break;
            }
        }
        Ok(())
    }

    /// Shows samples until the end. The terminal is always restored.
    fn show(&self, watch: &mut Watch, child: &mut Option<Child>) -> Result<(), Failure> {
        let mut screen = ratatui::try_init()?;
        let shown = self.draw(watch, child, &mut screen);
        ratatui::try_restore()?;
        shown
    }

    fn draw(
        &self,
        watch: &mut Watch,
        child: &mut Option<Child>,
        screen: &mut ratatui::DefaultTerminal,
    ) -> Result<(), Failure> {
        let mut dashboard = Dashboard::new(self.title(child.as_ref()), watch.sampler.cores());
        while !watch.is_over(child) && watch.stop.try_recv().is_err() {
            screen.draw(|frame| dashboard.draw(frame))?;
            while event::poll(watch.left())? {
                match key(&event::read()?) {
                    Some(Key::Quit) => return Ok(()),
                    Some(Key::Pause) => dashboard.pause(),
                    None => {}
                }
                screen.draw(|frame| dashboard.draw(frame))?;
            }
            dashboard.take(watch.sample());
        }
        Ok(())
    }

    fn title(&self, child: Option<&Child>) -> String {
        match (self.pid, child, self.command.first()) {
            (Some(pid), ..) => format!("process {pid}"),
            (None, Some(child), Some(program)) => format!("{} ({})", program.to_string_lossy(), child.id()),
            _ => "this machine".to_owned(),
        }
    }

    fn summary(&self, watch: &Watch, plain: bool, terminal: &Terminal) -> Result<(), Failure> {
        let (wall_s, usage) = (watch.begun.elapsed().as_secs_f64(), watch.meter.usage());
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            render::write_json(wall_s, &usage, &mut out)?;
        } else if !plain {
            render::write_text(wall_s, &usage, terminal.out, &mut out)?;
        }
        out.flush()?;
        Ok(())
    }
}

/// What a key requests.
enum Key {
    Quit,
    Pause,
}

fn key(event: &Event) -> Option<Key> {
    let Event::Key(key) = event else { return None };
    match key.code {
        _ if key.kind == KeyEventKind::Release => None,
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('p') | KeyCode::Char(' ') => Some(Key::Pause),
        _ => None,
    }
}

/// Takes samples at fixed times.
struct Watch {
    sampler: Sampler,
    meter: Meter,
    begun: Instant,
    next: Instant,
    interval: Duration,
    duration: Option<Duration>,
    stop: Receiver<()>,
    /// True once the monitored process tree has ended.
    gone: bool,
    has_root: bool,
}

impl Watch {
    fn new(options: &Options, duration: Option<Duration>, stop: Receiver<()>) -> Self {
        let sampler = Sampler::new(options);
        let begun = Instant::now();
        Watch {
            meter: Meter::new(sampler.cores()),
            sampler,
            begun,
            next: begun + options.interval,
            interval: options.interval,
            duration,
            stop,
            gone: false,
            has_root: options.root.is_some(),
        }
    }

    /// Time until the next sample.
    fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn sample(&mut self) -> Sample {
        let sample = self.sampler.sample();
        self.meter.add(&sample);
        self.gone = self.has_root && sample.tree.is_none();
        let now = Instant::now();
        while self.next <= now {
            self.next += self.interval;
        }
        sample
    }

    fn is_over(&self, child: &mut Option<Child>) -> bool {
        let late = self.duration.is_some_and(|duration| self.begun.elapsed() >= duration);
        let ended = child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
        late || ended || self.gone
    }
}

/// Ends the command if it still runs, and returns its exit code.
fn end(child: Option<Child>) -> Option<u8> {
    let mut child = child?;
    if let Ok(None) = child.try_wait() {
        ask_to_end(child.id());
    }
    child.wait().ok().map(|status| Ended::of(status).shell_code())
}
