//! What went wrong with a capture, and what to do about it: each reason in its own words.

use std::time::Duration;

use stepscope_capture::grpc::{Address, AddressError, CaptureError};
use stepscope_render::format::{bytes, duration_ms, printable};
use stepscope_session::{Exit, Problem};

use super::take::Taker;

/// How a process comes to have a server.
const START: &str = "start a profiler server in the training program before its loop, with \
                     tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(9999), and give that port";

/// Reads an address from the command line.
pub(super) fn address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error| match error {
        AddressError::NoPort(_) => "give host and port, such as localhost:6009 or [::1]:6009".to_owned(),
        AddressError::BadPort(port) => format!("`{port}` is no port; give for example localhost:6009"),
        AddressError::NoHost(_) => "give a host's name or address before the port".to_owned(),
    })
}

/// A length of time as it was given: `10 s`, `400 ms`, `2 min`.
pub(super) fn spelled(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (0, ms) => format!("{ms} ms"),
        (seconds, 0) if seconds >= 120 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        (seconds, 0) => format!("{seconds} s"),
        _ => duration_ms(time.as_secs_f64() * 1e3),
    }
}

/// Why it is tried again, in a few words.
pub(super) fn reason(error: &CaptureError) -> &'static str {
    match error {
        CaptureError::Refused => "nothing listens there yet",
        CaptureError::Unreachable { .. } => "cannot be reached yet",
        CaptureError::Busy { .. } => "busy with another profile",
        _ => "not ready yet",
    }
}

/// The user ended it.
pub(super) fn interrupted() -> Problem {
    Problem::new(Exit::Nothing, "the capture was interrupted")
        .then("nothing was kept")
        .then("run it again and let it end; --duration is how long it records")
}

/// Why one process gave no profile.
pub(super) fn problem(address: &Address, error: &CaptureError, taker: &Taker<'_>) -> Problem {
    let about = |what: String| Problem::new(Exit::Nothing, what);
    let quoted = |said: &str| printable(said.trim());
    match error {
        CaptureError::NoSuchHost { detail } => about(format!("there is no host `{}`", address.host))
            .then(quoted(detail))
            .then("check the name, or give the machine's IP address"),
        CaptureError::Refused => about(format!("nothing listens at {address}"))
            .then(format!("the connection was refused for {}", spelled(taker.wait)))
            .then(format!("{START}; --wait 60s gives it more time to come up")),
        CaptureError::Unreachable { detail } => about(format!("{address} cannot be reached")).then(quoted(detail)).then(
            format!(
                "check that the machine is up and no firewall is in the way; where only ssh gets through, run \
                 `ssh -L {port}:localhost:{port} {host}` and capture localhost:{port}",
                port = address.port,
                host = address.host
            ),
        ),
        CaptureError::Silent { after } => about(format!("{address} takes connections and does not answer"))
            .then(format!("found no gRPC answer within {}", spelled(*after)))
            .then(format!("check that the process is not stopped and that this is the profiler's port; {START}")),
        CaptureError::NotGrpc { said } => not_grpc(address, said.as_deref()),
        CaptureError::NoProfiler => about(format!("the gRPC server at {address} records no profiles"))
            .then("found no service tensorflow.ProfilerService there")
            .then(format!("check the port; {START}")),
        CaptureError::Busy { said } => about(format!("another profile is being recorded at {address}"))
            .then(format!("it said: {}", quoted(said)))
            .then(
                "a process records one profile at a time: wait for the other (a capture, a TensorBoard callback with \
                 profile_batch, a trace started in the program), with --wait 60s for example",
            ),
        CaptureError::Unavailable { said } => about(format!("the server at {address} is not ready"))
            .then(format!("it said: {}", quoted(said)))
            .then("try again; --wait 60s gives it more time"),
        CaptureError::Empty => about(format!("{address} recorded nothing"))
            .then(format!("found an empty trace of {}", spelled(taker.duration)))
            .then(
                "check that the loop is running, not blocked; record longer with --duration 10s, wait for it with \
                 --until-steady, or look closer with --host-level 3 --python-level 1",
            ),
        CaptureError::NotSent { there } => about(format!("{address} did not send its profile"))
            .then("found an empty answer, as older servers give that write profiles to their own disk")
            .then(format!(
                "look for {} on that machine and run `stepscope report` on it, or record with a newer TensorFlow \
                 or JAX",
                there.display()
            )),
        CaptureError::TooLarge { found, limit } => {
            about(format!("the profile of {address} is larger than {}", bytes(*limit as f64)))
                .then(found.map_or("found no end of it".to_owned(), |found| format!("found {}", bytes(found as f64))))
                .then("record a shorter --duration or a lower --host-level, or allow more with --max-size")
        }
        CaptureError::TimedOut { after } => about(format!("{address} sent no profile in time"))
            .then(format!("waited {}", spelled(*after)))
            .then(
                "large profiles take long to collect: record a shorter --duration or a lower --host-level, or allow \
                 more with --timeout 15m",
            ),
        CaptureError::Died { after, detail } => about(format!("{address} went away during the capture"))
            .then(format!("the connection broke after {}: {}", spelled(*after), quoted(detail)))
            .then("look in the process's own log for why it ended, then capture again; nothing of it was kept"),
        CaptureError::Server { code, said } => about(format!("{address} could not record"))
            .then(format!("it answered {code}: {}", quoted(said)))
            .then("look in the process's own log, or try again with a lower --host-level and --python-level 0"),
        CaptureError::Interrupted => interrupted(),
    }
}

fn not_grpc(address: &Address, said: Option<&str>) -> Problem {
    let problem = Problem::new(Exit::Nothing, format!("no profiler server listens at {address}"));
    match said {
        Some(line) if line.starts_with("HTTP/") => problem
            .then(format!("found a web server there, which said `{}`", printable(line)))
            .then(format!("give the profiler's port, not that of a page such as TensorBoard; {START}")),
        Some(line) => problem
            .then(format!("found something else there, which said `{}`", printable(line)))
            .then(format!("check the port; {START}")),
        None => problem
            .then("found something there that does not speak gRPC")
            .then(format!("check the port; {START}")),
    }
}

/// The log directory cannot be written to.
pub(super) fn unwritable(logdir: &std::path::Path, error: &std::io::Error) -> Problem {
    Problem::new(Exit::Nothing, format!("cannot write the session below {}", logdir.display()))
        .then(error.to_string())
        .then("name a directory that you may write to, on a disk with room, after --logdir")
}
