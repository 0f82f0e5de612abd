//! Programs as HLO text, the way XLA's own tools print them: `name = shape opcode(operands), attributes`.

use std::fmt::Write;

use crate::fields::{fields, last, numbers};
use crate::module::{Computation, ComputationId, Instruction, Module, WindowDim};
use crate::schema::instruction as field;
use crate::shape::ElementType;

/// What a text shows beside the operations.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Names with `%`, signatures of computations, and where each instruction comes from.
    pub long: bool,
}

impl<'a> Module<'a> {
    /// The whole program, callees first.
    pub fn text(&self, options: TextOptions) -> String {
        let mut out = format!("HloModule {}\n", self.name);
        for (computation, id) in self.computations.iter().zip(0..) {
            out.push('\n');
            self.write_computation(&mut out, computation, id, options);
        }
        out
    }

    fn write_computation(
        &self,
        out: &mut String,
        computation: &Computation<'a>,
        id: ComputationId,
        options: TextOptions,
    ) {
        if self.entry == Some(id) {
            out.push_str("ENTRY ");
        }
        let sign = if options.long { "%" } else { "" };
        let _ = write!(out, "{sign}{} ", computation.name);
        if options.long {
            self.write_signature(out, computation);
        }
        out.push_str("{\n");
        let scheduled = self.schedule.get(&id).filter(|order| order.len() == computation.instructions.len());
        let order: Vec<u32> =
            scheduled.cloned().unwrap_or_else(|| computation.instructions.clone().collect());
        for number in order {
            let Some(instruction) = self.instruction(number) else { continue };
            out.push_str(if computation.root == Some(number) { "  ROOT " } else { "  " });
            self.write_instruction(out, instruction, options);
            out.push('\n');
        }
        out.push_str("}\n");
    }

    fn write_signature(&self, out: &mut String, computation: &Computation<'a>) {
        let mut parameters: Vec<&Instruction<'a>> = self
            .instructions_of(computation)
            .map(|(_, instruction)| instruction)
            .filter(|instruction| instruction.opcode == "parameter")
            .collect();
        parameters.sort_by_key(|parameter| parameter.parameter_number());
        out.push('(');
        for (index, parameter) in parameters.into_iter().enumerate() {
            let _ = write!(out, "{}{}: ", if index > 0 { ", " } else { "" }, parameter.name);
            let _ = parameter.shape.write(out, false);
        }
        out.push_str(") -> ");
        if let Some(root) = computation.root.and_then(|root| self.instruction(root)) {
            let _ = root.shape.write(out, false);
        }
        out.push(' ');
    }

    /// One instruction as a line of text.
    pub fn line(&self, instruction: &Instruction<'a>, options: TextOptions) -> String {
        let mut out = String::new();
        self.write_instruction(&mut out, instruction, options);
        out
    }

    fn write_instruction(&self, out: &mut String, instruction: &Instruction<'a>, options: TextOptions) {
        let sign = if options.long { "%" } else { "" };
        let _ = write!(out, "{sign}{} = {} {}(", instruction.name, instruction.shape, instruction.opcode);
        match instruction.opcode {
            "parameter" => {
                let _ = write!(out, "{}", instruction.parameter_number());
            }
            "constant" => out.push_str(&constant(instruction)),
            _ => {
                for (index, operand) in self.operands(instruction).enumerate() {
                    let comma = match index {
                        0 => String::new(),
                        _ if options.long && index % 5 == 0 => format!(", /*index={index}*/"),
                        _ => ", ".to_owned(),
                    };
                    let _ = write!(out, "{comma}{sign}{}", operand.name);
                }
            }
        }
        out.push(')');
        for attribute in self.attributes(instruction, sign) {
            let _ = write!(out, ", {attribute}");
        }
        if options.long {
            self.write_origin(out, instruction);
        }
    }

    fn write_origin(&self, out: &mut String, instruction: &Instruction<'a>) {
        let source = self.source(instruction);
        if instruction.op_name.is_empty() && source.is_none() {
            return;
        }
        let _ = write!(out, ", metadata={{op_name=\"{}\"", instruction.op_name);
        if let Some(source) = source {
            let _ = write!(out, " source_file=\"{}\" source_line={}", source.file, source.line);
        }
        out.push('}');
    }

    /// What follows the operands, in the order of XLA's own text.
    fn attributes(&self, instruction: &Instruction<'a>, sign: &str) -> Vec<String> {
        let mut found = Vec::new();
        let called = |index: usize| {
            let callee = instruction.called.get(index).and_then(|&callee| self.computation(callee));
            callee.map_or(String::new(), |callee| format!("{sign}{}", callee.name))
        };
        match instruction.opcode {
            "dot" => dot_attributes(instruction, &mut found),
            "convolution" | "custom-call" => convolution_attributes(instruction, &mut found),
            "reduce-window" => found.push(window_text(&instruction.window())),
            "broadcast" | "transpose" | "reduce" | "concatenate" | "reverse" | "sort" | "map" => {
                found.push(format!("dimensions={}", list(&instruction.dimensions())));
            }
            "iota" => {
                found.push(format!("iota_dimension={}", instruction.dimensions().first().unwrap_or(&0)));
            }
            "get-tuple-element" => found.push(format!("index={}", instruction.tuple_index())),
            "compare" => found.push(format!("direction={}", instruction.direction())),
            "slice" => found.push(slice_text(instruction)),
            "pad" => found.push(padding_text(instruction)),
            "dynamic-slice" => {
                found.push(format!("dynamic_slice_sizes={}", list(&instruction.slice_sizes())));
            }
            "gather" => gather_attributes(instruction, &mut found),
            "scatter" => scatter_attributes(instruction, &mut found),
            "while" => found.extend([format!("condition={}", called(1)), format!("body={}", called(0))]),
            "fusion" => {
                found.extend([format!("kind={}", instruction.fusion_kind()), format!("calls={}", called(0))]);
            }
            "conditional" => {
                let names: Vec<String> = (0..instruction.called.len()).map(called).collect();
                found.push(format!("branch_computations={{{}}}", names.join(", ")));
            }
            _ => collective_attributes(instruction, &mut found),
        }
        if matches!(instruction.opcode, "reduce" | "reduce-window" | "scatter" | "sort" | "map" | "call")
            || (instruction.opcode.contains("reduce") && !instruction.called.is_empty())
        {
            found.push(format!("to_apply={}", called(0)));
        }
        if instruction.opcode == "custom-call" {
            found.push(format!("custom_call_target=\"{}\"", instruction.target()));
        }
        found
    }
}

fn list(numbers: &[i64]) -> String {
    let parts: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("{{{}}}", parts.join(","))
}

fn dot_attributes(instruction: &Instruction<'_>, found: &mut Vec<String>) {
    let dims = instruction.dot_dims().unwrap_or_default();
    let all = [
        ("lhs_batch_dims", &dims.lhs_batch, false),
        ("lhs_contracting_dims", &dims.lhs_contracting, true),
        ("rhs_batch_dims", &dims.rhs_batch, false),
        ("rhs_contracting_dims", &dims.rhs_contracting, true),
    ];
    for (name, dims, always) in all {
        if always || !dims.is_empty() {
            found.push(format!("{name}={}", list(dims)));
        }
    }
}

fn convolution_attributes(instruction: &Instruction<'_>, found: &mut Vec<String>) {
    let Some(dims) = instruction.convolution_dims() else { return };
    let window = instruction.window();
    if !window.is_empty() {
        found.push(window_text(&window));
    }
    let labels = |names: (char, char), (first, second, space): &(i64, i64, Vec<i64>)| {
        let mut labels = vec!['?'; space.len() + 2];
        let mut put = |place: i64, label: char| {
            if let Some(to) = usize::try_from(place).ok().and_then(|place| labels.get_mut(place)) {
                *to = label;
            }
        };
        put(*first, names.0);
        put(*second, names.1);
        for (&place, digit) in space.iter().zip('0'..='9') {
            put(place, digit);
        }
        labels.into_iter().collect::<String>()
    };
    let (input, kernel) = (labels(('b', 'f'), &dims.input), labels(('i', 'o'), &dims.kernel));
    found.push(format!("dim_labels={input}_{kernel}->{}", labels(('b', 'f'), &dims.output)));
    let (features, batches) = instruction.groups();
    if features > 1 {
        found.push(format!("feature_group_count={features}"));
    }
    if batches > 1 {
        found.push(format!("batch_group_count={batches}"));
    }
}

fn window_text(window: &[WindowDim]) -> String {
    let each = |text: &dyn Fn(&WindowDim) -> String| window.iter().map(text).collect::<Vec<_>>().join("x");
    let mut parts = vec![format!("size={}", each(&|dim| dim.size.to_string()))];
    let mut add = |name: &str, trivial: bool, text: &dyn Fn(&WindowDim) -> String| {
        if !trivial {
            parts.push(format!("{name}={}", each(text)));
        }
    };
    add("stride", window.iter().all(|dim| dim.stride == 1), &|dim| dim.stride.to_string());
    let unpadded = window.iter().all(|dim| dim.low == 0 && dim.high == 0);
    add("pad", unpadded, &|dim| format!("{}_{}", dim.low, dim.high));
    add("lhs_dilate", window.iter().all(|dim| dim.base_dilation == 1), &|dim| dim.base_dilation.to_string());
    add("rhs_dilate", window.iter().all(|dim| dim.window_dilation == 1), &|dim| {
        dim.window_dilation.to_string()
    });
    add("rhs_reversal", window.iter().all(|dim| !dim.reversed), &|dim| u8::from(dim.reversed).to_string());
    format!("window={{{}}}", parts.join(" "))
}

fn slice_text(instruction: &Instruction<'_>) -> String {
    let dim = |(start, limit, stride): (i64, i64, i64)| match stride {
        0 | 1 => format!("[{start}:{limit}]"),
        _ => format!("[{start}:{limit}:{stride}]"),
    };
    let dims: Vec<String> = instruction.slices().into_iter().map(dim).collect();
    format!("slice={{{}}}", dims.join(", "))
}

fn padding_text(instruction: &Instruction<'_>) -> String {
    let padding = instruction.padding();
    let between = padding.iter().any(|&(_, _, between)| between != 0);
    let dim = |(low, high, inside): (i64, i64, i64)| {
        if between { format!("{low}_{high}_{inside}") } else { format!("{low}_{high}") }
    };
    let dims: Vec<String> = padding.into_iter().map(dim).collect();
    format!("padding={}", dims.join("x"))
}

fn gather_attributes(instruction: &Instruction<'_>, found: &mut Vec<String>) {
    let dims = last(instruction.raw, field::GATHER).map_or(&[][..], |value| value.bytes());
    for (number, name) in [(1, "offset_dims"), (2, "collapsed_slice_dims"), (3, "start_index_map")] {
        found.push(format!("{name}={}", list(&numbers(dims, number))));
    }
    found.push(format!("index_vector_dim={}", last(dims, 4).map_or(0, |value| value.number())));
    found.push(format!("slice_sizes={}", list(&numbers(instruction.raw, field::GATHER_SIZES))));
}

fn scatter_attributes(instruction: &Instruction<'_>, found: &mut Vec<String>) {
    let dims = last(instruction.raw, field::SCATTER).map_or(&[][..], |value| value.bytes());
    let names = [(1, "update_window_dims"), (2, "inserted_window_dims"), (3, "scatter_dims_to_operand_dims")];
    for (number, name) in names {
        found.push(format!("{name}={}", list(&numbers(dims, number))));
    }
    found.push(format!("index_vector_dim={}", last(dims, 4).map_or(0, |value| value.number())));
}

fn collective_attributes(instruction: &Instruction<'_>, found: &mut Vec<String>) {
    let Some(kind) = crate::collective_kind(instruction.opcode) else { return };
    if instruction.channel() != 0 {
        found.push(format!("channel_id={}", instruction.channel()));
    }
    let pairs = instruction.pairs();
    if pairs.is_empty() {
        found.push(format!("replica_groups={}", groups_text(instruction)));
    } else {
        let pairs: Vec<String> = pairs.iter().map(|(from, to)| format!("{{{from},{to}}}")).collect();
        found.push(format!("source_target_pairs={{{}}}", pairs.join(",")));
    }
    let dimensions = instruction.dimensions();
    let global = last(instruction.raw, field::GLOBAL_IDS).is_some_and(|value| value.number() != 0);
    // The one place where XLA's own order differs by operation.
    if kind == "all-gather" && !dimensions.is_empty() {
        found.push(format!("dimensions={}", list(&dimensions)));
    }
    if global {
        found.push("use_global_device_ids=true".to_owned());
    }
    if kind != "all-gather" && !dimensions.is_empty() {
        found.push(format!("dimensions={}", list(&dimensions)));
    }
}

fn groups_text(instruction: &Instruction<'_>) -> String {
    let compact = last(instruction.raw, field::IOTA_DEVICE_LIST).map_or(&[][..], |value| value.bytes());
    if !compact.is_empty() {
        let number = |field| last(compact, field).map_or(0, |value| value.number());
        let shape: Vec<String> = numbers(compact, 3).iter().map(i64::to_string).collect();
        let turned: Vec<String> = numbers(compact, 4).iter().map(i64::to_string).collect();
        let plain = numbers(compact, 4).windows(2).all(|pair| pair[0] < pair[1]);
        let turned = if plain { String::new() } else { format!("T({})", turned.join(",")) };
        return format!("[{},{}]<=[{}]{turned}", number(1), number(2), shape.join(","));
    }
    let device_list = last(instruction.raw, field::DEVICE_LIST).map_or(&[][..], |value| value.bytes());
    let groups = |message, field| {
        let groups = fields(message).filter(move |(number, _)| *number == field);
        groups.map(|(_, value)| list(&numbers(value.bytes(), 1))).collect::<Vec<_>>()
    };
    let mut found = groups(device_list, 1);
    if found.is_empty() {
        found = groups(instruction.raw, field::REPLICA_GROUPS);
    }
    format!("{{{}}}", found.join(","))
}

/// A scalar constant; `{...}` for arrays, whose values would fill pages.
fn constant(instruction: &Instruction<'_>) -> String {
    let literal = instruction.literal();
    let float = |field| last(literal, field).map(|value| value.bytes());
    if !instruction.shape.is_array() || !instruction.shape.dims.is_empty() {
        return "{...}".to_owned();
    }
    let integer = |field| numbers(literal, field).first().copied();
    let text = match instruction.shape.element {
        ElementType::PRED => integer(2).map(|value| (value != 0).to_string()),
        ElementType(4) => integer(4).map(|value| (value as i32).to_string()),
        ElementType(5) => integer(5).map(|value| value.to_string()),
        ElementType(8) => integer(6).map(|value| (value as u32).to_string()),
        ElementType(9) => integer(7).map(|value| (value as u64).to_string()),
        ElementType::F32 => float(8)
            .and_then(|bytes| bytes.first_chunk())
            .map(|bytes| single_text(f32::from_le_bytes(*bytes))),
        ElementType::F64 => float(9)
            .and_then(|bytes| bytes.first_chunk())
            .map(|bytes| double_text(f64::from_le_bytes(*bytes))),
        _ => None,
    };
    text.unwrap_or_else(|| "{...}".to_owned())
}

/// A number with as many digits as it needs to be read back: those that all numbers have, or all of its own.
fn single_text(value: f32) -> String {
    let short = float_text(f64::from(value), 6);
    if short.parse() == Ok(value) { short } else { float_text(f64::from(value), 9) }
}

fn double_text(value: f64) -> String {
    let short = float_text(value, 15);
    if short.parse() == Ok(value) { short } else { float_text(value, 17) }
}

/// Like `%.9g`: rounded to so many digits, without zeros at the end, with a power of ten only if it is far from one.
fn float_text(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if !(-4..digits as i32).contains(&power) {
        return format!("{}e{}{:02}", trim(mantissa), if power < 0 { '-' } else { '+' }, power.abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - power).unwrap_or(0);
    trim(&format!("{value:.decimals$}"))
}
