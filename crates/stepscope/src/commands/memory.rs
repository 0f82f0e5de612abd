//! What `stepscope memory` has beyond other views: moments, what is kept, two recordings, what fits.

use clap::Args;
use stepscope_analyze::Selection;
use stepscope_analyze::memory::fit::{Fit, fit};
use stepscope_analyze::memory::{At, Memory};
use stepscope_results::Table;
use stepscope_results::views::View;
use stepscope_results::views::memory::change::{add_fit, table as change};
use stepscope_results::views::memory::{By, Question, answer, memory};
use stepscope_session::side::run_of;
use stepscope_session::{Cause, Hosts, Problem, Query, ResolvedSession};
use stepscope_trace::{Delivers, Time};

use crate::load;
use crate::output::Terminal;
use crate::quantity;

/// Options of this view alone.
#[derive(Clone, Debug, Args)]
pub(crate) struct MemoryOptions {
    /// Show what was held at this moment: peak, oom (the last request that failed), a time such as 1.5s, or step:N.
    #[arg(long, value_name = "MOMENT", value_parser = moment, conflicts_with = "leaks")]
    at: Option<At>,
    /// Show what is kept from step to step, by line, instead of what is held at a moment (schema stepscope.memory-kept.v1).
    #[arg(long)]
    leaks: bool,
    /// Say what fits into this much memory, or into what the recording says there is. Needs two recordings with different
    /// batch sizes for the largest batch.
    #[arg(long, value_name = "SIZE", num_args = 0..=1, value_parser = quantity::size)]
    fit: Option<Option<u64>>,
    /// The batch sizes of two recordings, where they do not contain them.
    #[arg(long, value_name = "A,B", value_parser = batches)]
    batch: Option<[u64; 2]>,
}

/// A moment as people write it.
fn moment(text: &str) -> Result<At, String> {
    match text.trim() {
        "peak" => Ok(At::Peak),
        "oom" => Ok(At::Oom),
        text => match text.strip_prefix("step") {
            Some(number) => number
                .trim_start_matches([':', ' ', '='])
                .parse()
                .map(At::Step)
                .map_err(|_| "give a step's number, such as step:3".to_owned()),
            None => quantity::duration(text)
                .map(|time| At::Time(Time::from_ps((time.as_secs_f64() * 1e12) as i64)))
                .map_err(|_| "give peak, oom, a time such as 1.5s, or step:3".to_owned()),
        },
    }
}

fn batches(text: &str) -> Result<[u64; 2], String> {
    let wrong = || "give two batch sizes, such as 16,32".to_owned();
    let (a, b) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|&batch| batch > 0).ok_or_else(wrong);
    Ok([number(a)?, number(b)?])
}

impl MemoryOptions {
    /// Whether the plain view answers.
    pub(crate) fn is_plain(&self, wanted: &Query) -> bool {
        self.at.is_none() && !self.leaks && self.fit.is_none() && wanted.paths.len() != 2
    }

    /// The table, and the problems of the files.
    pub(crate) fn table(
        &self,
        view: &View,
        wanted: &Query,
        by: Option<&str>,
        selection: Selection,
        terminal: &Terminal,
    ) -> Result<(Table, Vec<Problem>), Problem> {
        if let [base, new] = &wanted.paths[..]
            && !are_hosts(wanted)
        {
            let side = |path: &std::path::PathBuf| Query { paths: vec![path.clone()], ..wanted.clone() };
            return self.changed([side(base), side(new)], terminal);
        }
        let by = by.and_then(grouping);
        let question = Question { by, at: self.at.unwrap_or(At::Peak), kept: self.leaks, room: self.fit };
        load::hosts(wanted, selection, terminal, |hosts| hosts.table(view, |hosts| answer(hosts, question)))
    }

    fn changed(&self, sides: [Query; 2], terminal: &Terminal) -> Result<(Table, Vec<Problem>), Problem> {
        if self.leaks || self.at.is_some_and(|at| at != At::Peak) {
            let what = "two recordings are compared at their peaks";
            return Err(Problem::new(Cause::Usage, what).then("give one recording with --at or --leaks"));
        }
        let [(base, base_batch, mut problems), (new, new_batch, more)] =
            [self.side(&sides[0], terminal)?, self.side(&sides[1], terminal)?];
        problems.extend(more);
        let mut table = change(&base, &new);
        if let Some(capacity) = self.fit {
            let known = base_batch.zip(new_batch).map(|(a, b)| [a, b]);
            let result: Result<Fit, &'static str> = match self.batch.or(known) {
                Some(batches) => fit(&base, &new, batches, capacity),
                None => Err("the recordings do not say their batch sizes; give them with --batch 16,32"),
            };
            add_fit(&mut table, &result);
        }
        Ok((table, problems))
    }

    /// One recording: its memory and, if needed, its batch size.
    fn side(
        &self,
        wanted: &Query,
        terminal: &Terminal,
    ) -> Result<(Memory, Option<u64>, Vec<Problem>), Problem> {
        let needed = self.fit.is_some() && self.batch.is_none();
        let read = |hosts: &Hosts<'_>| {
            let memory = hosts.over_whole_recording(memory)?;
            let batch = if needed { run_of(hosts, "")?.setting.batch_size } else { None };
            Ok((memory, batch))
        };
        let ((memory, batch), problems) = load::hosts(wanted, Selection::default(), terminal, read)?;
        Ok((memory, batch, problems))
    }
}

/// Whether two paths are hosts of one recording.
fn are_hosts(wanted: &Query) -> bool {
    let timeline = |format: &stepscope_trace::Format| format.delivers == Delivers::Timeline;
    ResolvedSession::of(wanted, &|_| {}).is_ok_and(|chosen| {
        let below = |path: &std::path::PathBuf| chosen.files.iter().any(|file| file.path.starts_with(path));
        chosen.files.iter().all(|file| timeline(file.format)) && wanted.paths.iter().all(below)
    })
}

fn grouping(by: &str) -> Option<By> {
    Some(match by {
        "line" => By::Line,
        "op" => By::Op,
        "role" => By::Role,
        "block" => By::Block,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_people_write_them() {
        assert_eq!((moment("peak"), moment("oom")), (Ok(At::Peak), Ok(At::Oom)));
        assert_eq!(
            (moment("step:3"), moment("step 3"), moment("step3")),
            (Ok(At::Step(3)), Ok(At::Step(3)), Ok(At::Step(3)))
        );
        assert_eq!(moment("1.5ms"), Ok(At::Time(Time::from_ns(1_500_000))));
        assert!(moment("tomorrow").is_err() && moment("step x").is_err());
        assert_eq!(batches("16, 32"), Ok([16, 32]));
        assert!(batches("16").is_err() && batches("0,1").is_err());
    }
}
