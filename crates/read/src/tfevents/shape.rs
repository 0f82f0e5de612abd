//! Values of event files that are not single numbers: distributions, text and pictures.
//!
//! TensorFlow 2 and Keras write a distribution as a tensor with a row of lower bound, upper bound and count per bucket;
//! TensorFlow 1 and PyTorch write upper bounds and counts, where the outermost bounds may be as wide as numbers go.

use stepscope_trace::series::{Bucket, GraphForm, Histogram, Note, Picture};

use super::event::{Event, Field, fields, types};

/// Distributions and pictures that are kept per tag, at most; from there on every second, every fourth and so on.
pub(super) const MOST_KEPT: usize = 512;
/// Pictures of one tag in one step.
const MOST_SAMPLES: usize = 16;
/// Buckets of one distribution, at most. Writers make 30 to a few thousand.
const MOST_BUCKETS: usize = 8_192;
/// Characters of a text that are kept.
const MOST_TEXT: usize = 4_000;

/// A value that is not a number, still in the file's bytes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Shape<'b> {
    /// A `HistogramProto`.
    Histogram(&'b [u8]),
    /// A tensor of buckets, of text, or of pictures.
    Tensor(&'b [u8]),
    /// A `Summary.Image`.
    Image(&'b [u8]),
    /// A graph.
    Graph(GraphForm, &'b [u8]),
    /// A `RunMetadata`.
    Run(&'b [u8]),
    /// What the plugin for hyperparameters wrote.
    Hparams(&'b [u8]),
}

impl<'b> Shape<'b> {
    /// Its buckets, empty ones at both ends excluded; `None` if it is no distribution.
    pub(super) fn buckets(self) -> Option<Vec<Bucket>> {
        let mut buckets = match self {
            Shape::Histogram(message) => of_message(message),
            Shape::Tensor(tensor) => of_tensor(tensor)?,
            _ => return None,
        };
        buckets.retain(|bucket| bucket.count.is_finite() && bucket.from <= bucket.to);
        let filled = |bucket: &Bucket| bucket.count > 0.0;
        let last = buckets.iter().rposition(filled)?;
        let first = buckets.iter().position(filled)?;
        buckets.truncate(last + 1);
        buckets.drain(..first);
        Some(buckets)
    }

    /// Its pictures as they are encoded: TensorFlow 2 writes width, height and the pictures as strings of one tensor; TensorFlow 1
    /// and PyTorch write one picture as a message.
    pub(super) fn samples(self) -> Vec<&'b [u8]> {
        match self {
            Shape::Image(message) => super::event::bytes_of(message, 4).into_iter().collect(),
            Shape::Tensor(tensor) => self.strings(tensor).skip(2).take(MOST_SAMPLES).collect(),
            _ => Vec::new(),
        }
    }

    /// The strings of a tensor.
    fn strings(self, tensor: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        fields(tensor).filter_map(|(number, value)| match value {
            Field::Bytes(text) if number == 8 => Some(text),
            _ => None,
        })
    }

    /// The graph, and how it is written.
    pub(super) fn graph(self) -> Option<(GraphForm, &'b [u8])> {
        match self {
            Shape::Graph(form, bytes) => Some((form, bytes)),
            Shape::Tensor(tensor) => self.strings(tensor).next().map(|bytes| (GraphForm::Traced, bytes)),
            _ => None,
        }
    }

    /// Its text: the strings of a tensor, one per line.
    pub(super) fn text(self) -> Option<String> {
        let Shape::Tensor(tensor) = self else { return None };
        let mut text = String::new();
        for (number, value) in fields(tensor) {
            if let (8, Field::Bytes(line)) = (number, value) {
                if !text.is_empty() {
                    text.push('\n');
                }
                let whole = line.len().min(MOST_TEXT * 4);
                text.extend(String::from_utf8_lossy(line.get(..whole)?).chars().take(MOST_TEXT));
                if text.chars().count() >= MOST_TEXT {
                    break;
                }
            }
        }
        Some(text).filter(|text| !text.is_empty())
    }
}

/// Upper bounds and counts. The least and the greatest value narrow the outermost buckets.
fn of_message(message: &[u8]) -> Vec<Bucket> {
    let (mut least, mut greatest) = (f64::NEG_INFINITY, f64::INFINITY);
    let (mut limits, mut counts) = (Vec::new(), Vec::new());
    for (number, value) in fields(message) {
        match (number, value) {
            (1, Field::Wide(bytes)) => least = f64::from_le_bytes(bytes),
            (2, Field::Wide(bytes)) => greatest = f64::from_le_bytes(bytes),
            (6, value) => doubles(&value, &mut limits),
            (7, value) => doubles(&value, &mut counts),
            _ => {}
        }
    }
    let mut from = least;
    let bucket = |(limit, count): (f64, f64)| {
        let bucket = Bucket { from: from.max(least), to: limit.min(greatest), count };
        from = limit;
        bucket
    };
    limits.into_iter().zip(counts).map(bucket).collect()
}

fn doubles(value: &Field<'_>, into: &mut Vec<f64>) {
    match value {
        Field::Wide(bytes) if into.len() < MOST_BUCKETS => into.push(f64::from_le_bytes(*bytes)),
        Field::Bytes(packed) => {
            let left = MOST_BUCKETS.saturating_sub(into.len());
            into.extend(packed.as_chunks::<8>().0.iter().take(left).map(|bytes| f64::from_le_bytes(*bytes)));
        }
        _ => {}
    }
}

/// Rows of lower bound, upper bound and count.
fn of_tensor(tensor: &[u8]) -> Option<Vec<Bucket>> {
    let (mut kind, mut numbers) = (0, Vec::new());
    for (number, value) in fields(tensor) {
        match (number, value) {
            (1, Field::Number(number)) => kind = number,
            (4, Field::Bytes(content)) => numbers = elements(kind, content)?,
            (6, value) => doubles(&value, &mut numbers),
            _ => {}
        }
    }
    let bucket = |row: &[f64; 3]| Bucket { from: row[0], to: row[1], count: row[2] };
    Some(numbers.as_chunks::<3>().0.iter().take(MOST_BUCKETS).map(bucket).collect())
}

fn elements(kind: u64, content: &[u8]) -> Option<Vec<f64>> {
    let most = 3 * MOST_BUCKETS;
    match kind {
        types::DOUBLE => Some(
            content.as_chunks::<8>().0.iter().take(most).map(|bytes| f64::from_le_bytes(*bytes)).collect(),
        ),
        types::FLOAT => {
            let wide = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes));
            Some(content.as_chunks::<4>().0.iter().take(most).map(wide).collect())
        }
        _ => None,
    }
}

/// Something that was logged in a step.
pub(super) trait Dated {
    fn step(&self) -> i64;
    fn wall_s(&self) -> f64;
}

impl Dated for Histogram {
    fn step(&self) -> i64 {
        self.step
    }

    fn wall_s(&self) -> f64 {
        self.wall_s
    }
}

impl Dated for Picture {
    fn step(&self) -> i64 {
        self.step
    }

    fn wall_s(&self) -> f64 {
        self.wall_s
    }
}

/// What was logged under a tag while it is read: steps spread evenly over all.
#[derive(Debug)]
pub(super) struct Kept<T> {
    pub(super) tag: String,
    pub(super) kept: Vec<T>,
    /// One in this many is kept.
    stride: u64,
    seen: u64,
    /// The file that wrote the last one.
    file: usize,
}

impl<T: Dated> Kept<T> {
    pub(super) fn new(tag: String, file: usize) -> Self {
        Kept { tag, kept: Vec::new(), stride: 1, seen: 0, file }
    }

    /// Adds what was written in a step. A program that began again replaces what it repeats.
    pub(super) fn take(&mut self, file: usize, event: &Event, make: impl FnOnce() -> Option<T>) {
        if self.file != file {
            self.file = file;
            self.kept.retain(|known| known.step() < event.step || known.wall_s() > event.wall_s);
        }
        self.seen += 1;
        if !(self.seen - 1).is_multiple_of(self.stride) {
            return;
        }
        let Some(made) = make() else { return };
        self.kept.push(made);
        if self.kept.len() >= MOST_KEPT {
            let mut place = 0;
            self.kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.stride *= 2;
        }
    }
}

/// Remembers the latest text of a tag.
pub(super) fn note(texts: &mut Vec<Note>, event: &Event, tag: &[u8], shape: Shape<'_>) {
    let Some(text) = shape.text() else { return };
    let tag = String::from_utf8_lossy(tag);
    let fresh = Note { tag: tag.into_owned(), step: event.step, wall_s: event.wall_s, text };
    if let Some(note) = texts.iter_mut().find(|note| note.tag == fresh.tag) {
        *note = fresh;
    } else if texts.len() < MOST_KEPT {
        texts.push(fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(number: u8, values: &[f64]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, values.len() as u8 * 8];
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        out
    }

    fn wide(number: u8, value: f64) -> Vec<u8> {
        [&[number << 3 | 1][..], &value.to_le_bytes()].concat()
    }

    fn bucket(from: f64, to: f64, count: f64) -> Bucket {
        Bucket { from, to, count }
    }

    #[test]
    fn limits_and_counts_are_narrowed_to_the_values_there_are() {
        let message = [
            wide(1, -1.0),
            wide(2, 3.0),
            packed(6, &[-2.0, 0.0, 1.0, f64::MAX]),
            packed(7, &[0.0, 2.0, 5.0, 1.0]),
        ]
        .concat();
        let expected = [bucket(-1.0, 0.0, 2.0), bucket(0.0, 1.0, 5.0), bucket(1.0, 3.0, 1.0)];
        assert_eq!(Shape::Histogram(&message).buckets().unwrap(), expected);
    }

    #[test]
    fn rows_of_a_tensor_are_buckets() {
        let content = packed(4, &[0.0, 1.0, 0.0, 1.0, 2.0, 7.0, 2.0, 3.0, 0.0]);
        let tensor = [&[0x08, 2][..], &content].concat();
        assert_eq!(Shape::Tensor(&tensor).buckets().unwrap(), [bucket(1.0, 2.0, 7.0)]);
        assert_eq!(Shape::Tensor(&[0x08, 7]).buckets(), None);
    }

    #[test]
    fn broken_distributions_and_texts_say_what_they_can() {
        let message = [wide(1, -1.0), packed(6, &[0.0, 1.0]), packed(7, &[2.0, 5.0])].concat();
        for cut in 0..message.len() {
            let _ = Shape::Histogram(&message[..cut]).buckets();
            let _ = Shape::Tensor(&message[..cut]).buckets();
            let _ = Shape::Tensor(&message[..cut]).text();
        }
    }

    #[test]
    fn many_distributions_are_thinned_evenly() {
        let message = [packed(6, &[0.0, 1.0]), packed(7, &[2.0, 5.0])].concat();
        let histogram = |event: &Event| {
            let buckets = Shape::Histogram(&message).buckets()?;
            Some(Histogram { step: event.step, wall_s: event.wall_s, buckets })
        };
        let mut kept = Kept::new("weights".to_owned(), 0);
        for step in 0..3_000 {
            let event = Event { step, wall_s: step as f64, ..Event::default() };
            kept.take(0, &event, || histogram(&event));
        }
        let steps: Vec<i64> = kept.kept.iter().map(|histogram| histogram.step).collect();
        assert!((MOST_KEPT / 2..MOST_KEPT).contains(&steps.len()), "{}", steps.len());
        assert!(steps.windows(2).all(|pair| pair[1] - pair[0] == steps[1]), "{steps:?}");
        let again = Event { step: 1_000, wall_s: 9_000.0, ..Event::default() };
        kept.take(1, &again, || histogram(&again));
        assert!(kept.kept.iter().all(|known| known.step <= 1_000), "a restart replaces");
    }
}
