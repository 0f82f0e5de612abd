//! A program as plain values: computations, instructions, and what each instruction says about itself.
//!
//! Everything borrows from the bytes of the file. The parts that most questions need (names, shapes, operands) are decoded
//! once; the rest of an instruction is decoded from its own bytes when asked for, so that a program of half a million
//! instructions costs a few hundred bytes for each.

use rustc_hash::FxHashMap;
use stepscope_wire::Broken;

use crate::fields::{fields, last, numbers};
use crate::frames::Frames;
use crate::schema::instruction as field;
use crate::shape::Shape;

/// The number of an instruction within its module.
pub type InstructionId = u32;
/// The number of a computation within its module.
pub type ComputationId = u32;

/// One compiled program.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// Such as `jit_train_step`.
    pub name: &'a str,
    /// The number that XLA gave it. On TPUs, profiles use another one.
    pub id: u64,
    /// Callees come before their callers.
    pub computations: Vec<Computation<'a>>,
    /// The instructions of all computations, one computation after the other.
    pub instructions: Vec<Instruction<'a>>,
    /// Where the program starts.
    pub entry: Option<ComputationId>,
    /// The order in which a computation's instructions run, where the compiler fixed it.
    pub schedule: FxHashMap<ComputationId, Vec<InstructionId>>,
    /// Source files, functions and lines.
    pub frames: Frames<'a>,
    /// Devices that the program was compiled for; 0 if it does not say.
    pub devices: u64,
    /// Parameters whose memory an output takes over.
    pub aliases: Vec<Alias>,
    /// Where reading stopped, if the bytes are damaged.
    pub damage: Option<Broken>,
    pub(crate) payloads: Vec<&'a [u8]>,
    pub(crate) by_id: FxHashMap<i64, InstructionId>,
    pub(crate) buffers: &'a [u8],
}

/// An output that takes over the memory of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Path to the output in the result.
    pub output: Vec<i64>,
    /// The parameter.
    pub parameter: i64,
    /// Path to the part of the parameter.
    pub part: Vec<i64>,
}

/// A sequence of instructions: the program, the body of a loop, or what a fusion computes.
#[derive(Clone, Debug, Default)]
pub struct Computation<'a> {
    /// Unique in the module.
    pub name: &'a str,
    /// Its instructions, operands before their users.
    pub instructions: std::ops::Range<InstructionId>,
    /// The instruction whose value it returns.
    pub root: Option<InstructionId>,
    /// Whether the file calls it fused.
    pub is_fusion: bool,
    pub(crate) id: i64,
    pub(crate) root_id: i64,
}

/// One operation.
#[derive(Clone, Debug, Default)]
pub struct Instruction<'a> {
    /// Unique in the module; events of a profile carry it as `hlo_op`.
    pub name: &'a str,
    /// Such as `dot` or `all-reduce-start`.
    pub opcode: &'a str,
    /// The shape of its result.
    pub shape: Shape,
    /// The operation of the framework that it comes from, with its scopes.
    pub op_name: &'a str,
    /// The framework's kind of operation, where it says so.
    pub op_type: &'a str,
    /// Values that it takes.
    pub operands: Vec<InstructionId>,
    /// Computations that it runs: `[body, condition]` of a loop, the branches of a conditional, what a fusion computes.
    pub called: Vec<ComputationId>,
    /// Where it stands.
    pub computation: ComputationId,
    pub(crate) source_file: &'a str,
    pub(crate) source_line: i64,
    pub(crate) frame: i64,
    pub(crate) id: i64,
    pub(crate) raw: &'a [u8],
}

/// How a window moves over one dimension.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// Elements in the window.
    pub size: i64,
    /// From one position to the next.
    pub stride: i64,
    /// Elements added before the first.
    pub low: i64,
    /// Elements added after the last.
    pub high: i64,
    /// Distance between elements of the window.
    pub window_dilation: i64,
    /// Distance between elements of the operand.
    pub base_dilation: i64,
    /// Whether the window runs backwards.
    pub reversed: bool,
}

/// Which dimensions a product sums over and which it keeps apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotDims {
    /// Summed over, of the left operand.
    pub lhs_contracting: Vec<i64>,
    /// Summed over, of the right operand.
    pub rhs_contracting: Vec<i64>,
    /// Kept apart, of the left operand.
    pub lhs_batch: Vec<i64>,
    /// Kept apart, of the right operand.
    pub rhs_batch: Vec<i64>,
}

/// Which dimension means what in a convolution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvolutionDims {
    /// Batch, channels, then space, of the input.
    pub input: (i64, i64, Vec<i64>),
    /// Input channels, output channels, then space, of the kernel.
    pub kernel: (i64, i64, Vec<i64>),
    /// Batch, channels, then space, of the output.
    pub output: (i64, i64, Vec<i64>),
}

impl<'a> Module<'a> {
    /// An instruction by its number.
    pub fn instruction(&self, id: InstructionId) -> Option<&Instruction<'a>> {
        self.instructions.get(id as usize)
    }

    /// A computation by its number.
    pub fn computation(&self, id: ComputationId) -> Option<&Computation<'a>> {
        self.computations.get(id as usize)
    }

    /// The instructions of a computation, with their numbers.
    pub fn instructions_of(
        &self,
        computation: &Computation<'a>,
    ) -> impl DoubleEndedIterator<Item = (InstructionId, &Instruction<'a>)> + Clone {
        let range = computation.instructions.clone();
        let found = self.instructions.get(range.start as usize..range.end as usize).unwrap_or_default();
        range.zip(found)
    }

    /// The operands of an instruction that exist.
    pub fn operands<'m>(
        &'m self,
        instruction: &'m Instruction<'a>,
    ) -> impl Iterator<Item = &'m Instruction<'a>> {
        instruction.operands.iter().filter_map(|&id| self.instruction(id))
    }

    /// One operand of an instruction.
    pub fn operand(&self, instruction: &Instruction<'a>, index: usize) -> Option<&Instruction<'a>> {
        self.instruction(*instruction.operands.get(index)?)
    }

    /// An instruction by its name.
    pub fn named(&self, name: &str) -> Option<InstructionId> {
        let found = self.instructions.iter().position(|instruction| instruction.name == name)?;
        InstructionId::try_from(found).ok()
    }

    /// The root of a computation.
    pub fn root_of(&self, computation: ComputationId) -> Option<&Instruction<'a>> {
        self.instruction(self.computation(computation)?.root?)
    }

    /// What an instruction's backend keeps about it: JSON text on current versions, a message or anything else on others.
    pub fn config(&self, instruction: &Instruction<'a>) -> &'a [u8] {
        let own = last(instruction.raw, field::BACKEND_CONFIG).map_or(&[][..], |value| value.bytes());
        if !own.is_empty() {
            return own;
        }
        let payload = last(instruction.raw, field::CONFIG_PAYLOAD).map_or(&[][..], |value| value.bytes());
        let inside = last(payload, 1).map_or(&[][..], |value| value.bytes());
        let index = last(payload, 2).and_then(|value| usize::try_from(value.number()).ok());
        match index {
            Some(index) if inside.is_empty() => self.payloads.get(index).copied().unwrap_or_default(),
            _ => inside,
        }
    }
}

impl<'a> Instruction<'a> {
    /// The number of a parameter.
    pub fn parameter_number(&self) -> i64 {
        self.number(field::PARAMETER_NUMBER)
    }

    /// The part that a `get-tuple-element` takes.
    pub fn tuple_index(&self) -> i64 {
        self.number(field::TUPLE_INDEX)
    }

    /// `kLoop`, `kInput`, `kOutput` or `kCustom`.
    pub fn fusion_kind(&self) -> &'a str {
        self.text(field::FUSION_KIND)
    }

    /// What a custom call calls.
    pub fn target(&self) -> &'a str {
        self.text(field::TARGET)
    }

    /// How a comparison compares.
    pub fn direction(&self) -> &'a str {
        self.text(field::DIRECTION)
    }

    /// The dimensions that it is about: of a transpose, a broadcast, a reduction …
    pub fn dimensions(&self) -> Vec<i64> {
        numbers(self.raw, field::DIMENSIONS)
    }

    /// The lengths of a Fourier transform.
    pub fn fft_lengths(&self) -> Vec<i64> {
        numbers(self.raw, field::FFT_LENGTH)
    }

    /// Sizes that a `dynamic-slice` takes.
    pub fn slice_sizes(&self) -> Vec<i64> {
        numbers(self.raw, field::SLICE_SIZES)
    }

    /// Start, limit and stride of a slice, per dimension.
    pub fn slices(&self) -> Vec<(i64, i64, i64)> {
        self.messages(field::SLICE).map(|slice| (at(slice, 1), at(slice, 2), at(slice, 3))).collect()
    }

    /// Elements added before, after and between, per dimension.
    pub fn padding(&self) -> Vec<(i64, i64, i64)> {
        let config = self.message(field::PADDING);
        let dims = fields(config).filter(|(number, _)| *number == 1).map(|(_, value)| value.bytes());
        dims.map(|dim| (at(dim, 1), at(dim, 2), at(dim, 3))).collect()
    }

    /// The window of a convolution or a windowed reduction.
    pub fn window(&self) -> Vec<WindowDim> {
        let window = self.message(field::WINDOW);
        let dims = fields(window).filter(|(number, _)| *number == 1).map(|(_, value)| value.bytes());
        let dim = |dim: &[u8]| WindowDim {
            size: at(dim, 1),
            // A factor that is not set means one.
            stride: at(dim, 2).max(1),
            low: at(dim, 3),
            high: at(dim, 4),
            window_dilation: at(dim, 5).max(1),
            base_dilation: at(dim, 6).max(1),
            reversed: at(dim, 7) != 0,
        };
        dims.map(dim).collect()
    }

    /// The dimensions of a `dot`, or of a dot whose groups differ in size.
    pub fn dot_dims(&self) -> Option<DotDims> {
        let own = self.message(field::DOT);
        let ragged = self.message(field::RAGGED_DOT);
        let inside = last(ragged, 1).map_or(&[][..], |value| value.bytes());
        let message = if own.is_empty() { inside } else { own };
        (!message.is_empty() || self.opcode == "dot").then(|| DotDims::read(message))
    }

    /// The dimensions of a convolution.
    pub fn convolution_dims(&self) -> Option<ConvolutionDims> {
        let message = last(self.raw, field::CONVOLUTION)?.bytes();
        Some(ConvolutionDims {
            input: (at(message, 7), at(message, 8), numbers(message, 11)),
            kernel: (at(message, 3), at(message, 4), numbers(message, 6)),
            output: (at(message, 9), at(message, 10), numbers(message, 12)),
        })
    }

    /// Groups of channels and of batches that a convolution treats apart; at least 1.
    pub fn groups(&self) -> (u64, u64) {
        let group = |number| self.number(number).max(1) as u64;
        (group(field::FEATURE_GROUPS), group(field::BATCH_GROUPS))
    }

    /// The precision demanded of the operands (0 default, 1 high, 2 highest) and the number of the algorithm (0: any).
    pub fn precision(&self) -> (i64, i64) {
        let message = self.message(field::PRECISION);
        let demanded = numbers(message, 1).into_iter().max().unwrap_or(0);
        (demanded, at(message, 2))
    }

    /// Ranks in the largest group of a collective; 0 if all devices form one.
    pub fn group_size(&self) -> u64 {
        let largest = |groups: &mut dyn Iterator<Item = &[u8]>| {
            groups.map(|group| numbers(group, 1).len() as u64).max().unwrap_or(0)
        };
        let list = self.message(field::DEVICE_LIST);
        let groups = fields(list).filter(|(number, _)| *number == 1).map(|(_, value)| value.bytes());
        let compact = last(list, 2).map_or(&[][..], |value| value.bytes());
        let old = largest(&mut self.messages(field::REPLICA_GROUPS));
        [largest(&mut { groups }), at(compact, 2).max(0) as u64, old]
            .into_iter()
            .chain([at(self.message(field::IOTA_DEVICE_LIST), 2).max(0) as u64])
            .max()
            .unwrap_or(0)
    }

    /// Sender and receiver of each copy of a `collective-permute`.
    pub fn pairs(&self) -> Vec<(i64, i64)> {
        self.messages(field::PAIRS).map(|pair| (at(pair, 1), at(pair, 2))).collect()
    }

    /// The channel of a collective; 0 without one.
    pub fn channel(&self) -> i64 {
        self.number(field::CHANNEL_ID)
    }

    /// The bytes of a constant as the file encodes them.
    pub fn literal(&self) -> &'a [u8] {
        self.message(field::LITERAL)
    }

    fn number(&self, number: u32) -> i64 {
        at(self.raw, number)
    }

    fn text(&self, number: u32) -> &'a str {
        last(self.raw, number).map_or("", |value| value.text())
    }

    fn message(&self, number: u32) -> &'a [u8] {
        last(self.raw, number).map_or(&[], |value| value.bytes())
    }

    fn messages(&self, number: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        fields(self.raw).filter(move |(found, _)| *found == number).map(|(_, value)| value.bytes())
    }
}

impl DotDims {
    pub(crate) fn read(message: &[u8]) -> Self {
        DotDims {
            lhs_contracting: numbers(message, 1),
            rhs_contracting: numbers(message, 2),
            lhs_batch: numbers(message, 3),
            rhs_batch: numbers(message, 4),
        }
    }
}

fn at(message: &[u8], number: u32) -> i64 {
    last(message, number).map_or(0, |value| value.number())
}
