//! GraphDef as text (`graph.pbtxt`): the parts of protobuf's text format that graphs use.
//!
//! By hand, because parsers of the text format work from a compiled schema; here unknown fields are passed over.

use stepscope_tfgraph::{Attr, DataType, Graph, NodeDef, Shape};

use super::Found;
use super::graph::check;
use super::message::Damages;

/// Maximum nesting of messages.
const DEEPEST: usize = 64;

/// A value: a scalar as written, without quotes, or a message.
enum Value {
    Scalar(Vec<u8>),
    Message(Vec<Entry>),
}

struct Entry {
    name: String,
    value: Value,
}

/// Whether the file may be a graph as text.
pub(super) fn recognises(bytes: &[u8]) -> bool {
    let mut parser = Parser { bytes: bytes.get(..bytes.len().min(64 << 10)).unwrap_or_default(), at: 0 };
    let Some(name) = parser.name() else { return false };
    parser.space();
    let opens = matches!(parser.peek(), Some(b'{' | b'<' | b':'));
    opens && matches!(name.as_str(), "node" | "library" | "versions" | "version")
}

/// Reads a graph. Nothing after an error is read, because there is no place to resume.
pub(super) fn graph(bytes: &[u8], mut damage: Damages) -> Found<Graph> {
    let mut parser = Parser { bytes, at: 0 };
    let mut graph = Graph::default();
    loop {
        parser.space();
        if parser.peek().is_none() {
            break;
        }
        let mut entries = Vec::new();
        let ended = parser.entry(&mut entries, 0);
        let nodes = entries.into_iter().filter(|entry| entry.name == "node");
        graph.nodes.extend(nodes.filter_map(|entry| node(entry.value)));
        if let Err(what) = ended {
            damage.add(parser.at, || format!("GraphDef as text: {what}"));
            break;
        }
    }
    check(&graph, &mut damage);
    Found { value: graph, damage }
}

fn node(value: Value) -> Option<NodeDef> {
    let Value::Message(entries) = value else { return None };
    let mut node = NodeDef::default();
    for entry in entries {
        match (entry.name.as_str(), entry.value) {
            ("name", Value::Scalar(text)) => node.name = lossy(&text),
            ("op", Value::Scalar(text)) => node.op = lossy(&text),
            ("device", Value::Scalar(text)) => node.device = lossy(&text),
            ("input", Value::Scalar(text)) => node.inputs.push(lossy(&text)),
            ("attr", Value::Message(entries)) => node.attrs.extend(attr(entries)),
            _ => {}
        }
    }
    Some(node)
}

fn attr(entries: Vec<Entry>) -> Option<(String, Attr)> {
    let (mut key, mut attr) = (String::new(), Attr::Other);
    for entry in entries {
        match (entry.name.as_str(), entry.value) {
            ("key", Value::Scalar(text)) => key = lossy(&text),
            ("value", Value::Message(values)) => {
                if let Some(first) = values.into_iter().next() {
                    attr = attr_value(&first.name, first.value);
                }
            }
            _ => {}
        }
    }
    Some((key, attr))
}

fn attr_value(name: &str, value: Value) -> Attr {
    match (name, value) {
        ("s", Value::Scalar(bytes)) => Attr::Bytes(bytes),
        ("i", Value::Scalar(text)) => int(&text).map_or(Attr::Other, Attr::Int),
        ("f", Value::Scalar(text)) => lossy(&text).parse().map_or(Attr::Other, Attr::Float),
        ("b", Value::Scalar(text)) => Attr::Bool(text == b"true" || text == b"1"),
        ("type", Value::Scalar(text)) => data_type(&text).map_or(Attr::Other, Attr::Type),
        ("shape", Value::Message(entries)) => Attr::Shape(shape(&entries)),
        ("list", Value::Message(entries)) => list(entries),
        _ => Attr::Other,
    }
}

fn list(entries: Vec<Entry>) -> Attr {
    let (mut texts, mut ints, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        match (entry.name.as_str(), entry.value) {
            ("s", Value::Scalar(bytes)) => texts.push(bytes),
            ("i", Value::Scalar(text)) => ints.extend(int(&text)),
            ("shape", Value::Message(entries)) => shapes.push(shape(&entries)),
            _ => {}
        }
    }
    match (texts.is_empty(), ints.is_empty(), shapes.is_empty()) {
        (_, _, false) => Attr::Shapes(shapes),
        (_, false, _) => Attr::Ints(ints),
        (false, _, _) => Attr::Texts(texts),
        _ => Attr::List,
    }
}

fn shape(entries: &[Entry]) -> Shape {
    let mut shape = Shape::default();
    for entry in entries {
        match (entry.name.as_str(), &entry.value) {
            ("dim", Value::Message(entries)) => shape.dims.push(size(entries)),
            ("unknown_rank", Value::Scalar(text)) => shape.unknown_rank = text == b"true" || text == b"1",
            _ => {}
        }
    }
    shape
}

fn size(entries: &[Entry]) -> i64 {
    let size = entries.iter().find(|entry| entry.name == "size");
    match size.map(|entry| &entry.value) {
        Some(Value::Scalar(text)) => int(text).unwrap_or(0),
        _ => 0,
    }
}

fn data_type(text: &[u8]) -> Option<DataType> {
    let text = lossy(text);
    DataType::named(&text).or_else(|| text.parse().ok().map(DataType))
}

fn int(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let hex = |digits: &str, sign: i64| i64::from_str_radix(digits, 16).ok().map(|value| sign * value);
    match text.strip_prefix("0x") {
        Some(digits) => hex(digits, 1),
        None => text.parse().ok(),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space, separators and comments.
    fn space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b';' => self.at += 1,
                b'#' => {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// A field's name.
    fn name(&mut self) -> Option<String> {
        self.space();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let name = std::str::from_utf8(rest.get(..len)?).ok()?.to_owned();
        self.at += len;
        (!name.is_empty()).then_some(name)
    }

    /// A field with its value; for a list, one entry per value.
    fn entry(&mut self, into: &mut Vec<Entry>, depth: usize) -> Result<(), &'static str> {
        let name = self.name().ok_or("a field's name is missing")?;
        self.space();
        if self.peek() == Some(b':') {
            self.at += 1;
            self.space();
        }
        if self.peek() != Some(b'[') {
            let (value, ended) = self.value(depth);
            into.extend(value.map(|value| Entry { name, value }));
            return ended;
        }
        self.at += 1;
        loop {
            self.space();
            match self.peek() {
                None => return Err("a list is not closed"),
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => {
                    let (value, ended) = self.value(depth);
                    into.extend(value.map(|value| Entry { name: name.clone(), value }));
                    ended?;
                }
            }
        }
    }

    /// A value. A truncated message yields what came before.
    fn value(&mut self, depth: usize) -> (Option<Value>, Result<(), &'static str>) {
        match self.peek() {
            Some(b'{' | b'<') if depth >= DEEPEST => (None, Err("nested too deeply")),
            Some(b'{' | b'<') => {
                self.at += 1;
                let (entries, ended) = self.message(depth + 1);
                (Some(Value::Message(entries)), ended)
            }
            Some(b'"' | b'\'') => match self.strings() {
                Ok(text) => (Some(Value::Scalar(text)), Ok(())),
                Err(what) => (None, Err(what)),
            },
            _ => match self.word() {
                Some(word) => (Some(Value::Scalar(word)), Ok(())),
                None => (None, Err("a value is missing")),
            },
        }
    }

    fn message(&mut self, depth: usize) -> (Vec<Entry>, Result<(), &'static str>) {
        let mut entries = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => return (entries, Err("a message is not closed")),
                Some(b'}' | b'>') => {
                    self.at += 1;
                    return (entries, Ok(()));
                }
                Some(_) => {
                    if let Err(what) = self.entry(&mut entries, depth) {
                        return (entries, Err(what));
                    }
                }
            }
        }
    }

    fn word(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
        let len = rest.iter().take_while(|byte| plain(byte)).count();
        self.at += len;
        rest.get(..len).filter(|word| !word.is_empty()).map(<[u8]>::to_vec)
    }

    /// Adjacent strings are concatenated.
    fn strings(&mut self) -> Result<Vec<u8>, &'static str> {
        let mut text = Vec::new();
        while let Some(quote @ (b'"' | b'\'')) = self.peek() {
            self.at += 1;
            self.string(quote, &mut text)?;
            self.space();
        }
        Ok(text)
    }

    fn string(&mut self, quote: u8, text: &mut Vec<u8>) -> Result<(), &'static str> {
        loop {
            let byte = self.peek().ok_or("a string is not closed")?;
            self.at += 1;
            match byte {
                b'\\' => text.extend(self.escape().ok_or("an escape is truncated")?),
                b'\n' => return Err("a string is not closed"),
                _ if byte == quote => return Ok(()),
                _ => text.push(byte),
            }
        }
    }

    fn escape(&mut self) -> Option<Vec<u8>> {
        let byte = self.peek()?;
        self.at += 1;
        Some(vec![match byte {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'x' | b'X' => self.digits(0, 2, 16),
            b'0'..=b'7' => self.digits(u32::from(byte - b'0'), 2, 8),
            other => other,
        }])
    }

    /// Up to `most` further digits of a number.
    fn digits(&mut self, mut value: u32, most: usize, base: u32) -> u8 {
        for _ in 0..most {
            match self.peek().and_then(|byte| char::from(byte).to_digit(base)) {
                Some(digit) => {
                    value = value * base + digit;
                    self.at += 1;
                }
                None => break,
            }
        }
        value as u8
    }
}
