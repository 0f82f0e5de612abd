//! Ranks that do the same, more of it, or something else.

use super::*;

fn rank(host: &str, items: &[(Sort, &str, u64, i64)], rows: Option<u64>) -> RankWork {
    let item = |&(sort, name, count, us): &(Sort, &str, u64, i64)| Item {
        sort,
        name: name.to_owned(),
        count,
        own: Dur::from_us(us),
    };
    RankWork {
        host: host.to_owned(),
        inside: String::new(),
        steps: 10,
        items: items.iter().map(item).collect(),
        rows,
    }
}

const USUAL: &[(Sort, &str, u64, i64)] = &[
    (Sort::Op, "dense:MatMul", 20, 40_000),
    (Sort::Op, "dense:Relu", 20, 20_000),
    (Sort::Op, "loss:Sum", 20, 10_000),
    (Sort::Python, "train.py:9 step", 10, 10_000),
];

#[test]
fn what_only_one_rank_does_is_the_largest_difference() {
    let mut items = USUAL.to_vec();
    items.push((Sort::Op, "extra:MatMul", 10, 500_000));
    let ranks =
        Ranks { ranks: vec![rank("a", USUAL, None), rank("b", &items, None), rank("c", USUAL, None)] };
    let found = ranks.differences("b", "");
    assert_eq!(
        found.first().map(|first| (first.name.as_str(), first.more_ms())),
        Some(("extra:MatMul", 50.0))
    );
    assert_eq!(ranks.slower_by("b", ""), None, "it runs something else");
    assert!(ranks.differences("a", "").is_empty() && ranks.differences("x", "").is_empty());
}

#[test]
fn the_same_ops_that_all_take_longer_are_one_factor() {
    let slow: Vec<_> = USUAL
        .iter()
        .map(|&(sort, name, count, us)| (sort, name, count, if sort == Sort::Op { 3 * us } else { us }))
        .collect();
    let ranks = Ranks { ranks: vec![rank("a", USUAL, Some(32)), rank("b", &slow, Some(384))] };
    assert_eq!(ranks.slower_by("b", ""), Some(3.0));
    assert_eq!(ranks.slower_by("a", ""), None);
    assert_eq!(ranks.rows("b", ""), Some((384, 32)));
    let unknown = Ranks { ranks: vec![rank("a", USUAL, None), rank("b", &slow, Some(384))] };
    assert_eq!(unknown.rows("b", ""), None);
}
