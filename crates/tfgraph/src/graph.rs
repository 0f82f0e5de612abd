//! A graph: nodes, their inputs, and the attributes that describe size and work.

/// A graph as its GraphDef describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Its nodes, in the order of the file.
    pub nodes: Vec<NodeDef>,
}

/// One node of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDef {
    /// Its unique name, scopes separated by slashes.
    pub name: String,
    /// Its operation type, such as `MatMul`.
    pub op: String,
    /// Its inputs as written: `[^]name[:port]`.
    pub inputs: Vec<String>,
    /// The device it was placed on; empty if left open.
    pub device: String,
    /// Its attributes, in the order of the file.
    pub attrs: Vec<(String, Attr)>,
}

impl NodeDef {
    /// The attribute of this name.
    pub fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// Where an input comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct InputSource<'a> {
    /// The node.
    pub name: &'a str,
    /// Which of its outputs; `None` where only the order of execution is meant.
    pub port: Option<i64>,
}

impl<'a> InputSource<'a> {
    /// Takes an input as written apart: `[^]name[:port]`.
    pub fn of(input: &'a str) -> Self {
        let (name, port) = match input.split_once(':') {
            Some((name, port)) => (name, port.parse().unwrap_or(0)),
            None => (input, 0),
        };
        match name.strip_prefix('^') {
            Some(name) => InputSource { name, port: None },
            None => InputSource { name, port: Some(port) },
        }
    }
}

/// The value of an attribute. Contents of constants are not kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// A string, which need not be text.
    Bytes(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f32),
    /// A switch.
    Bool(bool),
    /// An element type.
    Type(DataType),
    /// A shape.
    Shape(Shape),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of strings.
    Texts(Vec<Vec<u8>>),
    /// A list of shapes.
    Shapes(Vec<Shape>),
    /// A list of something else, or of nothing.
    List,
    /// A tensor, a function, a placeholder.
    Other,
}

impl Attr {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Attr::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The switch, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Attr::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The list of integers, if it is one.
    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            Attr::Ints(values) => Some(values),
            _ => None,
        }
    }
}

/// A tensor's shape; −1 stands for an unknown size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The sizes.
    pub dims: Vec<i64>,
    /// True if even the number of dimensions is unknown.
    pub unknown_rank: bool,
}

/// An element type, by TensorFlow's number.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DataType(pub i64);

/// Name and size in bytes of each element type, by its number.
const DATA_TYPES: &[(&str, u64)] = &[
    ("invalid", 0),
    ("float32", 4),
    ("float64", 8),
    ("int32", 4),
    ("uint8", 1),
    ("int16", 2),
    ("int8", 1),
    ("string", 0),
    ("complex64", 8),
    ("int64", 8),
    ("bool", 1),
    ("qint8", 1),
    ("quint8", 1),
    ("qint32", 4),
    ("bfloat16", 2),
    ("qint16", 2),
    ("quint16", 2),
    ("uint16", 2),
    ("complex128", 16),
    ("float16", 2),
    ("resource", 0),
    ("variant", 0),
    ("uint32", 4),
    ("uint64", 8),
    ("float8_e5m2", 1),
    ("float8_e4m3fn", 1),
];

impl DataType {
    /// Its name in NumPy and TensorFlow.
    pub fn name(self) -> &'static str {
        self.entry().map_or("unknown", |(name, _)| name)
    }

    /// The size of an element in bytes; `None` if it depends on the element.
    pub fn size(self) -> Option<u64> {
        self.entry().map(|(_, size)| *size).filter(|&size| size > 0)
    }

    /// The type named `DT_…` in the text format.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix("DT_")?.to_ascii_lowercase();
        let name = match name.as_str() {
            "float" => "float32",
            "double" => "float64",
            "half" => "float16",
            other => other,
        };
        let number = DATA_TYPES.iter().position(|(known, _)| *known == name)?;
        Some(DataType(number as i64))
    }

    fn entry(self) -> Option<&'static (&'static str, u64)> {
        DATA_TYPES.get(usize::try_from(self.0).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_taken_apart() {
        assert_eq!(InputSource::of("a/b:2"), InputSource { name: "a/b", port: Some(2) });
        assert_eq!(InputSource::of("a"), InputSource { name: "a", port: Some(0) });
        assert_eq!(InputSource::of("^a"), InputSource { name: "a", port: None });
        assert_eq!(InputSource::of("a:x"), InputSource { name: "a", port: Some(0) });
    }

    #[test]
    fn element_types_have_names_and_sizes_both_ways() {
        assert_eq!((DataType(1).name(), DataType(1).size()), ("float32", Some(4)));
        assert_eq!(DataType::named("DT_HALF"), Some(DataType(19)));
        assert_eq!(DataType::named("DT_INT64"), Some(DataType(9)));
        assert_eq!((DataType(-3).name(), DataType(7).size()), ("unknown", None));
    }
}
