//! Lets two programs take turns in short windows of steps: `stepscope gate --paired`.
//!
//! Each program runs in a process group of its own, and reports to a socket at the end of each step (see
//! `turns/stepscope_turns.py`, which the binary carries along and the Python package has as `stepscope.turns`): by the hook
//! that `run` puts into programs, or by a line in the script. One of them runs; the other one is stopped as a whole at a
//! step boundary, with its threads and loader processes. What the steps took is returned as plain values; what follows from
//! it is decided elsewhere.

mod program;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::bench::Stop;
use crate::run::inject::{Injection, Purpose};
use program::Program;

/// The module that programs report with, and the name that it is imported by.
pub const MODULE: (&str, &str) = ("stepscope_turns.py", include_str!("turns/stepscope_turns.py"));

/// One program.
#[derive(Clone, Debug)]
pub struct Side {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The folder that it runs in; `None` for the current one.
    pub folder: Option<PathBuf>,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Both programs.
    pub sides: [Side; 2],
    /// Steps that do not count before the first turn.
    pub warm_up: usize,
    /// How long a program may take until it has warmed up, and for a turn.
    pub patience: Duration,
    /// Ends it early.
    pub stop: Stop,
}

/// One step as the program measured it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Step {
    /// Wall time in milliseconds.
    pub wall_ms: f64,
    /// Processor time of the process in milliseconds.
    pub cpu_ms: f64,
    /// Instructions of the process; `None` where the kernel does not let it count.
    pub instructions: Option<f64>,
}

/// Why programs cannot take turns.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TurnsError {
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program ended without reporting a step.
    #[error("it ended without reporting a step")]
    NoSteps,
    /// A program failed.
    #[error("it failed: {0}")]
    Failed(String),
    /// A program did not report for too long.
    #[error("no step for {0:?}")]
    Late(Duration),
    /// Several processes of a program report steps: they wait for each other, so they cannot be stopped one by one.
    #[error("several of its processes report steps")]
    SeveralRanks,
    /// The user ended it.
    #[error("it was ended early")]
    Stopped,
    /// The system refused something that every measurement needs.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Two programs that take turns. They end when this is dropped.
#[derive(Debug)]
pub struct Turns {
    plan: Plan,
    folder: tempfile::TempDir,
    /// Finds the steps of programs that do not report them; without it, they have to.
    injection: Option<Injection>,
    programs: [Program; 2],
    /// Steps per turn.
    steps: usize,
}

/// A turn lasts about this long: short against what a machine's load needs to change, long against the switch.
const TURN: Duration = Duration::from_millis(120);
/// Most steps per turn.
const MOST_STEPS: usize = 20;
/// Fewer steps per turn would make the first step after a switch too large a part of it.
const LEAST_STEPS: usize = 3;

impl Turns {
    /// Starts both programs and waits until they have warmed up. `Err` names the side that cannot take turns.
    pub fn start(plan: &Plan) -> Result<Turns, (usize, TurnsError)> {
        let folder = tempfile::Builder::new()
            .prefix("stepscope-turns-")
            .tempdir()
            .map_err(|error| (0, TurnsError::System(error)))?;
        std::fs::write(folder.path().join(MODULE.0), MODULE.1).map_err(|error| (0, error.into()))?;
        let injection = Injection::new(&folder.path().join("unused"), Purpose::Turns).ok();
        let [base, new] = &plan.sides;
        let start = |place: usize, side: &Side| {
            Program::start(side, place, (folder.path(), injection.as_ref()), plan.warm_up)
                .map_err(|error| (place, error))
        };
        let mut programs = [start(0, base)?, start(1, new)?];
        // Both warm up at the same time; who is ready first is stopped.
        for (place, program) in programs.iter_mut().enumerate() {
            program.ready(plan).map_err(|error| (place, error))?;
        }
        let mut turns = Turns { plan: plan.clone(), folder, injection, programs, steps: LEAST_STEPS };
        turns.choose_length()?;
        Ok(turns)
    }

    /// Steps per turn, from a first turn of each that does not count.
    fn choose_length(&mut self) -> Result<(), (usize, TurnsError)> {
        let mut longest = Duration::ZERO;
        for place in 0..2 {
            let begun = Instant::now();
            let steps = self.turn(place)?.map_or(1, |steps| steps.len().max(1));
            longest = longest.max(begun.elapsed() / steps as u32);
        }
        let fit = TURN.as_secs_f64() / longest.as_secs_f64().max(1e-6);
        self.steps = (fit.round() as usize).clamp(LEAST_STEPS, MOST_STEPS);
        Ok(())
    }

    /// Steps per turn.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Ends both programs and starts them again: two processes of one program differ a little in all of their steps.
    pub fn restart(&mut self) -> Result<(), (usize, TurnsError)> {
        for place in 0..2 {
            self.start_again(place)?;
        }
        for (place, program) in self.programs.iter_mut().enumerate() {
            program.ready(&self.plan).map_err(|error| (place, error))?;
        }
        Ok(())
    }

    fn start_again(&mut self, place: usize) -> Result<(), (usize, TurnsError)> {
        let (Some(program), Some(side)) = (self.programs.get_mut(place), self.plan.sides.get(place)) else {
            return Ok(());
        };
        let inside = (self.folder.path(), self.injection.as_ref());
        let started = Program::start(side, place, inside, self.plan.warm_up);
        *program = started.map_err(|error| (place, error))?;
        Ok(())
    }

    /// One turn of each program, `first` (0 or 1) first, in the order of the sides; `None` where one of them ended in its
    /// turn and was started again.
    pub fn pair(&mut self, first: usize) -> Result<Option<[Vec<Step>; 2]>, (usize, TurnsError)> {
        let first = first.min(1);
        let Some(one) = self.turn(first)? else { return Ok(None) };
        let Some(other) = self.turn(1 - first)? else { return Ok(None) };
        Ok(Some(if first == 0 { [one, other] } else { [other, one] }))
    }

    fn turn(&mut self, place: usize) -> Result<Option<Vec<Step>>, (usize, TurnsError)> {
        let at_side = |error| (place, error);
        let Some(program) = self.programs.get_mut(place) else { return Ok(None) };
        let done = program.turn(self.steps, &self.plan).map_err(at_side)?;
        if done.is_none() {
            // It has run all of its steps: once more, from the start.
            self.start_again(place)?;
            if let Some(program) = self.programs.get_mut(place) {
                program.ready(&self.plan).map_err(at_side)?;
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
