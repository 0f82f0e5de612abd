//! Where in the user's source an instruction comes from.

use crate::fields::{fields, last};
use crate::module::{Instruction, Module};
use crate::schema::frames as field;

/// Frames of a stack that are followed at most: deeper ones are recursion or damage.
const DEEPEST: usize = 200;

/// Folders whose code a user did not write.
const LIBRARIES: [&str; 4] = ["/site-packages/", "/dist-packages/", "<frozen ", "/lib/python3."];

/// What TensorFlow writes as the file of every operation, where its graph does not keep the user's: a placeholder, or the line of
/// its own code that adds operations to graphs.
const PLACEHOLDERS: [&str; 2] = ["dummy_file_name", "/tensorflow/python/"];

/// Source files, functions, places in them, and frames that call each other. Numbers start at 1; 0 means none.
#[derive(Clone, Debug, Default)]
pub struct Frames<'a> {
    files: Vec<&'a str>,
    functions: Vec<&'a str>,
    /// File, function, line.
    locations: Vec<(i64, i64, i64)>,
    /// Location, and the frame that called it.
    frames: Vec<(i64, i64)>,
}

/// A place in the source.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source<'a> {
    /// Path of the file.
    pub file: &'a str,
    /// Line, from 1; 0 if unknown.
    pub line: i64,
    /// The function around it; empty if unknown.
    pub function: &'a str,
}

impl Source<'_> {
    /// Whether it lies in an installed package instead of the user's own files.
    pub fn is_library(&self) -> bool {
        LIBRARIES.iter().any(|part| self.file.contains(part))
    }
}

impl std::fmt::Display for Source<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

impl<'a> Frames<'a> {
    pub(crate) fn read(message: &'a [u8]) -> Self {
        let mut found = Frames::default();
        let number = |message, field| last(message, field).map_or(0, |value| value.number());
        for (number_of_field, value) in fields(message) {
            match number_of_field {
                field::FILES => found.files.push(value.text()),
                field::FUNCTIONS => found.functions.push(value.text()),
                field::LOCATIONS => {
                    let place = value.bytes();
                    found.locations.push((number(place, 1), number(place, 2), number(place, 3)));
                }
                field::FRAMES => {
                    let frame = value.bytes();
                    found.frames.push((number(frame, 1), number(frame, 2)));
                }
                _ => {}
            }
        }
        found
    }

    /// The stack of a frame, innermost first.
    pub fn stack(&self, frame: i64) -> Vec<Source<'a>> {
        let mut stack = Vec::new();
        let mut next = frame;
        while let Some(&(location, parent)) = get(&self.frames, next) {
            if stack.len() == DEEPEST {
                break;
            }
            if let Some(&(file, function, line)) = get(&self.locations, location) {
                let file = get(&self.files, file).copied().unwrap_or_default();
                let function = get(&self.functions, function).copied().unwrap_or_default();
                stack.push(Source { file, line, function });
            }
            next = parent;
        }
        stack
    }
}

/// An entry by its number, which starts at 1.
fn get<T>(list: &[T], number: i64) -> Option<&T> {
    list.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

impl<'a> Module<'a> {
    /// The stack of an instruction, innermost first; one place where the file has only that. Empty if nothing of it is known.
    pub fn stack(&self, instruction: &Instruction<'a>) -> Vec<Source<'a>> {
        let stack = self.frames.stack(instruction.frame);
        let is_placeholder = || PLACEHOLDERS.iter().any(|part| instruction.source_file.contains(part));
        if stack.is_empty() && !instruction.source_file.is_empty() && !is_placeholder() {
            let (file, line) = (instruction.source_file, instruction.source_line);
            return vec![Source { file, line, function: "" }];
        }
        stack
    }

    /// The line of the user's program that an instruction comes from: the innermost one outside installed packages.
    pub fn source(&self, instruction: &Instruction<'a>) -> Option<Source<'a>> {
        let stack = self.stack(instruction);
        stack.iter().find(|source| !source.is_library()).or(stack.first()).copied()
    }
}
