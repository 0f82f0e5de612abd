//! The compiled programs that a trace carries: where their bytes are, and under which number events refer to them.

use rustc_hash::FxHashMap;
use stepscope_hlo::Module;
use stepscope_trace::{Trace, Value};

use super::ProgramKey;

/// A program in a trace, not read yet.
#[derive(Copy, Clone, Debug)]
pub struct ModuleBytes<'t> {
    /// The number under which events refer to it.
    pub program_id: u64,
    /// Its name, without the number.
    pub name: &'t str,
    /// An `HloProto`.
    pub bytes: &'t [u8],
}

impl ModuleBytes<'_> {
    /// What results call it.
    pub fn key(&self) -> ProgramKey {
        ProgramKey { name: self.name.to_owned(), id: Some(self.program_id) }
    }
}

/// All programs of a trace, in the order of the file; of two with one number, the first.
pub fn modules(trace: &Trace) -> Vec<ModuleBytes<'_>> {
    let (Some(proto), number) = (trace.strings().find("Hlo Proto"), trace.strings().find("program_id"))
    else {
        return Vec::new();
    };
    let mut found: Vec<ModuleBytes<'_>> = Vec::new();
    let mut seen: FxHashMap<u64, ()> = FxHashMap::default();
    for (title, args) in trace.attachments() {
        let title = trace.str(title);
        let (mut bytes, mut program_id) = (None, None);
        args.visit(|key, value| match value {
            Value::Bytes(content) if key == proto => bytes = Some(content),
            value if Some(key) == number => program_id = value.as_u64(),
            _ => {}
        });
        let Some(bytes) = bytes else { continue };
        let (name, in_title) = split_title(title);
        let program_id = program_id.or(in_title).unwrap_or(found.len() as u64);
        let name = if name.is_empty() { Module::name_in(bytes).unwrap_or_default() } else { name };
        if seen.insert(program_id, ()).is_none() {
            found.push(ModuleBytes { program_id, name, bytes });
        }
    }
    found
}

/// Name and number in `jit_step(54)`. Numbers of TPUs fill all 64 bits, and may be written with a sign.
fn split_title(title: &str) -> (&str, Option<u64>) {
    let inside = title.strip_suffix(')').and_then(|title| title.rsplit_once('('));
    let number =
        |text: &str| text.parse::<u64>().ok().or_else(|| text.parse::<i64>().ok().map(|id| id as u64));
    match inside.and_then(|(name, digits)| Some((name, number(digits)?))) {
        Some((name, number)) => (name, Some(number)),
        None => (title, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_in_the_last_parentheses() {
        assert_eq!(split_title("jit_f(54)"), ("jit_f", Some(54)));
        assert_eq!(split_title("jit_f(9646411105960254074)"), ("jit_f", Some(9_646_411_105_960_254_074)));
        assert_eq!(split_title("f(x)(-1)"), ("f(x)", Some(u64::MAX)));
        assert_eq!(split_title("f(x)"), ("f(x)", None));
        assert_eq!(split_title(""), ("", None));
    }
}
