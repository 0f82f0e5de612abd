//! What a finding's file declares: its id, what it is about, its check, its thresholds and its documentation.
//!
//! [`crate::rules`] has one file per finding. The file's `//!` comment is its documentation: `docs/findings.md` and
//! `stepscope explain` are made of it.

mod sections;

pub use sections::{Doc, Section};

use stepscope_analyze::curves::RunCurves;

use crate::facts::Facts;
use crate::finding::Finding;
use crate::runs::Course;

/// A finding that stepscope knows.
#[derive(Debug)]
pub struct Rule {
    /// The public id. An id never changes its meaning.
    pub id: &'static str,
    /// What it is about.
    pub about: About,
    /// The view that shows more: `stepscope VIEW PATH`.
    pub view: &'static str,
    /// What it judges, and how: reports at most one finding.
    pub check: Check,
    /// The limits that the check uses, with their reasons. The documentation cites them as `{NAME}`.
    pub thresholds: &'static [Threshold],
    /// The `//!` lines of the rule's file, see [`Rule::doc`].
    pub source: &'static str,
}

/// What a rule judges.
#[derive(Copy, Clone, Debug)]
pub enum Check {
    /// A profile.
    Profile(fn(&Facts) -> Option<Finding>),
    /// The curves that a run logged, and how its pace changed.
    Run(fn(&RunCurves, &Course) -> Option<Finding>),
}

/// What a finding is about, which decides its place in the list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// How far the recording can be trusted. Such doubts follow the answer: it holds as far as they allow. Of equally
    /// severe ones, the lowest rank leads.
    Trust {
        /// How early it comes among findings about trust.
        rank: u8,
    },
    /// The figure that this kind of program is run for. It leads, whatever else is found.
    Goal,
    /// Many small things that a loop does in every step.
    Habits,
    /// Any other cause.
    Cause,
    /// What the curves of a run show. Of equally severe ones, the lowest rank leads.
    Run {
        /// How early it comes among findings about a run.
        rank: u8,
    },
}

impl About {
    /// Its public name.
    pub fn key(self) -> &'static str {
        match self {
            About::Trust { .. } => "trust",
            About::Goal => "goal",
            About::Habits => "habits",
            About::Cause => "cause",
            About::Run { .. } => "run",
        }
    }

    /// How early it comes among equal findings. What a loop does in every step is the better start.
    pub(crate) fn rank(self) -> u8 {
        match self {
            About::Trust { rank } | About::Run { rank } => rank,
            About::Habits => 0,
            About::Goal | About::Cause => 1,
        }
    }
}

impl Rule {
    /// Does it say that the recording cannot be trusted?
    pub fn is_about_trust(&self) -> bool {
        matches!(self.about, About::Trust { .. })
    }

    /// The words of the command that shows more: `hlo ops` for the view `hlo_ops`.
    pub fn command(&self) -> String {
        self.view.replace('_', " ")
    }

    /// The id as a title: `Input-bound`.
    pub fn title(&self) -> String {
        let words = if self.id.ends_with("-bound") { self.id.to_owned() } else { self.id.replace('-', " ") };
        let mut letters = words.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    }

    /// Its documentation, with the values of the thresholds filled in.
    pub fn doc(&self) -> Doc {
        Doc::parse(self.source, self.thresholds)
    }
}

/// A limit of a rule.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The constant's name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What the value counts.
    pub unit: Unit,
    /// Why this value.
    pub reason: &'static str,
}

/// What a threshold counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share, 0 to 1, shown as per cent.
    Share,
    /// A count or a ratio.
    Number,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
}

impl Threshold {
    /// The value as people write it: `20 %`, `10 µs`, `1.1`.
    pub fn text(&self) -> String {
        match self.unit {
            // Shares are written in steps of a tenth of a per cent; what rounding leaves beyond is not meant.
            Unit::Share => format!("{} %", (self.value * 1e3).round() / 10.0),
            Unit::Number => self.value.to_string(),
            Unit::Microseconds => format!("{} µs", self.value),
            Unit::Milliseconds => format!("{} ms", self.value),
        }
    }
}

/// Declares constants with their reasons, and lists them in `THRESHOLDS`. Limits of the analyses that a finding rests on are
/// named here too, so that its documentation can cite them.
macro_rules! thresholds {
    ($($(#[doc = $reason:literal])+ $name:ident: $unit:ident = $value:expr;)+) => {
        $($(#[doc = $reason])+ pub const $name: f64 = $value;)+

        /// All of the above, for the documentation.
        pub const THRESHOLDS: &[$crate::rule::Threshold] = &[$($crate::rule::Threshold {
            name: stringify!($name),
            value: $name,
            unit: $crate::rule::Unit::$unit,
            reason: concat!($($reason),+),
        }),+];
    };
}

/// The `//!` lines at the top of a file beside this one. Only they end up in the program.
macro_rules! doc_of {
    ($file:literal) => {{
        const FILE: &[u8] = include_bytes!($file);
        const LENGTH: usize = $crate::rule::head_length(FILE);
        const HEAD: [u8; LENGTH] = $crate::rule::head(FILE);
        match std::str::from_utf8(&HEAD) {
            Ok(text) => text,
            Err(_) => "",
        }
    }};
}

pub(crate) use {doc_of, thresholds};

/// How many bytes at the start of a source are lines that begin with `//!`.
pub(crate) const fn head_length(source: &[u8]) -> usize {
    let mut at = 0;
    while at + 2 < source.len() && source[at] == b'/' && source[at + 1] == b'/' && source[at + 2] == b'!' {
        while at < source.len() && source[at] != b'\n' {
            at += 1;
        }
        at += 1;
    }
    if at < source.len() { at } else { source.len() }
}

/// The first bytes of a source.
pub(crate) const fn head<const LENGTH: usize>(source: &[u8]) -> [u8; LENGTH] {
    let mut copy = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        copy[at] = source[at];
        at += 1;
    }
    copy
}
