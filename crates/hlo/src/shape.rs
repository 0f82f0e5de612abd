//! Shapes: element types, dimensions, layouts and the bytes that they occupy.
//!
//! Sizes come from files and may be absurd, so all arithmetic saturates.

/// The type of an array's elements, by XLA's number. Numbers that are not known yet are kept: their size is unknown.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElementType(pub u8);

/// Name and size in bits of every element type, by its number.
const TYPES: [(&str, u32); 37] = [
    ("invalid", 0),
    ("pred", 8),
    ("s8", 8),
    ("s16", 16),
    ("s32", 32),
    ("s64", 64),
    ("u8", 8),
    ("u16", 16),
    ("u32", 32),
    ("u64", 64),
    ("f16", 16),
    ("f32", 32),
    ("f64", 64),
    ("tuple", 0),
    ("opaque", 0),
    ("c64", 64),
    ("bf16", 16),
    ("token", 0),
    ("c128", 128),
    ("f8e5m2", 8),
    ("f8e4m3fn", 8),
    ("s4", 4),
    ("u4", 4),
    ("f8e4m3b11fnuz", 8),
    ("f8e5m2fnuz", 8),
    ("f8e4m3fnuz", 8),
    ("s2", 2),
    ("u2", 2),
    ("f8e4m3", 8),
    ("f8e3m4", 8),
    ("s1", 1),
    ("u1", 1),
    ("f4e2m1fn", 4),
    ("f8e8m0fnu", 8),
    ("buffer", 0),
    ("f6e3m2fn", 6),
    ("f6e2m3fn", 6),
];

impl ElementType {
    /// Truth values, one byte each.
    pub const PRED: Self = ElementType(1);
    /// Half precision.
    pub const F16: Self = ElementType(10);
    /// Single precision.
    pub const F32: Self = ElementType(11);
    /// Double precision.
    pub const F64: Self = ElementType(12);
    /// Several values.
    pub const TUPLE: Self = ElementType(13);
    /// Complex numbers of single precision.
    pub const C64: Self = ElementType(15);
    /// Brain floating point.
    pub const BF16: Self = ElementType(16);
    /// An order of side effects, without content.
    pub const TOKEN: Self = ElementType(17);
    /// Complex numbers of double precision.
    pub const C128: Self = ElementType(18);

    /// As HLO text writes it.
    pub fn name(self) -> &'static str {
        TYPES.get(usize::from(self.0)).map_or("unknown", |(name, _)| name)
    }

    /// Bits per element in an array without a layout of its own; 0 for what is no array, or not known.
    pub fn bits(self) -> u32 {
        TYPES.get(usize::from(self.0)).map_or(0, |&(_, bits)| bits)
    }

    /// Whether it is an integer or a truth value.
    pub fn is_integer(self) -> bool {
        matches!(self.0, 1..=9 | 21 | 22 | 26 | 27 | 30 | 31)
    }

    /// Whether it is a floating-point number of 8 bits.
    pub fn is_float8(self) -> bool {
        matches!(self.0, 19 | 20 | 23 | 24 | 25 | 28 | 29 | 33)
    }
}

/// How an array lies in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Dimensions from the one that changes fastest.
    pub minor_to_major: Vec<i64>,
    /// Tiles, the outermost first.
    pub tiles: Vec<Vec<i64>>,
    /// Bits per element; 0 where the type says it.
    pub element_bits: u32,
    /// 0 is the device's main memory; 5 the host's.
    pub memory_space: i64,
}

/// The shape of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The type of elements; [`ElementType::TUPLE`] has parts instead.
    pub element: ElementType,
    /// Sizes of the dimensions.
    pub dims: Vec<i64>,
    /// How it lies in memory, if the program says so.
    pub layout: Option<Box<Layout>>,
    /// The parts of a tuple.
    pub parts: Vec<Shape>,
}

/// Bytes of a pointer: what a tuple holds per part.
const POINTER: u64 = 8;

impl Shape {
    /// As people write it where the order in memory does not matter: `f32[64,32]`.
    pub fn without_layout(&self) -> String {
        if self.is_tuple() {
            let parts: Vec<String> = self.parts.iter().map(Shape::without_layout).collect();
            return format!("({})", parts.join(", "));
        }
        let dims: Vec<String> = self.dims.iter().map(ToString::to_string).collect();
        format!("{}[{}]", self.element.name(), dims.join(","))
    }

    /// Whether it consists of parts.
    pub fn is_tuple(&self) -> bool {
        self.element == ElementType::TUPLE
    }

    /// Whether it is an array or a scalar.
    pub fn is_array(&self) -> bool {
        self.element.bits() > 0
    }

    /// Number of elements of an array; 1 for a scalar.
    pub fn elements(&self) -> u64 {
        self.dims.iter().fold(1, |product, &dim| product.saturating_mul(dim.max(0) as u64))
    }

    /// Number of elements of all arrays in it.
    pub fn all_elements(&self) -> u64 {
        self.leaves().iter().fold(0, |sum, leaf| sum.saturating_add(leaf.elements()))
    }

    /// The size of one dimension; 1 if it has none of that number.
    pub fn dim(&self, index: i64) -> u64 {
        let dim = usize::try_from(index).ok().and_then(|index| self.dims.get(index));
        dim.map_or(1, |&dim| dim.max(0) as u64)
    }

    /// Bytes of an array as it lies in memory, tiles filled up; of a tuple, its pointers.
    pub fn bytes(&self) -> u64 {
        if self.is_tuple() {
            return POINTER.saturating_mul(self.parts.len() as u64);
        }
        bits_to_bytes(self.padded_elements(), self.bits())
    }

    /// Bytes of all arrays in it, without pointers.
    pub fn array_bytes(&self) -> u64 {
        self.leaves().iter().fold(0, |sum, leaf| sum.saturating_add(leaf.bytes()))
    }

    /// Bytes of all arrays in it that lie in a memory space.
    pub fn bytes_in(&self, space: i64) -> u64 {
        let inside = self.leaves().into_iter().filter(|leaf| leaf.memory_space() == space);
        inside.fold(0, |sum, leaf| sum.saturating_add(leaf.bytes()))
    }

    /// Bytes that the elements need: no padding, and the type's own size.
    pub fn unpadded_bytes(&self) -> u64 {
        self.leaves()
            .iter()
            .fold(0, |sum, leaf| sum.saturating_add(bits_to_bytes(leaf.elements(), leaf.element.bits())))
    }

    /// The memory space that it lies in; 0 is the device's main memory.
    pub fn memory_space(&self) -> i64 {
        self.layout.as_ref().map_or(0, |layout| layout.memory_space)
    }

    /// The part at a path of tuple indices.
    pub fn at(&self, path: &[i64]) -> Option<&Shape> {
        path.iter().try_fold(self, |shape, &index| shape.parts.get(usize::try_from(index).ok()?))
    }

    /// All arrays and tokens in it, in order; itself if it is no tuple.
    pub fn leaves(&self) -> Vec<&Shape> {
        let mut found = Vec::new();
        self.collect_leaves(&mut found);
        found
    }

    fn collect_leaves<'s>(&'s self, found: &mut Vec<&'s Shape>) {
        if self.is_tuple() {
            self.parts.iter().for_each(|part| part.collect_leaves(found));
        } else {
            found.push(self);
        }
    }

    fn bits(&self) -> u32 {
        match self.layout.as_ref().map_or(0, |layout| layout.element_bits) {
            0 => self.element.bits(),
            bits => bits,
        }
    }

    /// Elements with those that fill up the tiles. The outermost tile covers the dimensions that change fastest.
    fn padded_elements(&self) -> u64 {
        let Some(layout) = self.layout.as_ref().filter(|layout| !layout.tiles.is_empty()) else {
            return self.elements();
        };
        let tile = layout.tiles.first().map_or(&[][..], Vec::as_slice);
        let mut sizes: Vec<u64> = layout.minor_to_major.iter().map(|&dim| self.dim(dim)).collect();
        sizes.resize(sizes.len().max(tile.len()), 1);
        for (size, &step) in sizes.iter_mut().zip(tile.iter().rev()) {
            *size = size.checked_next_multiple_of(step.max(1) as u64).unwrap_or(u64::MAX);
        }
        sizes.iter().fold(1, |product, &size| product.saturating_mul(size))
    }
}

fn bits_to_bytes(elements: u64, bits: u32) -> u64 {
    let bytes = (u128::from(elements) * u128::from(bits)).div_ceil(8);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl std::fmt::Display for Shape {
    /// As HLO text writes it, with layouts.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(out, true)
    }
}

impl Shape {
    /// The text of the shape; `layouts` adds how arrays lie in memory.
    pub fn write(&self, out: &mut dyn std::fmt::Write, layouts: bool) -> std::fmt::Result {
        if !self.is_tuple() {
            return self.write_array(out, layouts);
        }
        out.write_char('(')?;
        for (index, part) in self.parts.iter().enumerate() {
            match index {
                0 => {}
                // XLA numbers every fifth part, so that people find one in a long list.
                _ if index % 5 == 0 => write!(out, ", /*index={index}*/")?,
                _ => out.write_str(", ")?,
            }
            part.write(out, layouts)?;
        }
        out.write_char(')')
    }

    fn write_array(&self, out: &mut dyn std::fmt::Write, layouts: bool) -> std::fmt::Result {
        out.write_str(self.element.name())?;
        out.write_char('[')?;
        write_list(out, &self.dims)?;
        out.write_char(']')?;
        match &self.layout {
            Some(layout) if layouts && self.is_array() => layout.write(out, self.dims.len()),
            _ => Ok(()),
        }
    }
}

impl Layout {
    fn write(&self, out: &mut dyn std::fmt::Write, rank: usize) -> std::fmt::Result {
        let plain = self.tiles.is_empty() && self.element_bits == 0 && self.memory_space == 0;
        if plain && rank == 0 {
            return Ok(());
        }
        out.write_char('{')?;
        write_list(out, &self.minor_to_major)?;
        if !plain {
            out.write_char(':')?;
        }
        for (index, tile) in self.tiles.iter().enumerate() {
            out.write_str(if index == 0 { "T(" } else { "(" })?;
            write_list(out, tile)?;
            out.write_char(')')?;
        }
        if self.element_bits != 0 {
            write!(out, "E({})", self.element_bits)?;
        }
        if self.memory_space != 0 {
            write!(out, "S({})", self.memory_space)?;
        }
        out.write_char('}')
    }
}

fn write_list(out: &mut dyn std::fmt::Write, numbers: &[i64]) -> std::fmt::Result {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            out.write_char(',')?;
        }
        write!(out, "{number}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: ElementType, dims: &[i64]) -> Shape {
        Shape { element, dims: dims.to_vec(), ..Shape::default() }
    }

    #[test]
    fn tiles_are_filled_up_and_small_types_are_packed() {
        let mut shape = array(ElementType::BF16, &[3, 100]);
        assert_eq!(shape.bytes(), 600);
        let minor_to_major = vec![1, 0];
        shape.layout =
            Some(Box::new(Layout { minor_to_major, tiles: vec![vec![8, 128]], ..Layout::default() }));
        assert_eq!((shape.bytes(), shape.unpadded_bytes()), (8 * 128 * 2, 600));
        assert_eq!(shape.to_string(), "bf16[3,100]{1,0:T(8,128)}");
        assert_eq!(array(ElementType(21), &[5]).bytes(), 3, "five 4-bit numbers");
    }

    #[test]
    fn a_tuple_holds_pointers_and_its_arrays_count_apart() {
        let parts = vec![array(ElementType::F32, &[2, 3]), array(ElementType::PRED, &[])];
        let tuple = Shape { element: ElementType::TUPLE, parts, ..Shape::default() };
        assert_eq!((tuple.bytes(), tuple.array_bytes(), tuple.all_elements()), (16, 25, 7));
        assert_eq!(tuple.to_string(), "(f32[2,3], pred[])");
    }

    #[test]
    fn absurd_dimensions_saturate() {
        let shape = array(ElementType::F64, &[i64::MAX, i64::MAX, -1]);
        assert_eq!(shape.elements(), 0, "a negative size holds nothing");
        assert_eq!(array(ElementType::F64, &[i64::MAX, 4]).bytes(), u64::MAX);
    }
}
