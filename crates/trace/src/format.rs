//! What a format of recordings is: its name, what it delivers, and what its files have to do with others beside them. Each
//! reader declares one; nothing else knows a format by its name.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a recording shows, the most informative first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivers {
    /// What ran when.
    Timeline,
    /// What ran when in single runs of a program, one file each.
    Runs,
    /// Who holds memory, without what ran. Completes a timeline in the same folder.
    Memory,
    /// Hardware counters of single kernels. They complete a timeline in the same folder.
    Counters,
    /// Samples of devices, taken by a monitor. They complete a timeline in the same folder.
    Samples,
    /// Samples of a whole run, which belong to every profile below its folder.
    RunSamples,
}

impl Delivers {
    /// Its public name.
    pub fn key(self) -> &'static str {
        match self {
            Delivers::Timeline => "timeline",
            Delivers::Runs => "runs",
            Delivers::Memory => "memory",
            Delivers::Counters => "counters",
            Delivers::Samples => "samples",
            Delivers::RunSamples => "run-samples",
        }
    }
}

/// A format of recordings.
#[derive(Debug)]
pub struct Format {
    /// Its name in `info` and in JSON.
    pub name: &'static str,
    /// What a person calls such a file.
    pub title: &'static str,
    /// What it delivers.
    pub delivers: Delivers,
    /// Endings of file names that say nothing about the host.
    pub endings: &'static [&'static str],
    /// If the same host was recorded in one of these too, a file of this format is a copy.
    pub copies: &'static [&'static Format],
    /// Whether one recording is often written in several forms of this format, side by side.
    pub several_forms: bool,
    /// Beginnings of file names that do not name the host, if there is only one.
    pub nameless: &'static [&'static str],
    /// Names that a recorder only numbers: files that differ in that number are separate runs.
    pub numbered: &'static [&'static str],
}

impl Format {
    /// A format whose files have nothing to do with others.
    pub const fn new(name: &'static str, title: &'static str, delivers: Delivers) -> Format {
        Format {
            name,
            title,
            delivers,
            endings: &[],
            copies: &[],
            several_forms: false,
            nameless: &[],
            numbered: &[],
        }
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

/// By name.
impl Serialize for Format {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
