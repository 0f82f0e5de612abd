//! Runs a command unchanged, times it and monitors it: its output is forwarded and parsed, the hardware is
//! sampled, and its log directory is examined at the end.
//!
//! ```text
//! pipes    standard output and error, forwarded            found    event files and profiles of the run
//! lines    bytes → lines                                   usage    samples → utilisation
//! said     a line → what it says about steps               profile  one window over gRPC, once steps are steady
//! listen   all lines → numbers that count up               signals  forwarded to the command
//! remarks  lines that may be warnings                      inject   follows Python programs and records them
//! series   numbers that count up → step durations
//! steps    the best of all series                          on_demand  asks PyTorch's recorder where inject cannot
//! steady   the start of their steady state                attach   the same for a program that runs already
//! ```

pub mod attach;
mod found;
pub(crate) mod inject;
mod lines;
mod listen;
mod on_demand;
mod pipes;
mod profile;
mod progress_line;
mod remarks;
mod series;
mod signals;
mod steady;
mod steps;
mod usage;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wait4::{ResUse, Wait4};

pub use inject::{Followed, Following};
pub use profile::{Captured, ProfileRequest};
pub use remarks::Remark;
pub use series::Observation;
pub use signals::{ask_to_end, until_asked_to_stop};
pub use steady::{Level, Steady, steady};
pub use steps::{Figures, Steps};
pub use usage::{Meter, UsageWindow};

use stepscope_results::usage::Usage;

use crate::sample::{CsvWriter, Nvml, Options as SampleOptions, Sampler};
use listen::{Listener, Stream};
use pipes::Channels;
use signals::Signals;

/// What to run, and how to monitor it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where it will write event files and profiles.
    pub logdir: PathBuf,
    /// Examples per batch, if known.
    pub batch_size: Option<u64>,
    /// Sampling interval.
    pub interval: Duration,
    /// Where to write samples as CSV.
    pub samples: Option<PathBuf>,
    /// A profile to record during the run.
    pub profile: Option<ProfileRequest>,
    /// Where Python programs record themselves; `None` leaves them alone.
    pub inject: Option<PathBuf>,
    /// Whether these recordings say who holds device memory.
    pub memory: bool,
    /// Called with what Python programs report, about once per second while it changes.
    pub progress: Option<fn(&Following)>,
    /// Location of NVIDIA's library.
    pub nvml: Nvml,
}

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no command.
    #[error("no command to run")]
    Nothing,
    /// The program could not be started.
    #[error("cannot start {}: {error}", program.to_string_lossy())]
    Start {
        /// Its name.
        program: OsString,
        /// Why.
        error: io::Error,
    },
    /// Samples cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Samples {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system refused something that a run needs.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// How a command ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// The exit code that a shell would show.
    pub fn shell_code(self) -> u8 {
        match self {
            Ended::Code(code) => code,
            Ended::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }

    /// From the system's exit status.
    pub fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Ended::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
            (None, signal) => Ended::Signal(signal.unwrap_or(0)),
        }
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Recorded {
    /// How it ended.
    pub ended: Ended,
    /// Its start, in nanoseconds since 1970.
    pub begun_wall_ns: i64,
    /// Its duration.
    pub lasted: Duration,
    /// Its steps; `None` if there was nothing to time.
    pub steps: Option<Steps>,
    /// True if its output counts up but arrived all at once, so that there was nothing to time.
    pub held_back: bool,
    /// Lines of its output that may be warnings.
    pub remarks: Vec<Remark>,
    /// Its hardware use.
    pub usage: Usage,
    /// Utilisation while steps were steady.
    pub steady_usage: Option<UsageWindow>,
    /// Profiles that it wrote itself.
    pub profiles: Vec<PathBuf>,
    /// The profile recorded by stepscope.
    pub captured: Option<Captured>,
    /// Python programs that recorded themselves; `None` if they were left alone.
    pub followed: Option<Following>,
    /// What PyTorch's own recorder left, where nothing could be put into the interpreter.
    pub on_demand: Option<PathBuf>,
    /// Why the samples could not be written to their file.
    pub samples_lost: Option<io::Error>,
}

/// The option in a command line that keeps everybody out of its Python interpreter.
pub fn closing_option(command: &[OsString]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let name = Path::new(program).file_name()?.to_string_lossy().into_owned();
    let options = arguments.iter().map(|it| it.to_string_lossy());
    let mut options =
        options.take_while(|it| it.starts_with('-') && !it.starts_with("--") && it != "-c" && it != "-m");
    let shut = |option: &std::borrow::Cow<'_, str>| option.contains(['S', 'I', 'E']);
    options.find(shut).filter(|_| name.starts_with("python")).map(std::borrow::Cow::into_owned)
}

/// What records a command from inside.
struct Inside {
    injection: Option<Arc<inject::Injection>>,
    on_demand: Option<on_demand::OnDemand>,
}

impl Inside {
    /// Where a folder cannot be made, the command runs all the same.
    fn new(options: &Options) -> Inside {
        let into = options.inject.as_deref();
        let purpose = inject::Purpose::Recording { memory: options.memory };
        let closed = closing_option(&options.command).is_some();
        Inside {
            injection: into.and_then(|into| inject::Injection::new(into, purpose).ok()).map(Arc::new),
            on_demand: into.filter(|_| closed).and_then(|into| on_demand::OnDemand::start(into).ok()),
        }
    }

    fn environment(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let injected = self.injection.iter().flat_map(|injection| injection.environment());
        injected.chain(self.on_demand.iter().flat_map(on_demand::OnDemand::environment))
    }
}

/// Orphaned children may keep the pipes open; their output is part of the run for this long.
const AFTERTHOUGHTS: Duration = Duration::from_secs(2);

/// With fewer steps timed inside of a program, what it prints is asked first.
const FEW_STEPS: usize = 3;

/// Runs a command to its end.
pub fn record(options: &Options) -> Result<Recorded, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Signal handling starts before the child, so that no signal is lost in between.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let mut channels = Channels::open()?;
    let (begun, begun_wall) = (Instant::now(), SystemTime::now());
    let inside = Inside::new(options);
    let child = start(&options.command, &mut channels, &inside)?;
    let Inside { injection, on_demand } = inside;
    let pid = child.id();

    let listener = Arc::new(Mutex::new(Listener::default()));
    let (done, all_done) = mpsc::channel();
    let leave = Arc::new(AtomicBool::new(false));
    let (streams, terminals) = (channels.count(), channels.terminals());
    let hearing = Arc::clone(&listener);
    let heard = move |stream: Stream, bytes: &[u8]| {
        let at_s = begun.elapsed().as_secs_f64();
        hearing.lock().unwrap_or_else(PoisonError::into_inner).hear(stream, bytes, at_s);
    };
    channels.pump(&heard, &leave, &done);
    let watch = Watch::start(options, pid)?;
    let profiler = options.profile.clone().map(|request| request.start(Arc::clone(&listener)));

    let over = Arc::new(AtomicBool::new(false));
    let saying = injection.clone().zip(options.progress).map(|(injection, say)| {
        let over = Arc::clone(&over);
        std::thread::spawn(move || injection.watch(say, &over))
    });
    let (exit, exited) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || exit.send(child.wait4()));
    let waited = runtime.block_on(signals.forward_until(pid, &terminals, exited))?;
    let lasted = begun.elapsed();
    over.store(true, Ordering::Relaxed);
    // It ends within a tick; a thread that failed has nothing to say.
    let _ = saying.map(std::thread::JoinHandle::join);

    let captured = profiler.and_then(profile::Profiler::finish);
    let ended = (0..streams).take_while(|_| all_done.recv_timeout(AFTERTHOUGHTS).is_ok()).count();
    leave.store(true, Ordering::Relaxed);
    for _ in ended..streams {
        // A stream whose target accepts nothing cannot be left to anybody.
        if let Ok(Some(rest)) = all_done.recv_timeout(AFTERTHOUGHTS) {
            // Without `cat` its children learn that nobody listens, as they would without stepscope.
            let _ = rest.leave_behind();
        }
    }
    let (meter, samples_lost) = watch.finish();
    let mut listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
    [Stream::Out, Stream::Err].iter().for_each(|&stream| listener.end(stream, lasted.as_secs_f64()));
    let found = found::newer(&options.logdir, begun_wall);
    let since_1970 = begun_wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let followed = injection.as_deref().map(inject::Injection::following);
    let timed = followed.as_ref().and_then(|followed| followed.steps(since_1970.as_secs_f64()));
    let outside = || steps::pick(&listener, &found.event_files, since_1970.as_secs_f64(), options.batch_size);
    // A few steps inside are no better than what the program prints for all of them.
    let mut steps = match timed {
        Some(timed) if timed.observed.len() >= FEW_STEPS => Some(timed),
        timed => outside().or(timed),
    };
    if let Some((from, to)) = captured.as_ref().and_then(|captured| captured.during) {
        let since = |at: SystemTime| at.duration_since(begun_wall).unwrap_or_default().as_secs_f64();
        steps = steps.map(|steps| steps.without((since(from), since(to))));
    }
    Ok(Recorded {
        ended: Ended::of(waited.status),
        begun_wall_ns: i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX),
        lasted,
        steady_usage: steps.as_ref().and_then(|steps| steady_window(steps, &meter)),
        steps,
        held_back: listener.is_held_back(),
        remarks: listener.remarks().to_vec(),
        usage: exact(meter.usage(), &waited),
        profiles: found.profiles,
        captured,
        followed,
        on_demand: on_demand.and_then(on_demand::OnDemand::finish),
        samples_lost,
    })
}

/// Starts the command. It holds the child's ends of the channels: once it is dropped, only the child does, so
/// that its end is noticed.
fn start(command: &[OsString], channels: &mut Channels, inside: &Inside) -> Result<Child, RunError> {
    let (program, arguments) = command.split_first().ok_or(RunError::Nothing)?;
    let (out, err) = channels.stdio()?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(out).stderr(err);
    command.envs(inside.environment());
    command.spawn().map_err(|error| RunError::Start { program: program.clone(), error })
}

/// Utilisation from the first steady step to the last.
fn steady_window(steps: &Steps, meter: &Meter) -> Option<UsageWindow> {
    let counted = steps.counted();
    let (first, last) = (counted.first()?, counted.last()?);
    meter.window(first.end_s - first.seconds, last.end_s)
}

/// The kernel's count for the child and everything it waited for is exact; samples may miss its last moment.
fn exact(mut usage: Usage, waited: &ResUse) -> Usage {
    let counted = (waited.rusage.utime + waited.rusage.stime).as_secs_f64();
    usage.cpu_seconds = Some(usage.cpu_seconds.unwrap_or(0.0).max(counted));
    if waited.rusage.maxrss > 0 {
        usage.rss_peak_bytes = usage.rss_peak_bytes.max(Some(waited.rusage.maxrss));
        usage.process_peak_bytes = usage.process_peak_bytes.max(Some(waited.rusage.maxrss));
    }
    usage
}

/// Samples until stopped.
struct Watch {
    stop: mpsc::Sender<()>,
    thread: std::thread::JoinHandle<(Meter, io::Result<()>)>,
}

impl Watch {
    fn start(options: &Options, pid: u32) -> Result<Self, RunError> {
        let sampling = SampleOptions {
            root: Some(pid),
            from_birth: true,
            interval: options.interval,
            nvml: options.nvml.clone(),
            ..SampleOptions::default()
        };
        // The file gets its name once it is complete.
        let places = options.samples.as_ref().map(|path| (path.with_extension("csv.part"), path.clone()));
        let file = match &places {
            Some((part, path)) => {
                let failed = |error| RunError::Samples { path: path.clone(), error };
                Some(std::fs::File::create(part).map_err(failed)?)
            }
            None => None,
        };
        let interval = options.interval;
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            let mut sampler = Sampler::new(&sampling);
            let (mut csv, mut written) = match file.map(|file| CsvWriter::new(file, &sampler)) {
                Some(Ok(csv)) => (Some(csv), Ok(())),
                Some(Err(error)) => (None, Err(error)),
                None => (None, Ok(())),
            };
            let mut meter = Meter::new(sampler.cores());
            sample_until(&stopped, interval, &mut || {
                let sample = sampler.sample();
                meter.add(&sample);
                // A full disk must not end a run of days; sampling to the file stops there.
                if let Some(Err(error)) = csv.as_mut().map(|csv| csv.write(&sample)) {
                    (csv, written) = (None, Err(error));
                }
            });
            drop(csv);
            if let Some((part, path)) = places {
                written = written.and_then(|()| std::fs::rename(&part, path));
                if written.is_err() {
                    // The disk may be full: half a file helps nobody.
                    let _ = std::fs::remove_file(part);
                }
            }
            (meter, written)
        })?;
        Ok(Watch { stop, thread })
    }

    /// The meter, and why samples were lost.
    fn finish(self) -> (Meter, Option<io::Error>) {
        // If the receiver is gone, it has already ended.
        let _ = self.stop.send(());
        let (meter, written) = self.thread.join().unwrap_or_else(|_| (Meter::default(), Ok(())));
        (meter, written.err())
    }
}

/// Calls `sample` at every interval, and once at the end. A late sample does not delay the following ones.
pub(crate) fn sample_until(stopped: &mpsc::Receiver<()>, interval: Duration, sample: &mut dyn FnMut()) {
    let mut next = Instant::now() + interval;
    loop {
        let ended = stopped.recv_timeout(next.saturating_duration_since(Instant::now()));
        sample();
        if ended != Err(RecvTimeoutError::Timeout) {
            break;
        }
        let now = Instant::now();
        while next <= now {
            next += interval.max(Duration::from_millis(1));
        }
    }
}
