//! `stepscope capture`: records a profile from running processes over gRPC, puts it into a log directory, and tells
//! at once what it shows. The files below `capture/` each hold one part: [`take`] records and writes, [`steady`]
//! waits for the loop to settle, [`every`] keeps watching, [`words`] says what went wrong.

mod every;
mod steady;
mod take;
mod watch;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stepscope_capture::grpc::{Address, Levels, Limits, Recorder};
use stepscope_session::{Exit, Problem};

use crate::cli::FormArgs;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::{duration, size};
use every::Rhythm;
use take::Taker;

/// Record a profile from running processes, and tell what it shows.
///
/// The processes start a profiler server before their training loop: `tf.profiler.experimental.server.start(6009)` in
/// TensorFlow and Keras, `jax.profiler.start_server(9999)` in JAX.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope capture localhost:6009 --logdir logs                  two seconds, then the report\n  \
    stepscope capture a:6009 b:6009 --logdir logs --duration 5s     the same five seconds of two hosts\n  \
    stepscope capture localhost:9999 --logdir logs --until-steady   once warm-up is over\n  \
    stepscope capture localhost:9999 --logdir logs --every 10m --budget 2GB   watch a long job")]
pub(crate) struct CaptureArgs {
    /// Where the profiler servers listen.
    #[arg(required = true, value_name = "HOST:PORT", value_parser = words::address)]
    hosts: Vec<Address>,
    /// Write below this directory, into plugins/profile/SESSION/HOST.xplane.pb.
    #[arg(long, value_name = "DIR")]
    logdir: PathBuf,
    /// How long to record: 2s, 500ms.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    duration: Duration,
    /// Begin this much later.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    delay: Duration,
    /// Try again for so long while a server comes up or is busy.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    wait: Duration,
    /// How long a server may take to send the profile once the window has ended.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// The largest profile to take from one host.
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = size)]
    max_size: u64,
    /// Events of the host: 0 none, 1 your own annotations, 2 expensive ops too, 3 all ops.
    #[arg(long, value_name = "0-3", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    host_level: u32,
    /// Events of devices: 0 none, 1 all.
    #[arg(long, value_name = "0-1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    device_level: u32,
    /// Every Python call: 0 no, 1 yes. Slows the process down.
    #[arg(long, value_name = "0-1", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1))]
    python_level: u32,
    /// Look at short windows first, until steps are there and steady.
    #[arg(long)]
    until_steady: bool,
    /// With --until-steady: record all the same after this.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration, requires = "until_steady")]
    patience: Duration,
    /// Keep sampling a long job, one line a sample, until it ends or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["no_report", "markdown", "html"])]
    every: Option<Duration>,
    /// With --every: end after N samples.
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,
    /// With --every: keep the newest N sessions of this run.
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// With --every: remove the oldest sessions of this run beyond this size.
    #[arg(long, value_name = "SIZE", requires = "every", value_parser = size)]
    budget: Option<u64>,
    /// Only record; print where the session lies.
    #[arg(long, conflicts_with_all = ["json", "markdown", "html"])]
    no_report: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl CaptureArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        if self.duration.as_millis() == 0 {
            let what = Problem::new(Exit::Usage, "--duration is less than a millisecond");
            return Err(what
                .then("nothing can be recorded in that")
                .then("give for example --duration 2s")
                .into());
        }
        let recorder = Recorder::new(leave)?;
        let form = self.form.form();
        let taker = self.taker(&recorder, terminal);
        if self.until_steady && !steady::wait(&taker, self.patience) {
            return Err(words::interrupted().into());
        }
        match self.rhythm() {
            Some(rhythm) => every::watch(&taker, &rhythm, form.json),
            None => taker.once((!self.no_report).then_some(&form)),
        }
    }

    fn taker<'t>(&self, recorder: &'t Recorder, terminal: &'t Terminal) -> Taker<'t> {
        let mut hosts: Vec<Address> = Vec::new();
        for host in &self.hosts {
            // A process that is named twice would be busy the second time.
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        Taker {
            recorder,
            terminal,
            hosts,
            logdir: self.logdir.clone(),
            duration: self.duration,
            delay: self.delay,
            wait: self.wait,
            timeout: self.timeout,
            max_bytes: self.max_size,
            levels: Levels { host: self.host_level, device: self.device_level, python: self.python_level },
        }
    }

    fn rhythm(&self) -> Option<Rhythm> {
        let limits =
            Limits { sessions: self.keep.and_then(|keep| usize::try_from(keep).ok()), bytes: self.budget };
        self.every.map(|every| Rhythm { every, samples: self.samples, limits })
    }
}

/// A second Ctrl-C: nothing is half-written, so nothing has to be waited for.
#[expect(clippy::exit, reason = "the user insists, and whoever could return is busy")]
fn leave() {
    std::process::exit(130);
}
