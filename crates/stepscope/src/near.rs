//! Suggestions for misspelt names.

/// Maximum number of suggestions.
const OFFERED: usize = 3;

/// The names in `known` that are spelt most like `given`, most likely first: few letters differ, or a word
/// matches.
pub(crate) fn near<'k>(given: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    let shares_word = |name: &str| words(name).any(|word| words(given).any(|other| is_like(word, other)));
    let mut found: Vec<(bool, usize, &str)> = known
        .map(|name| (!shares_word(name), distance(given, name), name))
        .filter(|(strange, distance, name)| !strange || *distance <= name.chars().count() / 3)
        .collect();
    found.sort_unstable();
    found.into_iter().take(OFFERED).map(|(_, _, name)| name).collect()
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(['-', '_', '.']).filter(|word| word.len() > 2 && *word != "bound")
}

/// Whether both start alike: `retrace` and `retracing`.
fn is_like(a: &str, b: &str) -> bool {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    same >= 4 || same == a.len().max(b.len())
}

/// Number of letters to insert, remove or change.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (place, letter) in a.chars().enumerate() {
        let mut last = place + 1;
        let mut next = vec![last];
        for (pair, other) in row.windows(2).zip(&b) {
            let &[before, above] = pair else { continue };
            last = (before + usize::from(letter != *other)).min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_comes_first_and_nothing_far_away() {
        let known = ["retracing", "recompilation", "input-bound", "output-bound", "memory-growth"];
        let near = |given| near(given, known.into_iter());
        assert_eq!(near("retrace"), ["retracing"]);
        assert_eq!(near("retracin"), ["retracing"]);
        assert_eq!(near("input_bound"), ["input-bound", "output-bound"]);
        assert_eq!(near("memory"), ["memory-growth"]);
        assert_eq!(near("xyz"), [""; 0]);
    }

    #[test]
    fn letters_are_counted() {
        assert_eq!((distance("kitten", "sitting"), distance("", "ab"), distance("ab", "ab")), (3, 2, 0));
    }
}
