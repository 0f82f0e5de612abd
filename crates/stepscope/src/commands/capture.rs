//! `stepscope capture`: records a profile from running processes over gRPC, writes it to a log directory, and
//! reports on it at once. Each file below `capture/` holds one part: [`take`] records and writes, [`steady`]
//! waits for a steady state, [`every`] keeps sampling, [`page`] records for the web page, [`words`] explains errors.

mod every;
pub(crate) mod page;
mod steady;
mod take;
mod watch;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use stepscope_capture::grpc::{Address, Levels, Limits, Recorder};
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use crate::cli::FormArgs;
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::{duration, size};
use every::Rhythm;
use steady::Waited;
use take::Taker;
use words::Addresses;

/// Record a profile from running processes and report on it.
///
/// Start a profiler server in each process before its training loop:
/// `tf.profiler.experimental.server.start(6009)` in TensorFlow and Keras, `jax.profiler.start_server(9999)` in
/// JAX.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope capture localhost:6009 --logdir logs                  two seconds, then the report\n  \
    stepscope capture a:6009 b:6009 --logdir logs --duration 5s     the same five seconds on two hosts\n  \
    stepscope capture node[01-04]:6009 --logdir logs                the same two seconds on all nodes of a job\n  \
    stepscope capture --tf-config --logdir logs                     all processes of TF_CONFIG, by their parts\n  \
    stepscope capture localhost:9999 --logdir logs --until-steady   after the warm-up\n  \
    stepscope capture localhost:9999 --logdir logs --every 10m --budget 2GB   sample a long job")]
pub(crate) struct CaptureArgs {
    /// Addresses of the profiler servers. A host list names several (`node[01-04]:6009`, as in SLURM_JOB_NODELIST, or
    /// `trainer-[0-3].trainer:6009`); NAME=HOST:PORT names the file.
    #[arg(required_unless_present = "tf_config", value_name = "HOST:PORT", value_parser = words::addresses)]
    hosts: Vec<Addresses>,
    /// All processes of a TF_CONFIG, named by their parts: its JSON or a file; without a value, the variable TF_CONFIG.
    #[arg(long, value_name = "JSON", num_args = 0..=1, default_missing_value = "")]
    tf_config: Option<String>,
    /// With --tf-config: the port of the profiler servers. Further processes on one host use the next ports, in the order of
    /// the cluster.
    #[arg(long, value_name = "PORT", default_value_t = 6009, requires = "tf_config", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Log directory; writes plugins/profile/SESSION/HOST.xplane.pb below it.
    #[arg(long, value_name = "DIR")]
    logdir: PathBuf,
    /// How long to record: 2s, 500ms.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    duration: Duration,
    /// Start this much later.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    delay: Duration,
    /// Keep retrying for this long while a server starts or is busy.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    wait: Duration,
    /// How long a server may take to send the profile after the window ends.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// Largest profile to accept from one host.
    #[arg(long, value_name = "SIZE", default_value = "2GB", value_parser = size)]
    max_size: u64,
    /// Host events: 0 none, 1 your own annotations, 2 also expensive ops, 3 all ops.
    #[arg(long, value_name = "0-3", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    host_level: u32,
    /// Device events: 0 none, 1 all.
    #[arg(long, value_name = "0-1", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=1))]
    device_level: u32,
    /// Python calls: 0 none, 1 all. Slows the process down.
    #[arg(long, value_name = "0-1", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1))]
    python_level: u32,
    /// Sample short windows until steps appear and are steady.
    #[arg(long)]
    until_steady: bool,
    /// With --until-steady: record anyway after this long.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration, requires = "until_steady")]
    patience: Duration,
    /// Sample a long job at this interval, one line per sample, until it ends or Ctrl-C.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with_all = ["no_report", "markdown", "html"])]
    every: Option<Duration>,
    /// With --every: stop after N samples.
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,
    /// With --every: keep the newest N sessions of this run.
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    keep: Option<u64>,
    /// With --every: remove the oldest sessions of this run beyond this size.
    #[arg(long, value_name = "SIZE", requires = "every", value_parser = size)]
    budget: Option<u64>,
    /// Only record, and print where the session is.
    #[arg(long, conflicts_with_all = ["json", "markdown", "html"])]
    no_report: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl CaptureArgs {
    pub(crate) fn run(self, terminal: &Terminal) -> Result<Exit, Failure> {
        if self.duration.as_millis() == 0 {
            let what = Problem::new(Cause::Usage, "--duration is less than a millisecond");
            return Err(what.then("that is too short to record anything").then("try --duration 2s").into());
        }
        let recorder = Recorder::new(leave)?;
        let form = self.form.form();
        let taker = self.taker(&recorder, terminal)?;
        if self.until_steady {
            match steady::wait(&taker, self.patience) {
                Waited::Record => {}
                Waited::Stopped => return Err(words::interrupted().into()),
                Waited::Ended => return Err(words::ended(&taker.hosts).into()),
            }
        }
        match self.rhythm() {
            Some(rhythm) => every::watch(&taker, &rhythm, form.json, terminal),
            None => taker.once((!self.no_report).then_some(&form), terminal),
        }
    }

    fn taker<'t>(&self, recorder: &'t Recorder, terminal: &'t Terminal) -> Result<Taker<'t>, Problem> {
        let mut hosts: Vec<Address> = Vec::new();
        let given = self.hosts.iter().flat_map(|given| given.0.iter().cloned());
        let of_config =
            self.tf_config.as_ref().map(|config| words::of_config(config, self.port)).transpose()?;
        for host in given.chain(of_config.unwrap_or_default()) {
            // A process that is listed twice would be busy the second time.
            if !hosts.iter().any(|known| known.is_same_process(&host)) {
                hosts.push(host);
            }
        }
        Ok(Taker {
            recorder,
            listener: terminal,
            hosts,
            logdir: self.logdir.clone(),
            duration: self.duration,
            delay: self.delay,
            wait: self.wait,
            timeout: self.timeout,
            max_bytes: self.max_size,
            levels: Levels { host: self.host_level, device: self.device_level, python: self.python_level },
        })
    }

    fn rhythm(&self) -> Option<Rhythm> {
        let limits =
            Limits { sessions: self.keep.and_then(|keep| usize::try_from(keep).ok()), bytes: self.budget };
        self.every.map(|every| Rhythm { every, samples: self.samples, limits })
    }
}

/// Second Ctrl-C: nothing is half-written, so there is nothing to wait for.
#[expect(clippy::exit, reason = "the user insists, and the code that could return is busy")]
fn leave() {
    std::process::exit(130);
}
