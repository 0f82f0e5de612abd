//! What a backend writes down about an instruction: JSON text on current versions of XLA, a message on older ones.

use serde_json::Value;

use crate::cost::json_dims;
use crate::fields::last;
use crate::module::{DotDims, Instruction, Module};

/// The longest text that is parsed. Kernels of Pallas carry their code in it.
const LONGEST: usize = 16 << 20;

/// A configuration, parsed where it is JSON.
#[derive(Clone, Debug)]
pub(crate) struct Config<'a> {
    bytes: &'a [u8],
    json: Option<Value>,
}

impl<'a> Config<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let looks_like_json = bytes.trim_ascii_start().first() == Some(&b'{') && bytes.len() <= LONGEST;
        let json = looks_like_json.then(|| serde_json::from_slice(bytes).ok()).flatten();
        Config { bytes, json }
    }

    /// A member of the outermost object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.json.as_ref()?.get(key)
    }

    /// The dimensions of a library's product. Older versions have its configuration without the one around it, or as a
    /// message.
    pub fn dot_dims(&self) -> Option<DotDims> {
        if let Some(json) = &self.json {
            let gemm = json.get("gemm_backend_config").unwrap_or(json);
            return json_dims(gemm.get("dot_dimension_numbers")?);
        }
        let gemm = last(self.bytes, 4)?.bytes();
        Some(DotDims::read(last(gemm, 7)?.bytes()))
    }
}

/// A number, which JSON made of messages writes as text if it has 64 bits.
pub(crate) fn number(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|value| value as i64))
        .or_else(|| value.as_str()?.parse().ok())
}

/// A list of numbers; empty if there is none.
pub(crate) fn numbers(value: Option<&Value>) -> Vec<i64> {
    let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(number).collect()
}

impl<'a> Module<'a> {
    /// How often the compiler says that a loop runs, if it knows.
    pub fn trip_count(&self, instruction: &Instruction<'a>) -> Option<u64> {
        let config = Config::of(self.config(instruction));
        number(config.get("known_trip_count")?.get("n")?).and_then(|count| u64::try_from(count).ok())
    }

    /// The kind of library or generator behind a fusion, such as `__triton_gemm` or `__cudnn$fusion`; empty for ordinary ones.
    pub fn fusion_backend(&self, instruction: &Instruction<'a>) -> String {
        let config = Config::of(self.config(instruction));
        let kind = config.get("fusion_backend_config").or_else(|| config.get("fusion_config"));
        kind.and_then(|kind| kind.get("kind")).and_then(Value::as_str).unwrap_or_default().to_owned()
    }
}
