//! Creates a damaged input from a seed: a few of the testkit's damages on top of each other.

use stepscope_testkit::damage::{HUGE_VARINTS, Rng, flip_bits, noise, overwrite, splice};

/// Texts with a meaning in some format.
const TEXTS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\u",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"-1e999",
    b"1e-400",
    b"NaN",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"\"ph\":\"B\"",
    b"\"ph\":\"E\"",
    b"\"ph\":\"X\"",
    b"\"dur\":-1",
    b"\"ts\":1e300",
    b"\"traceEvents\":[",
    b"\x1f\x8b\x08",
    b"\xff",
    b"\0",
];

/// The next damaged input.
pub fn mutate(seed: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=rng.below(4) {
        if bytes.is_empty() {
            let len = rng.below(64);
            return noise(rng, len);
        }
        bytes = match rng.below(8) {
            0 => bytes[..rng.below(bytes.len())].to_vec(),
            1 => {
                let flips = 1 + rng.below(8);
                flip_bits(&bytes, rng, flips)
            }
            2 | 3 => splice(&bytes, rng),
            4 => {
                let with = HUGE_VARINTS[rng.below(HUGE_VARINTS.len())];
                overwrite(&bytes, rng, with)
            }
            5 => {
                let with = TEXTS[rng.below(TEXTS.len())];
                overwrite(&bytes, rng, with)
            }
            6 => {
                let len = rng.below(16);
                let with = noise(rng, len);
                overwrite(&bytes, rng, &with)
            }
            _ => insert(&bytes, rng),
        };
    }
    bytes
}

fn insert(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let at = rng.below(bytes.len());
    let text = TEXTS[rng.below(TEXTS.len())];
    [&bytes[..at], text, &bytes[at..]].concat()
}
