//! What a line says about steps. Training programs print progress in a few forms; a line is split into words
//! and numbers, and searched for these forms.
//!
//! ```text
//! 12/100 ━━━━ 3s 35ms/step - loss: 0.5        Keras
//! 12%|█▏   | 12/100 [00:03<00:20, 4.21it/s]   tqdm
//! step 12/100 loss 0.5  35 ms                 scripts
//! iter 10: loss 3.1, time 12.34ms             scripts
//! Epoch: [0]  [ 10/500]  time: 0.12           scripts
//! Train Epoch: 1 [640/60000 (1%)]  Loss: 2.3  scripts that count examples
//! loss: 2.3  [  640/60000]                    PyTorch's quickstart, which counts examples
//! [1,  2000] loss: 2.2                        PyTorch's tutorials: epoch and step
//! | epoch   1 |   200/ 2983 batches |         scripts
//! epoch 001:  100 / 4862 loss=7.5, num_updates=100, ups=2.1        fairseq
//! {"step": 10, "loss": 2.3}                   lines of JSON
//! 120/120 - 2s - 15ms/step - loss: 0.5        Keras, one line per epoch
//! INFO:tensorflow:global_step/sec: 12.3       TensorFlow's hooks
//! ```

/// The content of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProgressLine {
    /// The number that counts up.
    pub(super) at: Option<Count>,
    /// The time of this step as measured by the program, in milliseconds.
    pub(super) this_ms: Option<f64>,
    /// The mean step time as reported by the program, in milliseconds.
    pub(super) mean_ms: Option<f64>,
    /// How many steps that mean is over, if the line says so.
    pub(super) mean_of: Option<u64>,
    /// Examples per second as reported by the program.
    pub(super) examples_per_s: Option<f64>,
}

/// A number that counts up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) number: u64,
    /// Its final value.
    pub(super) of: Option<u64>,
    /// True if it counts examples, not steps.
    pub(super) examples: bool,
    /// True if it is on a progress bar, which is redrawn on one line.
    pub(super) bar: bool,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Int(u64),
    Real(f64),
    Sign(char),
    Blank,
}

use Token::{Blank, Int, Real, Sign, Word};

/// More tokens than any line about a step has.
const MOST_TOKENS: usize = 160;
/// Words before a step number.
const STEP_WORDS: &[&str] = &[
    "step",
    "steps",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "it",
    "batch",
    "global_step",
    "update",
    "num_updates",
];
/// Words whose number is not a step number.
const OTHER_COUNTS: &[&str] = &[
    "epoch", "epochs", "fold", "stage", "file", "files", "shard", "trial", "run", "rank", "worker",
    "fetching",
];
/// Words whose time is not a step time.
const OTHER_TIMES: &[&str] = &[
    "eta",
    "elapsed",
    "remaining",
    "total",
    "epoch",
    "eval",
    "val",
    "data",
    "compile",
    "save",
    "load",
    "since",
];
const EXAMPLES: &[&str] = &[
    "examples",
    "example",
    "ex",
    "samples",
    "sample",
    "images",
    "image",
    "img",
    "imgs",
    "sequences",
    "items",
];
const STEPS: &[&str] = &["step", "steps", "it", "its", "iter", "iters", "iterations", "batch", "batches"];
const SECONDS: &[&str] = &["s", "sec", "secs", "second", "seconds"];

/// What the line says; `None` if it is not about steps.
pub(super) fn progress_of(line: &str) -> Option<ProgressLine> {
    let tokens = tokens(line);
    let at = bar(&tokens)
        .or_else(|| counting(&tokens))
        .or_else(|| named(&tokens))
        .or_else(|| with_unit(&tokens))
        .or_else(|| epoch_and_step(&tokens))
        .or_else(|| bracketed(&tokens));
    let (mean_ms, examples_per_s) = rates(&tokens);
    let this_ms = at.filter(|at| !at.bar && mean_ms.is_none()).and_then(|_| own_time(&tokens));
    let mean_of = mean_ms.and_then(|_| whole_epoch(&tokens));
    let line_says = ProgressLine { at, this_ms, mean_ms, mean_of, examples_per_s };
    (line_says != ProgressLine::default()).then_some(line_says)
}

fn tokens(line: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        if tokens.len() >= MOST_TOKENS {
            break;
        }
        let end_of = |part: fn(char) -> bool| rest.find(|c| !part(c)).unwrap_or(rest.len());
        let end = if first.is_ascii_digit() {
            let end = number_end(rest);
            let text = rest.get(..end).unwrap_or_default();
            // A number with more digits than an integer holds is an identifier.
            tokens.push(match (text.parse(), text.parse()) {
                (Ok(whole), _) => Int(whole),
                (_, Ok(real)) => Real(real),
                _ => Sign('0'),
            });
            end
        } else if first.is_alphabetic() || first == '_' {
            let end = end_of(|c| c.is_alphanumeric() || c == '_');
            tokens.push(Word(rest.get(..end).unwrap_or_default()));
            end
        } else if first.is_whitespace() {
            tokens.push(Blank);
            end_of(char::is_whitespace)
        } else {
            tokens.push(Sign(first));
            first.len_utf8()
        };
        rest = rest.get(end.max(1)..).unwrap_or_default();
    }
    tokens
}

/// Digits, perhaps a point and more digits, perhaps an exponent.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    end
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// `12/100` at a position, and the position after it.
fn fraction(tokens: &[Token<'_>], at: usize) -> Option<(u64, u64)> {
    match tokens.get(at..at + 3)? {
        [Int(number), Sign('/'), Int(of)] if number <= of && *of > 1 => Some((*number, *of)),
        _ => None,
    }
}

/// Keras and tqdm: a fraction at the start of the line or after a bar, followed by a bar, a bracket or a rate.
fn bar(tokens: &[Token<'_>]) -> Option<Count> {
    let is_bar =
        |token: &Token<'_>| matches!(token, Sign('━' | '█' | '|' | '=' | '╸' | '╺' | '#' | '▉'..='▏'));
    let place = (0..tokens.len()).find(|&at| fraction(tokens, at).is_some())?;
    let (number, of) = fraction(tokens, place)?;
    let before = tokens.get(..place)?.iter().rev().find(|token| **token != Blank);
    let leads = before.is_none_or(is_bar);
    let after = tokens.get(place + 3..)?;
    let next = after.iter().find(|token| **token != Blank);
    let rated = after.windows(3).any(|three| match three {
        [Word(unit), Sign('/'), Word(per)] => {
            is_one_of(unit, STEPS) || is_one_of(per, STEPS) && !is_one_of(unit, EXAMPLES)
        }
        _ => false,
    });
    let drawn = matches!(next, Some(Sign('['))) || next.is_some_and(is_bar);
    // tqdm shows a question mark for an unknown rate.
    (leads && drawn && (rated || before.is_some() || next.is_some_and(is_bar))).then_some(Count {
        number,
        of: Some(of),
        examples: false,
        bar: true,
    })
}

/// `step 12`, `iter: 10`, `Step [3/100]`, `global_step=7`.
fn named(tokens: &[Token<'_>]) -> Option<Count> {
    for (place, token) in tokens.iter().enumerate() {
        let Word(word) = token else { continue };
        if !is_one_of(word, STEP_WORDS) {
            continue;
        }
        let mut next = place + 1;
        while matches!(tokens.get(next), Some(Blank | Sign(':' | '=' | '#' | '[' | '(' | '"' | '\''))) {
            next += 1;
        }
        let Some(&Int(number)) = tokens.get(next) else { continue };
        // `step 12 ms` is a time; `step 12 of 100` and `step 12 loss` are not.
        let unit = tokens.iter().skip(next + 1).find(|token| **token != Blank);
        if let Some(Word(unit)) = unit
            && milliseconds(1.0, unit).is_some()
        {
            continue;
        }
        let of = fraction(tokens, next).map(|(_, of)| of);
        return Some(Count { number, of, examples: false, bar: false });
    }
    None
}

/// `[ 10/500]` counts steps, `[640/60000 (1%)]` examples. `Epoch [1/10]` counts neither.
fn bracketed(tokens: &[Token<'_>]) -> Option<Count> {
    for place in 0..tokens.len() {
        let Some((number, of)) = fraction(tokens, place) else { continue };
        let mut before = tokens.get(..place)?.iter().rev().filter(|token| **token != Blank);
        let opened = matches!(before.next(), Some(Sign('[' | '(')));
        let named = before.find(|token| !matches!(token, Sign(':' | '=' | '#')));
        let other = matches!(named, Some(Word(word)) if is_one_of(word, OTHER_COUNTS));
        if !opened || other {
            continue;
        }
        let mut after = tokens.get(place + 3..)?.iter().filter(|token| **token != Blank);
        match after.next() {
            Some(Sign(']' | ')')) => {
                // Scripts put the step before what they report about it; behind the loss, examples are counted.
                let examples = after.next().is_none() && has_loss(tokens.get(..place)?);
                return Some(Count { number, of: Some(of), examples, bar: false });
            }
            Some(Sign('(')) if after.any(|token| *token == Sign('%')) => {
                return Some(Count { number, of: Some(of), examples: true, bar: false });
            }
            _ => {}
        }
    }
    None
}

fn has_loss(tokens: &[Token<'_>]) -> bool {
    tokens.iter().any(|token| matches!(token, Word(word) if word.eq_ignore_ascii_case("loss")))
}

/// `200/ 2983 batches`: a fraction, perhaps with blanks, and what it counts.
fn with_unit(tokens: &[Token<'_>]) -> Option<Count> {
    let dense: Vec<&Token<'_>> = tokens.iter().filter(|token| **token != Blank).collect();
    dense.windows(5).find_map(|five| match five {
        [Int(number), Sign('/'), Int(of), Word(unit), after]
            if number <= of && is_one_of(unit, STEPS) && !matches!(after, Sign('/')) =>
        {
            Some(Count { number: *number, of: Some(*of), examples: false, bar: false })
        }
        _ => None,
    })
}

/// `[1,  2000] loss: 2.2`: the epoch and the step in it.
fn epoch_and_step(tokens: &[Token<'_>]) -> Option<Count> {
    let mut dense = tokens.iter().filter(|token| **token != Blank);
    match [dense.next()?, dense.next()?, dense.next()?, dense.next()?, dense.next()?] {
        [Sign('['), Int(_), Sign(','), Int(number), Sign(']')] if has_loss(tokens) => {
            Some(Count { number: *number, of: None, examples: false, bar: false })
        }
        _ => None,
    }
}

/// `120/120 - 2s - 15ms/step`: an epoch's steps, in one line at its end.
fn whole_epoch(tokens: &[Token<'_>]) -> Option<u64> {
    let (number, of) = fraction(tokens, 0)?;
    let next = tokens.iter().skip(3).find(|token| **token != Blank);
    (number == of && matches!(next, Some(Sign('-')))).then_some(of)
}

/// tqdm without an end: `12it [00:03, 4.21it/s]`.
fn counting(tokens: &[Token<'_>]) -> Option<Count> {
    match tokens {
        [Int(number), Word("it"), Blank, Sign('['), ..] => {
            Some(Count { number: *number, of: None, examples: false, bar: true })
        }
        _ => None,
    }
}

fn value(token: &Token<'_>) -> Option<f64> {
    match *token {
        Int(whole) => Some(whole as f64),
        Real(real) => Some(real),
        _ => None,
    }
}

/// A time in milliseconds from its number and unit.
fn milliseconds(number: f64, unit: &str) -> Option<f64> {
    let factor = match unit {
        "ms" | "msec" | "milliseconds" => 1.0,
        "us" | "µs" | "μs" => 1e-3,
        "ns" => 1e-6,
        unit if is_one_of(unit, SECONDS) => 1e3,
        _ => return None,
    };
    Some(number * factor)
}

/// The mean step time and examples per second, if the line contains rates: `35ms/step`, `4.2it/s`,
/// `global_step/sec: 12.3`, `1234 examples/sec`, `samples/s=99`.
fn rates(tokens: &[Token<'_>]) -> (Option<f64>, Option<f64>) {
    let (mut mean_ms, mut examples) = (None, None);
    for (place, three) in tokens.windows(3).enumerate() {
        let [Word(left), Sign('/'), Word(right)] = three else { continue };
        // The number is before the rate, or after a colon behind it.
        let before = tokens.get(..place).unwrap_or_default().iter().rev().find(|token| **token != Blank);
        let mut after = tokens.iter().skip(place + 3).filter(|token| **token != Blank);
        let behind = match after.next() {
            Some(Sign(':' | '=')) => after.next(),
            other => other,
        };
        let number = before.and_then(value).or_else(|| behind.and_then(value)).filter(|number| *number > 0.0);
        let Some(number) = number else { continue };
        let per_second = is_one_of(right, SECONDS);
        if is_one_of(right, STEPS) && milliseconds(1.0, left).is_some() {
            mean_ms = milliseconds(number, left);
        } else if per_second && (is_one_of(left, STEPS) || left.eq_ignore_ascii_case("global_step")) {
            mean_ms = Some(1e3 / number);
        } else if per_second && is_one_of(left, EXAMPLES) {
            examples = Some(number);
        }
    }
    (mean_ms.or_else(|| steps_per_second(tokens)), examples)
}

/// `'train_steps_per_second': 10.1`, `ups=2.1`.
fn steps_per_second(tokens: &[Token<'_>]) -> Option<f64> {
    let is_rate = |word: &str| word.ends_with("steps_per_second") || word == "ups";
    let place = tokens.iter().position(|token| matches!(token, Word(word) if is_rate(word)))?;
    let mut after = tokens
        .iter()
        .skip(place + 1)
        .skip_while(|token| matches!(token, Blank | Sign(':' | '=' | '"' | '\'')));
    after.next().and_then(value).filter(|rate| *rate > 0.0).map(|rate| 1e3 / rate)
}

/// The time that a script prints with its step: `12.34ms`, `time: 0.12s`. Times of other things are ignored.
fn own_time(tokens: &[Token<'_>]) -> Option<f64> {
    for (place, token) in tokens.iter().enumerate() {
        let Some(number) = value(token) else { continue };
        let mut after = tokens.iter().skip(place + 1);
        let unit = match after.next() {
            Some(Blank) => after.next(),
            other => other,
        };
        let Some(Word(unit)) = unit else { continue };
        // Rates were already examined.
        if matches!(after.next(), Some(Sign('/'))) {
            continue;
        }
        let named = tokens.get(..place).unwrap_or_default().iter().rev().find_map(|token| match token {
            Word(word) => Some(*word),
            _ => None,
        });
        let others = named.is_some_and(|word| {
            word.split('_').any(|part| OTHER_TIMES.iter().any(|other| part.eq_ignore_ascii_case(other)))
        });
        if !others && let Some(ms) = milliseconds(number, unit) {
            return Some(ms);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str) -> Option<(u64, Option<u64>)> {
        progress_of(line)?.at.map(|at| (at.number, at.of))
    }

    #[test]
    fn progress_bars_of_keras_and_tqdm_are_read() {
        let keras =
            progress_of(" 12/100 ━━━━━━━━━━━━━━━━━━━━ 3s 35ms/step - accuracy: 0.11 - loss: 2.31").unwrap();
        assert_eq!(keras.at, Some(Count { number: 12, of: Some(100), examples: false, bar: true }));
        assert_eq!((keras.mean_ms, keras.this_ms), (Some(35.0), None));
        assert_eq!(
            progress_of("100/100 [=======>......] - ETA: 0s - 2s/step").unwrap().mean_ms,
            Some(2_000.0)
        );
        assert_eq!(progress_of("782/782 ━━━━ 0s 250us/step").unwrap().mean_ms, Some(0.25));
        let tqdm = progress_of(" 12%|█▏        | 12/100 [00:03<00:20,  4.00it/s, loss=2.3]").unwrap();
        assert_eq!((tqdm.at.unwrap().number, tqdm.mean_ms), (12, Some(250.0)));
        assert_eq!(
            progress_of("train: 3%|▎| 3/100 [00:06<03:20,  2.00s/it]").unwrap().mean_ms,
            Some(2_000.0)
        );
        assert_eq!(at("17it [00:03, 4.21it/s]"), Some((17, None)));
    }

    #[test]
    fn lines_of_scripts_are_read() {
        assert_eq!(at("step 12/100 loss 0.5"), Some((12, Some(100))));
        assert_eq!(at("[2026-01-02 03:04:05] global_step=7 loss=1.0"), Some((7, None)));
        assert_eq!(at("Epoch: [0]  [ 10/500]  eta: 0:01:00  loss: 0.3"), Some((10, Some(500))));
        assert_eq!(at("Epoch [1/5], Step [30/600], Loss: 0.3"), Some((30, Some(600))));
        assert_eq!(at("Iteration: 1200, lr 1e-3"), Some((1_200, None)));
        let nano = progress_of("iter 10: loss 3.1, time 12.34ms, mfu 1.2%").unwrap();
        assert_eq!((nano.at.unwrap().number, nano.this_ms), (10, Some(12.34)));
        assert_eq!(progress_of("step 5 | loss 3 | norm 0.5 | 0.25 s").unwrap().this_ms, Some(250.0));
        let mnist = progress_of("Train Epoch: 1 [640/60000 (1%)]  Loss: 2.3").unwrap().at.unwrap();
        assert_eq!((mnist.number, mnist.examples), (640, true));
    }

    #[test]
    fn trainers_lines_are_read_and_none_gives_a_wrong_number() {
        assert_eq!(at("[1,  2000] loss: 2.187"), Some((2_000, None)));
        assert_eq!(
            at("| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 13.29 | loss  7.66"),
            Some((200, Some(2_983)))
        );
        assert_eq!(
            progress_of("| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 13.29 |").unwrap().mean_ms,
            Some(13.29)
        );
        assert_eq!(at(r#"{"step": 10, "loss": 2.3}"#), Some((10, None)));
        assert_eq!(
            at("[titan] 2026-01-02 03:04:05,123 - root - INFO - step:  7  loss: 12.2  tps: 1,234"),
            Some((7, None))
        );
        let fairseq = progress_of(
            "| INFO | train_inner | epoch 001:    100 / 4862 loss=7.5, ups=2, num_updates=100, wall=50",
        )
        .unwrap();
        assert_eq!((fairseq.at.map(|at| at.number), fairseq.mean_ms), (Some(100), Some(500.0)));
        let quickstart = progress_of("loss: 2.303494  [   64/60000]").unwrap().at.unwrap();
        assert_eq!((quickstart.number, quickstart.examples), (64, true));
        let keras = progress_of("120/120 - 2s - 15ms/step - accuracy: 0.9 - loss: 0.5").unwrap();
        assert_eq!((keras.at, keras.mean_ms, keras.mean_of), (None, Some(15.0), Some(120)));
        let old = progress_of("120/120 - 2s - loss: 0.5 - 2s/epoch - 15ms/step").unwrap();
        assert_eq!((old.mean_ms, old.mean_of), (Some(15.0), Some(120)));
        let trainer = "{'loss': 2.3, 'grad_norm': 1.2, 'learning_rate': 5e-05, 'epoch': 0.12}";
        assert_eq!(progress_of(trainer), None, "it does not say how many steps passed");
        assert_eq!(
            progress_of("{'train_steps_per_second': 10.0, 'epoch': 1.0}").unwrap().mean_ms,
            Some(100.0)
        );
    }

    #[test]
    fn rates_are_read_wherever_their_number_stands() {
        assert_eq!(progress_of("INFO:tensorflow:global_step/sec: 12.5").unwrap().mean_ms, Some(80.0));
        assert_eq!(progress_of("step 3, 8 steps/sec").unwrap().mean_ms, Some(125.0));
        assert_eq!(
            progress_of("step 3 (1234.5 examples/sec; 0.1 sec/batch)").unwrap().examples_per_s,
            Some(1_234.5)
        );
        assert_eq!(progress_of("samples/s: 99").unwrap().examples_per_s, Some(99.0));
    }

    #[test]
    fn other_numbers_are_no_steps() {
        for line in [
            "Epoch 1/10",
            "Epoch [1/10] done",
            "loaded 12/100 files",
            "2026/01/02 03:04:05 start",
            "step time: 12 ms",
            "accuracy 0.5",
            "",
            "GET /a/12/100 200",
            "99999999999999999999999/3 ━━",
        ] {
            assert_eq!(at(line), None, "{line}");
        }
        assert_eq!(progress_of("step 3 eta 12 s").unwrap().this_ms, None);
        assert_eq!(progress_of("step 3 data_time 12 ms").unwrap().this_ms, None);
    }
}
