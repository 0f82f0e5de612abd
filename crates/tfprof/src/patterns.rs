//! Lists of regular expressions that must match a whole text.

use regex::Regex;

/// A list of regular expressions, as given and compiled.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    given: Vec<String>,
    compiled: Vec<Regex>,
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.given == other.given
    }
}

impl Patterns {
    /// Compiles a list. The error contains the invalid expression, and why.
    pub fn new(given: Vec<String>) -> Result<Self, (String, String)> {
        let compile = |text: &String| {
            let anchored = Regex::new(&format!("^(?:{text})$"));
            anchored.map_err(|error| (text.clone(), reason(&error)))
        };
        let compiled = given.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Patterns { given, compiled })
    }

    /// The list that matches everything.
    pub fn all() -> Self {
        Self::new(vec![".*".to_owned()]).unwrap_or_default()
    }

    /// As given.
    pub fn given(&self) -> &[String] {
        &self.given
    }

    /// Whether it is the single pattern that matches everything.
    pub(crate) fn is_all(&self) -> bool {
        self.given.len() == 1 && self.given.iter().all(|text| text == ".*")
    }

    /// Whether one of them matches the whole text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.is_all() || self.compiled.iter().any(|pattern| pattern.is_match(text))
    }

    /// Each of them by itself.
    pub(crate) fn each(&self) -> &[Regex] {
        &self.compiled
    }
}

/// What is wrong with an expression, on one line.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_texts_only() {
        let patterns = Patterns::new(vec!["dense.*".into(), "a|b".into()]).unwrap();
        assert!(patterns.matches("dense1/kernel") && patterns.matches("b"));
        assert!(!patterns.matches("x/dense1") && !patterns.matches("ab"));
        assert!(!Patterns::default().matches(""));
        assert_eq!(Patterns::new(vec!["(".into()]).unwrap_err().0, "(");
    }
}
