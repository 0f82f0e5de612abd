//! The map of ranks and steps: who is late in which step, as numbers for the page and as a small chart for text.

use serde_json::{Value, json};
use stepscope_analyze::devices::collectives::{RankWaiting, StepWaits, Waiting};

use crate::format::duration_ms;

/// Width of the chart; more steps share a column, which shows the worst of them.
const WIDEST: usize = 64;
/// Ranks in the chart; of more, the latest.
const MOST_RANKS: usize = 16;
/// A rank that is late by less than this share of the largest figure is shown as in time.
const FAINT: f64 = 0.06;

/// The map as plain numbers.
pub(super) fn member(waiting: &Waiting) -> Value {
    let rows = |of: fn(&StepWaits) -> &Vec<f64>| -> Vec<Vec<f64>> {
        let row = |rank| waiting.map.iter().filter_map(|step| of(step).get(rank).copied()).collect();
        (0..waiting.ranks.len()).map(row).collect()
    };
    json!({
        "steps": waiting.map.iter().map(|step| step.number).collect::<Vec<_>>(),
        "ranks": waiting.ranks.iter().map(|rank| &rank.name).collect::<Vec<_>>(),
        "waiting_ms": rows(|step| &step.waiting_ms),
        "late_ms": rows(|step| &step.late_ms),
    })
}

/// The chart, one line per rank below a title; nothing if nobody is late.
pub(super) fn chart(waiting: &Waiting) -> Vec<String> {
    let (Some(first), Some(last)) = (waiting.map.first(), waiting.map.last()) else { return Vec::new() };
    let largest = waiting.map.iter().flat_map(|step| &step.late_ms).copied().fold(0.0, f64::max);
    if waiting.map.len() < 2 || largest <= 0.0 {
        return Vec::new();
    }
    let mut ranks: Vec<(usize, &RankWaiting)> = waiting.ranks.iter().enumerate().collect();
    let all = ranks.len();
    ranks.sort_by(|a, b| b.1.late_ms.total_cmp(&a.1.late_ms));
    ranks.truncate(MOST_RANKS);
    ranks.sort_by_key(|(place, _)| *place);
    let which =
        if all > ranks.len() { format!(", the {MOST_RANKS} latest of {all} ranks") } else { String::new() };
    let mut lines = vec![format!(
        "Who is late in which step ({} to {}{which}; `█` is {}):",
        first.number,
        last.number,
        duration_ms(largest)
    )];
    let width = ranks.iter().map(|(_, rank)| rank.name.chars().count()).max().unwrap_or(0);
    for (place, rank) in ranks {
        let late: Vec<f64> = waiting.map.iter().filter_map(|step| step.late_ms.get(place).copied()).collect();
        lines.push(format!("  {:<width$}  {}", rank.name, cells(&late, largest)));
    }
    lines
}

/// One character per step, or per group of steps.
fn cells(late: &[f64], largest: f64) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let cell = |group: &[f64]| {
        let share = group.iter().copied().fold(0.0, f64::max) / largest;
        if share < FAINT { '·' } else { LEVELS[((share * 7.0).round() as usize).min(7)] }
    };
    late.chunks(late.len().div_ceil(WIDEST).max(1)).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(ranks: usize, steps: usize, late: impl Fn(usize, usize) -> f64) -> Waiting {
        let step = |number: usize| StepWaits {
            number: number as i64,
            waiting_ms: vec![0.0; ranks],
            late_ms: (0..ranks).map(|rank| late(rank, number)).collect(),
        };
        let rank = |place: usize| RankWaiting {
            name: format!("worker{place}"),
            late_ms: (0..steps).map(|step| late(place, step)).sum(),
            ..RankWaiting::default()
        };
        Waiting {
            ranks: (0..ranks).map(rank).collect(),
            map: (0..steps).map(step).collect(),
            ..Waiting::default()
        }
    }

    #[test]
    fn slowness_that_rotates_looks_like_stairs_and_a_straggler_like_a_bar() {
        let turns = chart(&waiting(3, 6, |rank, step| if step % 3 == rank { 20.0 } else { 0.0 }));
        assert_eq!(turns[1..], ["  worker0  █··█··", "  worker1  ·█··█·", "  worker2  ··█··█"]);
        assert!(turns[0].contains("0 to 5") && turns[0].contains("20.0 ms"), "{}", turns[0]);
        let one = chart(&waiting(2, 3, |rank, _| rank as f64 * 8.0));
        assert_eq!(one[1..], ["  worker0  ···", "  worker1  ███"]);
        assert!(chart(&waiting(2, 3, |_, _| 0.0)).is_empty(), "nobody is late");
    }

    #[test]
    fn many_steps_and_ranks_fit_and_keep_their_worst() {
        let lines =
            chart(&waiting(40, 1_000, |rank, step| if rank == 33 && step == 500 { 9.0 } else { 0.1 }));
        assert_eq!(lines.len(), 1 + MOST_RANKS);
        assert!(lines.iter().all(|line| line.chars().count() <= 100));
        let late = lines.iter().find(|line| line.contains("worker33")).map_or("", String::as_str);
        assert!(late.contains('█'), "{lines:?}");
        let map = member(&waiting(2, 3, |rank, _| rank as f64));
        assert_eq!(map["late_ms"], json!([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]));
    }
}
