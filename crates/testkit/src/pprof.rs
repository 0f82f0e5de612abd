//! pprof profiles, message by message, as JAX saves live memory.

use crate::xspace::Message;

/// A profile under construction.
#[derive(Clone, Debug)]
pub struct PprofFile {
    types: Message,
    samples: Message,
    locations: Message,
    functions: Message,
    strings: Vec<String>,
    places: u64,
}

/// A sample: calls (innermost first), how many, how much.
#[derive(Clone, Debug)]
pub struct Sample {
    locations: Vec<u64>,
    values: [i64; 2],
    labels: Vec<(String, String)>,
}

/// A sample without labels.
pub fn sample(locations: &[u64], count: i64, amount: i64) -> Sample {
    Sample { locations: locations.to_vec(), values: [count, amount], labels: Vec::new() }
}

impl Sample {
    /// The same with a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }
}

impl PprofFile {
    /// A profile with these types of values.
    pub fn new(types: [(&str, &str); 2]) -> Self {
        let mut file = PprofFile {
            types: Message::default(),
            samples: Message::default(),
            locations: Message::default(),
            functions: Message::default(),
            strings: vec![String::new()],
            places: 0,
        };
        for (kind, unit) in types {
            let mut message = Message::default();
            message.varint(1, file.text(kind));
            message.varint(2, file.text(unit));
            file.types.bytes(1, &message.0);
        }
        file
    }

    /// A profile of live memory.
    pub fn memory() -> Self {
        Self::new([("allocations", "count"), ("space", "bytes")])
    }

    fn text(&mut self, text: &str) -> u64 {
        let known = self.strings.iter().position(|string| string == text);
        known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        }) as u64
    }

    /// A place in a program.
    pub fn location(&mut self, function: &str, file: &str, line: u64) -> u64 {
        self.places += 1;
        let (mut named, mut place, mut at) = (Message::default(), Message::default(), Message::default());
        named.varint(1, self.places);
        named.varint(2, self.text(function));
        named.varint(4, self.text(file));
        at.varint(1, self.places);
        at.varint(2, line);
        place.varint(1, self.places);
        place.bytes(4, &at.0);
        self.functions.bytes(5, &named.0);
        self.locations.bytes(4, &place.0);
        self.places
    }

    /// Adds a sample.
    pub fn sample(&mut self, sample: &Sample) {
        let (mut message, mut locations, mut values) =
            (Message::default(), Message::default(), Message::default());
        sample.locations.iter().for_each(|&location| locations.raw_varint(location));
        sample.values.iter().for_each(|&value| values.raw_varint(value as u64));
        message.bytes(1, &locations.0);
        message.bytes(2, &values.0);
        for (key, value) in &sample.labels {
            let mut label = Message::default();
            label.varint(1, self.text(key));
            label.varint(2, self.text(value));
            message.bytes(3, &label.0);
        }
        self.samples.bytes(2, &message.0);
    }

    /// The file, not compressed.
    pub fn bytes(&self) -> Vec<u8> {
        let mut strings = Message::default();
        self.strings.iter().for_each(|string| strings.bytes(6, string.as_bytes()));
        [&self.types.0[..], &self.samples.0, &self.locations.0, &self.functions.0, &strings.0].concat()
    }
}
