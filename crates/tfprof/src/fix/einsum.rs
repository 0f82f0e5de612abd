//! Float operations of an Einsum, from its equation.

use std::collections::BTreeMap;

/// Float operations of `equation` on inputs of these shapes; `None` where they do not fit it.
///
/// Every combination of labels is one product; where a label is summed over, one addition comes with it.
pub(super) fn float_ops(equation: &str, inputs: &[Vec<i64>]) -> Option<i64> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = equation.split_once("->")?;
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != inputs.len() {
        return None;
    }
    let mut sizes: BTreeMap<char, i64> = BTreeMap::new();
    // What an ellipsis stands for is broadcast, so that the largest of them counts.
    let mut spread = 1i64;
    for (term, dims) in terms.iter().zip(inputs) {
        let rest = match term.split_once("...") {
            None => {
                label(term, dims, &mut sizes)?;
                continue;
            }
            Some(sides) => sides,
        };
        let (before, behind) = (rest.0.chars().count(), rest.1.chars().count());
        let middle = dims.len().checked_sub(before + behind)?;
        label(rest.0, dims.get(..before)?, &mut sizes)?;
        label(rest.1, dims.get(before + middle..)?, &mut sizes)?;
        let covered = dims.get(before..before + middle)?.iter().copied().fold(1, i64::saturating_mul);
        spread = spread.max(covered);
    }
    let all = sizes.values().copied().fold(spread, i64::saturating_mul);
    if all < 0 || sizes.values().any(|size| *size < 0) {
        return None;
    }
    let summed = sizes.keys().any(|name| !right.contains(*name));
    let per_combination = terms.len().saturating_sub(1) as i64 + i64::from(summed);
    Some(all.saturating_mul(per_combination))
}

/// Notes the size of each label; sizes of one label must agree, or be 1.
fn label(names: &str, dims: &[i64], sizes: &mut BTreeMap<char, i64>) -> Option<()> {
    if names.chars().count() != dims.len() {
        return None;
    }
    for (name, &size) in names.chars().zip(dims) {
        let known = sizes.entry(name).or_insert(size);
        if *known == 1 {
            *known = size;
        } else if size != 1 && size != *known {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(equation: &str, inputs: &[&[i64]]) -> Option<i64> {
        float_ops(equation, &inputs.iter().map(|dims| dims.to_vec()).collect::<Vec<_>>())
    }

    #[test]
    fn a_product_counts_two_per_combination() {
        assert_eq!(count("ab,bc->ac", &[&[32, 64], &[64, 128]]), Some(2 * 32 * 64 * 128));
        // Attention in Keras: scores, then values.
        assert_eq!(
            count("aecd,abcd->acbe", &[&[2, 128, 8, 64], &[2, 128, 8, 64]]),
            Some(2 * 2 * 128 * 128 * 8 * 64)
        );
    }

    #[test]
    fn an_ellipsis_stands_for_all_others() {
        assert_eq!(count("...ab,bc->...ac", &[&[4, 5, 32, 64], &[64, 16]]), Some(2 * 20 * 32 * 64 * 16));
        assert_eq!(count("...ab,...bc->...ac", &[&[4, 32, 64], &[4, 64, 16]]), Some(2 * 4 * 32 * 64 * 16));
    }

    #[test]
    fn without_a_sum_there_are_only_products() {
        assert_eq!(count("a,b->ab", &[&[32], &[64]]), Some(32 * 64));
        assert_eq!(count("ab->ba", &[&[32, 64]]), Some(0));
        assert_eq!(count("ab->a", &[&[32, 64]]), Some(32 * 64));
    }

    #[test]
    fn what_does_not_fit_has_no_count() {
        assert_eq!(count("ab,bc->ac", &[&[32, 64], &[63, 128]]), None);
        assert_eq!(count("ab,bc->ac", &[&[32, 64]]), None);
        assert_eq!(count("ab,bc->ac", &[&[32], &[64, 128]]), None);
        assert_eq!(count("ab,bc->ac", &[&[-1, 64], &[64, 128]]), None);
        assert_eq!(count("ab", &[&[32, 64]]), None);
        assert_eq!(count("...abc->abc", &[&[2, 3]]), None);
    }
}
