//! How slow each host of a recording was at each step, in one byte per cell.
//!
//! A host is slow at a step by as much as its step, or its own work in it, is longer than that of the median host at the
//! same step, as a share of the median step. Hosts that run in lockstep have steps of equal length; what each does in them
//! differs all the same. The map is bounded: of many hosts the slowest are kept, and of many steps each column shows the
//! slowest of several.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stepscope_analyze::time::summary::HostSummary;
use stepscope_diagnose::statistics::median;
use stepscope_results::fleet::StepMap;

/// Rows and columns.
const HOSTS: usize = 256;
const COLUMNS: usize = 256;
/// Of a cell without a step.
const NONE: u8 = 0;
/// Of a cell as slow as the median host's; each number above or below it is a factor of 2 to the power of 1/64, about 1 %.
const EVEN: f64 = 128.0;
const PER_DOUBLING: f64 = 64.0;

/// How slow hosts were at steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Heat {
    /// The hosts that are kept, by name.
    hosts: Vec<String>,
    /// How many were not: those that differ least from the middle.
    left_out: u64,
    /// Are steps numbered by the loop? Else by their position.
    numbered: bool,
    /// The first and last step of each column.
    first: Vec<i64>,
    last: Vec<i64>,
    /// The median step of each column.
    usual_ms: Vec<f64>,
    /// Row by row.
    #[serde(serialize_with = "as_bytes", deserialize_with = "from_bytes")]
    cells: Vec<u8>,
}

/// The steps of all hosts at one place: the row of the host, and the step.
type Column = Vec<(usize, Lengths)>;
/// A step of a host: its length and the host's own work in it, in milliseconds.
type Lengths = (f64, f64);

impl Heat {
    /// Of these hosts; `None` if no two of them share a step.
    pub(crate) fn of(hosts: &[HostSummary]) -> Option<Self> {
        let with_steps: Vec<&HostSummary> =
            hosts.iter().filter(|host| !host.whole_capture && host.counted().next().is_some()).collect();
        if with_steps.len() < 2 {
            return None;
        }
        let (numbered, mut columns) = columns(&with_steps);
        // A step that one host alone has cannot be compared.
        columns.retain(|_, column| column.len() > 1);
        if columns.is_empty() {
            return None;
        }
        let mut ratios: Vec<Vec<Option<f64>>> = vec![Vec::with_capacity(columns.len()); with_steps.len()];
        let mut usual = Vec::with_capacity(columns.len());
        for column in columns.values() {
            usual.push(add_column(column, &mut ratios));
        }
        let numbers: Vec<i64> = columns.keys().copied().collect();
        let kept = slowest(&ratios);
        let per_column = numbers.len().div_ceil(COLUMNS).max(1);
        let group = |row: &Vec<Option<f64>>| row.chunks(per_column).map(cell).collect::<Vec<u8>>();
        Some(Heat {
            hosts: kept.iter().map(|&row| with_steps[row].host.clone()).collect(),
            left_out: (with_steps.len() - kept.len()) as u64,
            numbered,
            first: numbers.chunks(per_column).filter_map(|chunk| chunk.first().copied()).collect(),
            last: numbers.chunks(per_column).filter_map(|chunk| chunk.last().copied()).collect(),
            usual_ms: usual.chunks(per_column).map(|chunk| median(chunk).unwrap_or(0.0)).collect(),
            cells: kept.iter().flat_map(|&row| group(&ratios[row])).collect(),
        })
    }

    /// For the page. A map from a file may be inconsistent: what has no column is left out.
    pub(crate) fn map(&self) -> StepMap {
        let columns = self.first.len().min(self.last.len()).min(self.usual_ms.len());
        let row =
            |cells: &[u8]| -> Vec<Option<f64>> { cells.iter().take(columns).copied().map(slow).collect() };
        let rows = self.cells.chunks(self.first.len().max(1)).map(row);
        StepMap {
            hosts: self.hosts.clone(),
            left_out: self.left_out,
            numbered: self.numbered,
            first: self.first.iter().take(columns).copied().collect(),
            last: self.last.iter().take(columns).copied().collect(),
            usual_ms: self.usual_ms.iter().take(columns).copied().collect(),
            slow: rows.take(self.hosts.len()).collect(),
            ..StepMap::default()
        }
    }
}

/// The steps of all hosts by number, or by position if hosts count differently: then hardly any number is shared.
fn columns(hosts: &[&HostSummary]) -> (bool, BTreeMap<i64, Column>) {
    let mut by_number: BTreeMap<i64, Column> = BTreeMap::new();
    let mut by_place: BTreeMap<i64, Column> = BTreeMap::new();
    for (row, host) in hosts.iter().enumerate() {
        for (place, step) in host.counted().enumerate() {
            let lengths = (step.span.dur().ms(), step.own_work_ms());
            by_number.entry(step.number).or_default().push((row, lengths));
            by_place.entry(place as i64).or_default().push((row, lengths));
        }
    }
    // Half as many again as the longest host has: too many steps have no counterpart.
    let numbered = 2 * by_number.len() <= 3 * by_place.len();
    (numbered, if numbered { by_number } else { by_place })
}

/// Adds a column: how many times as long each host took as the middle one. Returns the median step.
fn add_column(column: &[(usize, Lengths)], ratios: &mut [Vec<Option<f64>>]) -> f64 {
    let middle = |of: fn(&Lengths) -> f64| {
        median(&column.iter().map(|(_, lengths)| of(lengths)).collect::<Vec<f64>>()).unwrap_or(0.0)
    };
    let (usual, usual_own) = (middle(|lengths| lengths.0), middle(|lengths| lengths.1));
    let at = ratios.first().map_or(0, Vec::len);
    ratios.iter_mut().for_each(|row| row.push(None));
    for (row, (length, own)) in column {
        let longer = (length - usual).max(own - usual_own);
        if let Some(place) = ratios.get_mut(*row).and_then(|row| row.get_mut(at)).filter(|_| usual > 0.0) {
            // A loop that repeats a number has two such steps; the slower one is shown.
            let ratio = 1.0 + longer / usual;
            *place = Some(place.map_or(ratio, |other: f64| other.max(ratio)));
        }
    }
    usual
}

/// The rows to keep, in their order: those that are slowest on average.
fn slowest(ratios: &[Vec<Option<f64>>]) -> Vec<usize> {
    let mean = |row: &Vec<Option<f64>>| {
        let known = row.iter().flatten().count().max(1) as f64;
        row.iter().flatten().sum::<f64>() / known
    };
    let mut rows: Vec<(f64, usize)> = ratios.iter().enumerate().map(|(row, it)| (mean(it), row)).collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept: Vec<usize> = rows.into_iter().take(HOSTS).map(|(_, row)| row).collect();
    kept.sort_unstable();
    kept
}

/// The slowest of several steps as a byte.
fn cell(ratios: &[Option<f64>]) -> u8 {
    const RANGE: RangeInclusive<f64> = 1.0..=255.0;
    let Some(slowest) = ratios.iter().flatten().copied().reduce(f64::max) else { return NONE };
    let number = EVEN + (PER_DOUBLING * slowest.max(f64::MIN_POSITIVE).log2()).round();
    number.clamp(*RANGE.start(), *RANGE.end()) as u8
}

/// The share by which a cell is slower than the median host.
fn slow(cell: u8) -> Option<f64> {
    let share = ((f64::from(cell) - EVEN) / PER_DOUBLING).exp2() - 1.0;
    // The scale has steps of 1 %; more digits would only look exact.
    (cell != NONE).then(|| (share * 1000.0).round() / 1000.0)
}

fn as_bytes<S: Serializer>(cells: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(cells)
}

fn from_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Cells;
    impl serde::de::Visitor<'_> for Cells {
        type Value = Vec<u8>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
            formatter.write_str("bytes")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            let fits = bytes.len() <= HOSTS * COLUMNS;
            if fits { Ok(bytes.to_vec()) } else { Err(E::invalid_length(bytes.len(), &self)) }
        }
    }
    deserializer.deserialize_bytes(Cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_about_a_percent_and_their_ends() {
        for share in [-0.5, -0.1, 0.0, 0.02, 0.18, 1.0, 2.9] {
            let read = slow(cell(&[Some(1.0 + share)])).unwrap();
            assert!((read - share).abs() < 0.012 * (1.0 + share), "{share}: {read}");
        }
        assert_eq!(slow(cell(&[])), None);
        assert_eq!(slow(cell(&[None, Some(1.0), Some(2.0)])), Some(1.0), "the slowest of several");
        assert!(slow(cell(&[Some(1e9)])).unwrap() > 2.9 && slow(cell(&[Some(-3.0)])).unwrap() < -0.7);
    }

    #[test]
    fn many_hosts_and_steps_are_bounded_and_the_slow_one_stays() {
        let columns: Vec<Column> = (0..1_000)
            .map(|step| {
                let length = |row| if row == 700 && step == 500 { 30.0 } else { 10.0 };
                (0..900).map(|row| (row, (length(row), 5.0))).collect()
            })
            .collect();
        let mut ratios = vec![Vec::new(); 900];
        let usual: Vec<f64> = columns.iter().map(|column| add_column(column, &mut ratios)).collect();
        assert!(usual.iter().all(|ms| (ms - 10.0).abs() < 1e-9));
        let kept = slowest(&ratios);
        assert!(kept.len() == HOSTS && kept.contains(&700) && kept.is_sorted());
        let row: Vec<u8> = ratios[700].chunks(4).map(cell).collect();
        assert!(row.len() == 250 && (slow(row[125]).unwrap() - 2.0).abs() < 0.03, "{:?}", slow(row[125]));
    }

    #[test]
    fn a_map_of_a_forged_file_is_cut_to_what_fits() {
        let heat = Heat {
            hosts: vec!["a".to_owned(); 3],
            left_out: 0,
            numbered: true,
            first: vec![1, 2, 3],
            last: vec![1, 2],
            usual_ms: vec![1.0; 9],
            cells: vec![200; 7],
        };
        let map = heat.map();
        assert_eq!((map.first.len(), map.slow.len(), map.slow[0].len(), map.slow[2].len()), (2, 3, 2, 1));
        let none = Heat { first: Vec::new(), ..heat };
        assert!(none.map().slow.iter().all(Vec::is_empty));
    }
}
