//! The variables of a checkpoint.

use crate::DataType;

/// A variable of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub data_type: DataType,
    /// Its shape; empty for a single value.
    pub shape: Vec<i64>,
    /// Its size in the file in bytes.
    pub bytes: u64,
    /// Its values, if they could be read.
    pub values: Option<Values>,
}

/// A variable's values in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers with a fraction.
    Floats(Vec<f64>),
    /// Integers.
    Ints(Vec<i64>),
}
