//! The server on a pair of streams: lines in, lines out. One thread reads, so that a cancellation is heard at any time;
//! another one works, one call at a time, so that memory stays that of one question.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Map, Value};

use crate::failed::Stop;
use crate::lines::{self, LONGEST, Line};
use crate::message::{self, BUSY, Fault, Message, Request};
use crate::server::Server;

/// Most calls that wait.
const WAITING: usize = 64;

/// Serves until the input ends, then finishes the calls that wait.
pub fn serve(server: &Server, mut input: impl BufRead, output: impl Write + Send) -> io::Result<()> {
    let (queue, out) = (Queue::default(), Out(Mutex::new((output, None))));
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("tools".to_owned());
        worker.spawn_scoped(scope, || {
            while let Some((request, stop)) = queue.next() {
                if let Some(answer) = server.answer_to(&request, &stop) {
                    out.send(&answer);
                }
                queue.finished();
            }
        })?;
        let read = read_all(server, &mut input, &queue, &out);
        queue.close();
        read
    })?;
    out.failed().map_or(Ok(()), Err)
}

fn read_all(
    server: &Server,
    input: &mut impl BufRead,
    queue: &Queue,
    out: &Out<impl Write>,
) -> io::Result<()> {
    while !out.is_closed() {
        let line = match lines::next(input)? {
            Line::End => return Ok(()),
            Line::TooLong => {
                out.send(&message::too_long(LONGEST));
                continue;
            }
            Line::Text(line) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Line::Text(line) => line,
        };
        match message::parse(&line) {
            Err(answer) => out.send(&answer),
            Ok(Message::Answer) => {}
            Ok(Message::Notification(method, params)) if method == "notifications/cancelled" => {
                queue.cancel(&params);
            }
            Ok(Message::Notification(..)) => {}
            Ok(Message::Request(request)) if request.method == "tools/call" => {
                if let Err(request) = queue.add(request) {
                    let fault = Fault::new(BUSY, "too many calls wait; call again when one is answered");
                    out.send(&message::failed(&request.id, &fault));
                }
            }
            Ok(Message::Request(request)) => {
                server.answer_to(&request, &Stop::default()).iter().for_each(|answer| out.send(answer));
            }
        }
    }
    Ok(())
}

/// Calls that wait, and the one under way.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Request>,
    running: Option<(Value, Stop)>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, or gives it back if too many wait.
    fn add(&self, request: Request) -> Result<(), Request> {
        let mut state = self.lock();
        if state.waiting.len() >= WAITING {
            return Err(request);
        }
        state.waiting.push_back(request);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for the next call; `None` if there will be none.
    fn next(&self) -> Option<(Request, Stop)> {
        let mut state = self.lock();
        loop {
            if let Some(request) = state.waiting.pop_front() {
                let stop = Stop::default();
                state.running = Some((request.id.clone(), stop.clone()));
                return Some((request, stop));
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finished(&self) {
        self.lock().running = None;
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Forgets a call that waits, and stops the one under way.
    fn cancel(&self, params: &Map<String, Value>) {
        let Some(id) = params.get("requestId") else { return };
        let mut state = self.lock();
        state.waiting.retain(|request| request.id != *id);
        if let Some((_, stop)) = state.running.as_ref().filter(|(running, _)| running == id) {
            stop.set();
        }
    }
}

/// The output, and why it failed.
#[derive(Debug)]
struct Out<W>(Mutex<(W, Option<io::Error>)>);

impl<W: Write> Out<W> {
    fn send(&self, answer: &Value) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if out.1.is_none() {
            let written = writeln!(out.0, "{answer}").and_then(|()| out.0.flush());
            out.1 = written.err();
        }
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.is_some()
    }

    fn failed(self) -> Option<io::Error> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(id: u64) -> Request {
        Request { id: id.into(), method: "tools/call".to_owned(), params: Map::new() }
    }

    #[test]
    fn a_cancelled_call_is_forgotten_or_stopped() {
        let queue = Queue::default();
        for id in 0..3 {
            queue.add(request(id)).unwrap();
        }
        let (first, stop) = queue.next().unwrap();
        let cancel = |id: u64| queue.cancel(json!({"requestId": id}).as_object().unwrap());
        cancel(1);
        assert!(!stop.is_set(), "another one was cancelled");
        cancel(0);
        assert!(first.id == 0 && stop.is_set());
        queue.finished();
        queue.close();
        assert_eq!(queue.next().unwrap().0.id, 2);
        assert!(queue.next().is_none());
    }

    #[test]
    fn only_so_many_calls_wait() {
        let queue = Queue::default();
        assert!((0..WAITING as u64).all(|id| queue.add(request(id)).is_ok()));
        assert_eq!(queue.add(request(99)).unwrap_err().id, 99);
    }

    #[test]
    fn nobody_reads_and_the_server_ends() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(&[folder.path().to_owned()], "0").unwrap();
        let pings = "{\"id\": 1, \"method\": \"ping\"}\n".repeat(3);
        let error = serve(&server, pings.as_bytes(), Closed).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
