//! Error messages of a capture: one per cause, each with what to do about it.

use std::path::Path;
use std::time::Duration;

use stepscope_capture::grpc::cluster::{self, of_tf_config};
use stepscope_capture::grpc::{Address, AddressError, CaptureError};
use stepscope_read::files::read_text;
use stepscope_render::format::{bytes, duration_ms, printable};
use stepscope_session::{Cause, Problem};

use super::take::Taker;

/// How to start a profiler server in a process.
const START: &str = "start a profiler server in the training program before the loop, with \
                     tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(9999), and give that port";

/// Addresses that one argument names.
#[derive(Clone, Debug)]
pub(super) struct Addresses(pub(super) Vec<Address>);

/// Reads an address, or a host list, from the command line.
pub(super) fn addresses(text: &str) -> Result<Addresses, String> {
    cluster::addresses(text).map(Addresses).map_err(|error| match error {
        AddressError::NoPort(_) => "give a host and a port, such as localhost:6009 or [::1]:6009".to_owned(),
        AddressError::BadPort(port) => format!("`{port}` is not a port; give for example localhost:6009"),
        AddressError::NoHost(_) => "give a host name or address before the port".to_owned(),
    })
}

/// A TF_CONFIG of thousands of tasks is far smaller.
const LARGEST_CONFIG: u64 = 1 << 20;

/// The processes of a TF_CONFIG: its JSON, a file that holds it, or, if empty, the variable of that name.
pub(super) fn of_config(given: &str, port: u16) -> Result<Vec<Address>, Problem> {
    let failed = |why: String| {
        Problem::new(Cause::Usage, "--tf-config cannot be used")
            .then(why)
            .then("give the JSON of TF_CONFIG, or a file that holds it, or set the variable TF_CONFIG")
    };
    let text = match given.trim() {
        "" => {
            std::env::var("TF_CONFIG").map_err(|_| failed("the variable TF_CONFIG is not set".to_owned()))?
        }
        json if json.starts_with('{') => json.to_owned(),
        path => read_text(Path::new(path), LARGEST_CONFIG)
            .map_err(|error| failed(format!("cannot read {path}: {error}")))?,
    };
    of_tf_config(&text, port).map_err(|error| failed(error.to_string()))
}

/// Formats a duration as the user wrote it: `10 s`, `400 ms`, `2 min`.
pub(super) fn spelled(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (0, ms) => format!("{ms} ms"),
        (seconds, 0) if seconds >= 120 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        (seconds, 0) => format!("{seconds} s"),
        _ => duration_ms(time.as_secs_f64() * 1e3),
    }
}

/// Short reason for a retry.
pub(super) fn reason(error: &CaptureError) -> &'static str {
    match error {
        CaptureError::Refused => "nothing is listening yet",
        CaptureError::Unreachable { .. } => "not reachable yet",
        CaptureError::Busy { .. } => "busy with another profile",
        _ => "not ready yet",
    }
}

/// The user interrupted the capture.
pub(super) fn interrupted() -> Problem {
    Problem::new(Cause::Nothing, "the capture was interrupted")
        .then("nothing was kept")
        .then("run it again and let it finish; --duration sets how long it records")
}

/// The program ended while the capture waited for a steady state.
pub(super) fn ended(hosts: &[Address]) -> Problem {
    let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    Problem::new(Cause::Nothing, format!("the program at {} ended before its steps were steady", names.join(", ")))
        .then("its profiler server answered at first and is gone now")
        .then(
            "let it run longer, or record its first steps: start `stepscope capture` without --until-steady while it \
             runs, or record from inside the program",
        )
}

/// Explains why one process returned no profile.
pub(super) fn problem(address: &Address, error: &CaptureError, taker: &Taker<'_>) -> Problem {
    let about = |what: String| Problem::new(Cause::Nothing, what);
    let quoted = |said: &str| printable(said.trim());
    match error {
        CaptureError::NoSuchHost { detail } => about(format!("cannot find the host `{}`", address.host))
            .then(quoted(detail))
            .then("check the name, or use the machine's IP address"),
        CaptureError::Refused => about(format!("nothing is listening at {address}"))
            .then(format!("the connection was refused for {}", spelled(taker.wait)))
            .then(format!("{START}; --wait 60s gives it more time to start")),
        CaptureError::Unreachable { detail } => about(format!("{address} cannot be reached")).then(quoted(detail)).then(
            format!(
                "check that the machine is up and no firewall blocks the port; if only ssh works, run \
                 `ssh -L {port}:localhost:{port} {host}` and capture localhost:{port}",
                port = address.port,
                host = address.host
            ),
        ),
        CaptureError::Silent { after } => about(format!("{address} accepts connections but does not answer"))
            .then(format!("no gRPC answer within {}", spelled(*after)))
            .then(format!("check that the process is not stopped and that this is the profiler's port; {START}")),
        CaptureError::NotGrpc { said } => not_grpc(address, said.as_deref()),
        CaptureError::NoProfiler => about(format!("the gRPC server at {address} cannot record profiles"))
            .then("it does not offer the service tensorflow.ProfilerService")
            .then(format!("check the port; {START}")),
        CaptureError::Busy { said } => about(format!("another profile is being recorded at {address}"))
            .then(format!("it said: {}", quoted(said)))
            .then(
                "a process records one profile at a time: wait for the other one (a capture, a TensorBoard callback with \
                 profile_batch, a trace started in the program), with --wait 60s for example",
            ),
        CaptureError::Unavailable { said } => about(format!("the server at {address} is not ready"))
            .then(format!("it said: {}", quoted(said)))
            .then("try again; --wait 60s gives it more time"),
        CaptureError::Empty => about(format!("{address} recorded nothing"))
            .then(format!("the trace of {} is empty", spelled(taker.duration)))
            .then(
                "check that the loop is running and not blocked; record longer with --duration 10s, wait for steps with \
                 --until-steady, or record more detail with --host-level 3 --python-level 1",
            ),
        CaptureError::NotSent { there } => about(format!("{address} did not send its profile"))
            .then("the answer is empty; older servers write profiles to their own disk")
            .then(format!(
                "look for {} on that machine and run `stepscope report` on it, or record with a newer TensorFlow \
                 or JAX",
                there.display()
            )),
        CaptureError::TooLarge { found, limit } => {
            about(format!("the profile of {address} is larger than {}", bytes(*limit as f64)))
                .then(found.map_or("its size is unknown".to_owned(), |found| format!("found {}", bytes(found as f64))))
                .then("use a shorter --duration or a lower --host-level, or allow more with --max-size")
        }
        CaptureError::TimedOut { after } => about(format!("{address} sent no profile in time"))
            .then(format!("waited {}", spelled(*after)))
            .then(
                "large profiles take long to collect: use a shorter --duration or a lower --host-level, or allow \
                 more time with --timeout 15m",
            ),
        CaptureError::Died { after, detail } => about(format!("{} disappeared during the capture", named(address)))
            .then(format!("the connection broke after {}: {}", spelled(*after), quoted(detail)))
            .then("check the log of the process for the reason, then capture again; nothing of this process was kept"),
        CaptureError::Server { code, said } => about(format!("{address} could not record"))
            .then(format!("it answered {code}: {}", quoted(said)))
            .then("check the log of the process, or retry with a lower --host-level and --python-level 0"),
        CaptureError::Interrupted => interrupted(),
    }
}

/// A process by the name that its cluster gives it, if there is one.
fn named(address: &Address) -> String {
    address.name.as_ref().map_or_else(|| address.to_string(), |name| format!("{name} ({address})"))
}

fn not_grpc(address: &Address, said: Option<&str>) -> Problem {
    let problem = Problem::new(Cause::Nothing, format!("no profiler server is listening at {address}"));
    match said {
        Some(line) if line.starts_with("HTTP/") => {
            problem.then(format!("found a web server that answered `{}`", printable(line))).then(format!(
                "give the profiler's port, not the port of a web page such as TensorBoard; {START}"
            ))
        }
        Some(line) => problem
            .then(format!("found another service that answered `{}`", printable(line)))
            .then(format!("check the port; {START}")),
        None => {
            problem.then("the service there does not speak gRPC").then(format!("check the port; {START}"))
        }
    }
}

/// The log directory cannot be written to.
pub(super) fn unwritable(logdir: &Path, error: &std::io::Error) -> Problem {
    Problem::new(Cause::Nothing, format!("cannot write the session below {}", logdir.display()))
        .then(error.to_string())
        .then("set --logdir to a writable directory with enough free space")
}
