//! The level reached, so that it does not fall: the counts of the last `--write`, checked in, and the tables in
//! the documentation generated from them.

use std::fs;

use super::tally::{Source, tables, together};

const FILE: &str = "xtask/truth.json";
const PAGE: &str = "docs/agreement.md";
const BEGIN: &str = "<!-- truth: begin; written by `cargo xtask truth --write` -->";
const END: &str = "<!-- truth: end -->";

/// The previous level; empty if nothing was written yet.
pub(crate) fn read() -> Result<Vec<Source>, String> {
    let Ok(text) = fs::read_to_string(FILE) else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
}

/// Writes the current level and the tables in the documentation; unavailable sources keep their figures.
pub(crate) fn write(now: &[Source]) -> Result<(), String> {
    let mut all = read()?;
    for source in now {
        match all.iter_mut().find(|old| old.name == source.name) {
            Some(old) => *old = source.clone(),
            None => all.push(source.clone()),
        }
    }
    let text = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
    fs::write(FILE, text + "\n").map_err(|error| format!("{FILE}: {error}"))?;
    let page = fs::read_to_string(PAGE).map_err(|error| format!("{PAGE}: {error}"))?;
    let page =
        with_tables(&page, &all).ok_or_else(|| format!("{PAGE} has no place for the tables: {BEGIN}"))?;
    fs::write(PAGE, page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Whether the tables in the documentation match the file.
pub(crate) fn documented() -> Result<bool, String> {
    let page = fs::read_to_string(PAGE).map_err(|error| format!("{PAGE}: {error}"))?;
    Ok(with_tables(&page, &read()?).is_some_and(|fresh| fresh == page))
}

fn with_tables(page: &str, sources: &[Source]) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", tables(sources)))
}

/// What fell, in words. A source with fewer available cases than before cannot be compared; new findings and
/// findings that are no longer judged cannot fall.
pub(crate) fn fallen(before: &[Source], now: &[Source]) -> Vec<String> {
    let pairs: Vec<(&Source, &Source)> = now
        .iter()
        .filter_map(|source| Some((before.iter().find(|old| old.name == source.name)?, source)))
        .filter(|(old, new)| new.cases >= old.cases)
        .collect();
    let fewer_right = pairs.iter().filter(|(old, new)| share(new) < share(old)).map(|(old, new)| {
        format!("{}: {} of {} right, {} of {} before", new.name, new.right, new.cases, old.right, old.cases)
    });
    let old = together(pairs.iter().map(|(old, _)| *old));
    let less_precise =
        together(pairs.iter().map(|(_, new)| *new)).into_iter().filter_map(move |(id, tally)| {
            let (was, is) = (old.get(&id)?.precision()?, tally.precision()?);
            (is < was - 1e-9)
                .then(|| format!("precision of {id}: {:.1} %, {:.1} % before", is * 100.0, was * 100.0))
        });
    fewer_right.chain(less_precise).collect()
}

fn share(source: &Source) -> f64 {
    source.right as f64 / source.cases.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::tally::Tally;

    fn source(cases: usize, right: usize, rightly: usize, wrongly: usize) -> Source {
        let tally = Tally { fires: rightly + wrongly, right: rightly, wrong: wrongly, ..Tally::default() };
        let findings = [("input-bound".to_owned(), tally)].into_iter().collect();
        Source { name: "runs".to_owned(), cases, right, findings }
    }

    #[test]
    fn falling_is_noticed_and_rising_is_not() {
        let before = [source(10, 8, 4, 1)];
        assert_eq!(fallen(&before, &[source(10, 8, 4, 1)]), Vec::<String>::new());
        assert_eq!(fallen(&before, &[source(10, 9, 5, 1)]), Vec::<String>::new());
        assert_eq!(fallen(&before, &[source(10, 7, 4, 1)]).len(), 1);
        assert_eq!(fallen(&before, &[source(10, 8, 4, 2)]).len(), 1, "precision");
        assert_eq!(fallen(&before, &[source(4, 2, 1, 1)]).len(), 0, "most recordings are not at hand");
        assert_eq!(fallen(&[], &[source(4, 2, 1, 1)]).len(), 0, "nothing to hold it against");
    }

    #[test]
    fn tables_take_the_place_of_those_before() {
        let page = format!("# Page\n{BEGIN}\nold\n{END}\nmore\n");
        let fresh = with_tables(&page, &[source(10, 8, 4, 1)]).unwrap_or_default();
        assert!(
            fresh.starts_with("# Page\n") && fresh.ends_with("\nmore\n") && !fresh.contains("old"),
            "{fresh}"
        );
        assert_eq!(with_tables(&fresh, &[source(10, 8, 4, 1)]), Some(fresh.clone()));
        assert_eq!(with_tables("no place", &[]), None);
    }
}
