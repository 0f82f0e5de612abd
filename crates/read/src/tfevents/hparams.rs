//! Hyperparameters: what TensorBoard's plugin for them keeps in the metadata of a value. One event describes the study, one the
//! settings of a trial, one how it ended.

use stepscope_trace::series::{Hparams, Setting, StudyMetric, TrialStatus};

use super::event::{Field, bytes_of, fields};

/// Settings of one trial, and metrics of a study.
const MOST: usize = 500;
/// Bytes of a name or a text.
const LONGEST: usize = 1_000;

/// Adds what one event says.
pub(super) fn take(hparams: &mut Hparams, content: &[u8]) {
    for (number, value) in fields(content) {
        let Field::Bytes(message) = value else { continue };
        match number {
            2 => metrics(&mut hparams.metrics, message),
            3 => settings(&mut hparams.settings, message),
            4 => hparams.status = status(message).or(hparams.status),
            _ => {}
        }
    }
}

/// The metrics of a study.
fn metrics(known: &mut Vec<StudyMetric>, experiment: &[u8]) {
    for (number, value) in fields(experiment) {
        let (5, Field::Bytes(info)) = (number, value) else { continue };
        let Some(name) = bytes_of(info, 1) else { continue };
        let part = |number| bytes_of(name, number).map(text).unwrap_or_default();
        let metric = StudyMetric { group: part(1), tag: part(2) };
        if !metric.tag.is_empty() && known.len() < MOST && !known.contains(&metric) {
            known.push(metric);
        }
    }
}

/// The settings of a trial. A program that starts again may change them.
fn settings(known: &mut Vec<(String, Setting)>, start: &[u8]) {
    for (number, value) in fields(start) {
        let (1, Field::Bytes(entry)) = (number, value) else { continue };
        let Some(name) = bytes_of(entry, 1).map(text) else { continue };
        let Some(setting) = bytes_of(entry, 2).and_then(setting) else { continue };
        match known.iter().position(|(key, _)| *key == name) {
            Some(place) => known[place].1 = setting,
            None if known.len() < MOST => known.push((name, setting)),
            None => {}
        }
    }
    known.sort_by(|(a, _), (b, _)| a.cmp(b));
}

/// A `google.protobuf.Value`; what is neither number, text nor switch is none.
fn setting(value: &[u8]) -> Option<Setting> {
    let mut found = None;
    for (number, value) in fields(value) {
        match (number, value) {
            (2, Field::Wide(bytes)) => found = Some(Setting::Number(f64::from_le_bytes(bytes))),
            (3, Field::Bytes(bytes)) => found = Some(Setting::Text(text(bytes))),
            (4, Field::Number(number)) => found = Some(Setting::Flag(number != 0)),
            _ => {}
        }
    }
    found
}

fn status(end: &[u8]) -> Option<TrialStatus> {
    let mut found = None;
    for (number, value) in fields(end) {
        if let (1, Field::Number(status)) = (number, value) {
            found = match status {
                1 => Some(TrialStatus::Success),
                2 => Some(TrialStatus::Failure),
                3 => Some(TrialStatus::Running),
                _ => None,
            };
        }
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..LONGEST).unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8][..], content].concat()
    }

    fn entry(name: &str, value: &[u8]) -> Vec<u8> {
        message(1, &[message(1, name.as_bytes()), message(2, value)].concat())
    }

    fn start() -> Vec<u8> {
        let rate = [&[2 << 3 | 1][..], &0.1_f64.to_le_bytes()].concat();
        let parts = [entry("rate", &rate), entry("kind", &message(3, b"sgd")), entry("flag", &[4 << 3, 1])];
        message(3, &parts.concat())
    }

    #[test]
    fn settings_metrics_and_the_end_are_read() {
        let mut hparams = Hparams::default();
        let name = [message(1, b"train"), message(2, b"loss")].concat();
        take(&mut hparams, &message(2, &message(5, &message(1, &name))));
        take(&mut hparams, &start());
        take(&mut hparams, &message(4, &[0x08, 2]));
        let text = |text: &str| text.to_owned();
        assert_eq!(hparams.metrics, [StudyMetric { group: text("train"), tag: text("loss") }]);
        let expected = [
            (text("flag"), Setting::Flag(true)),
            (text("kind"), Setting::Text(text("sgd"))),
            (text("rate"), Setting::Number(0.1)),
        ];
        assert_eq!(hparams.settings, expected);
        assert_eq!(hparams.status, Some(TrialStatus::Failure));
        take(&mut hparams, &start());
        assert_eq!(hparams.settings.len(), 3, "a program that starts again");
    }

    #[test]
    fn damaged_settings_say_what_they_can() {
        let whole = start();
        for cut in 0..whole.len() {
            take(&mut Hparams::default(), &whole[..cut]);
            let mut flipped = whole.clone();
            flipped[cut] ^= 0xff;
            take(&mut Hparams::default(), &flipped);
        }
    }

    #[test]
    fn settings_are_bounded() {
        let mut hparams = Hparams::default();
        for number in 0..3 * MOST {
            let name = format!("p{number}");
            take(&mut hparams, &message(3, &entry(&name, &[4 << 3, 1])));
        }
        assert_eq!(hparams.settings.len(), MOST);
    }
}
