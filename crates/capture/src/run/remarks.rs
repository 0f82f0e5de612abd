//! Lines of a program's output that may be warnings. They are kept with their number, without their meaning: equal lines
//! once, and bounded, whatever a program prints.

/// Number of different lines that are kept.
const MOST: usize = 200;
/// Words of which a warning has at least one, in lower case.
const WORDS: &[&str] = &[
    "warn",
    "retracing",
    "gpu",
    "cuda",
    "cuinit",
    "falling back",
    "ran out",
    "memory",
    "exhausted",
    "slow",
    "config.",
    "constant folding",
    "worker",
    "timeout",
];

/// A line that may be a warning.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// The line, and the one after it.
    pub text: String,
    /// How often it came; lines that differ in digits alone are the same.
    pub count: u64,
    /// Seconds from the start to the first one.
    pub first_s: f64,
    shape: String,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    all: Vec<Remark>,
    /// The one that the next line continues.
    open: Option<usize>,
}

impl Remarks {
    /// Takes a line.
    pub(super) fn hear(&mut self, line: &str, at_s: f64) {
        if let Some(remark) = self.open.take().and_then(|place| self.all.get_mut(place)) {
            remark.text = format!("{}\n{line}", remark.text);
        }
        let lower = line.to_ascii_lowercase();
        if !WORDS.iter().any(|word| lower.contains(word)) {
            return;
        }
        let shape: String = lower.chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some(known) = self.all.iter_mut().find(|remark| remark.shape == shape) {
            known.count += 1;
        } else if self.all.len() < MOST {
            self.open = Some(self.all.len());
            self.all.push(Remark { text: line.to_owned(), count: 1, first_s: at_s, shape });
        }
    }

    pub(super) fn all(&self) -> &[Remark] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_once_with_the_line_after_them() {
        let mut remarks = Remarks::default();
        for (at, line) in (0..).zip([
            "step 1",
            "W0101 hit config.recompile_limit (8)",
            "   function: 'forward' (m.py:3)",
            "W0102 hit config.recompile_limit (8)",
            "step 2",
        ]) {
            remarks.hear(line, f64::from(at));
        }
        let [only] = remarks.all() else { panic!("{:?}", remarks.all()) };
        assert_eq!((only.count, only.first_s), (2, 1.0));
        assert!(only.text.ends_with("function: 'forward' (m.py:3)"), "{}", only.text);
        (0..10_000).for_each(|i| remarks.hear(&format!("warning {}", "x".repeat(i % 900)), 0.0));
        assert_eq!(remarks.all().len(), MOST);
    }
}
