//! The 21 options of tfprof, with its names and defaults, and the presets of ProfileOptionBuilder.

use std::collections::BTreeSet;
use std::fmt;

use crate::patterns::Patterns;

/// What a view shows and how. The defaults are those of tfprof's command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Rows deeper than this are not shown.
    pub max_depth: i64,
    /// Rows with less requested memory in total are not shown; so for all `min_…`.
    pub min_bytes: i64,
    /// The same for peak memory.
    pub min_peak_bytes: i64,
    /// The same for memory still held.
    pub min_residual_bytes: i64,
    /// The same for memory in outputs.
    pub min_output_bytes: i64,
    /// The same for time in µs.
    pub min_micros: i64,
    /// The same for accelerator time in µs.
    pub min_accelerator_micros: i64,
    /// The same for host time in µs.
    pub min_cpu_micros: i64,
    /// The same for parameters.
    pub min_params: i64,
    /// The same for float operations.
    pub min_float_ops: i64,
    /// The same for the number of runs.
    pub min_occurrence: i64,
    /// The step to show; −1 shows averages over all.
    pub step: i64,
    /// The sort key.
    pub order_by: OrderBy,
    /// Types of nodes that count.
    pub account_type_regexes: Patterns,
    /// Names at which the view starts.
    pub start_name_regexes: Patterns,
    /// Names below which nothing is shown.
    pub trim_name_regexes: Patterns,
    /// Names that are shown.
    pub show_name_regexes: Patterns,
    /// Names that are not shown.
    pub hide_name_regexes: Patterns,
    /// True if totals only cover what is shown.
    pub account_displayed_op_only: bool,
    /// The columns.
    pub select: BTreeSet<Column>,
    /// Where the view goes.
    pub output: Output,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_depth: 10,
            min_bytes: 0,
            min_peak_bytes: 0,
            min_residual_bytes: 0,
            min_output_bytes: 0,
            min_micros: 0,
            min_accelerator_micros: 0,
            min_cpu_micros: 0,
            min_params: 0,
            min_float_ops: 0,
            min_occurrence: 0,
            step: -1,
            order_by: OrderBy::Name,
            account_type_regexes: Patterns::all(),
            start_name_regexes: Patterns::all(),
            trim_name_regexes: Patterns::default(),
            show_name_regexes: Patterns::all(),
            hide_name_regexes: Patterns::default(),
            account_displayed_op_only: false,
            select: BTreeSet::from([Column::Micros]),
            output: Output::Stdout,
        }
    }
}

/// Predefined options of ProfileOptionBuilder.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Time and requested memory, slowest first.
    TimeAndMemory,
    /// Parameters of trainable variables.
    TrainableVariablesParameter,
    /// Float operations, largest first.
    FloatOperation,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 3] =
        [Preset::TimeAndMemory, Preset::TrainableVariablesParameter, Preset::FloatOperation];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Preset::TimeAndMemory => "time_and_memory",
            Preset::TrainableVariablesParameter => "trainable_variables_parameter",
            Preset::FloatOperation => "float_operation",
        }
    }

    /// Its options.
    pub fn options(self) -> Options {
        let base = Options { max_depth: 10_000, account_displayed_op_only: true, ..Options::default() };
        match self {
            Preset::TimeAndMemory => Options {
                min_micros: 1,
                min_bytes: 1,
                order_by: OrderBy::Micros,
                select: BTreeSet::from([Column::Micros, Column::Bytes]),
                ..base
            },
            Preset::TrainableVariablesParameter => Options {
                account_type_regexes: Patterns::new(vec!["_trainable_variables".to_owned()])
                    .unwrap_or_default(),
                select: BTreeSet::from([Column::Params]),
                ..base
            },
            Preset::FloatOperation => Options {
                min_float_ops: 1,
                order_by: OrderBy::FloatOps,
                select: BTreeSet::from([Column::FloatOps]),
                ..base
            },
        }
    }
}

macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$variant_doc])* $variant),* }

        impl $type {
            /// All of them, in tfprof's order.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }
    };
}

named! {
    /// The sort key: names ascending, everything else descending by total.
    OrderBy {
        /// The name.
        Name = "name",
        /// Requested memory.
        Bytes = "bytes",
        /// Peak memory.
        PeakBytes = "peak_bytes",
        /// Memory still held.
        ResidualBytes = "residual_bytes",
        /// Memory in outputs.
        OutputBytes = "output_bytes",
        /// Time.
        Micros = "micros",
        /// Accelerator time.
        AcceleratorMicros = "accelerator_micros",
        /// Host time.
        CpuMicros = "cpu_micros",
        /// Parameters.
        Params = "params",
        /// Float operations.
        FloatOps = "float_ops",
        /// Nodes of the row; only in op and code view.
        Occurrence = "occurrence",
    }
}

named! {
    /// A column.
    Column {
        /// Requested memory.
        Bytes = "bytes",
        /// Time: total, accelerator, host.
        Micros = "micros",
        /// Parameters.
        Params = "params",
        /// Float operations.
        FloatOps = "float_ops",
        /// Values from the checkpoint.
        TensorValue = "tensor_value",
        /// The device.
        Device = "device",
        /// The types.
        OpTypes = "op_types",
        /// How often it ran and is defined.
        Occurrence = "occurrence",
        /// Shapes of inputs.
        InputShapes = "input_shapes",
        /// Accelerator time.
        AcceleratorMicros = "accelerator_micros",
        /// Host time.
        CpuMicros = "cpu_micros",
        /// Peak memory.
        PeakBytes = "peak_bytes",
        /// Memory still held.
        ResidualBytes = "residual_bytes",
        /// Memory in outputs.
        OutputBytes = "output_bytes",
    }
}

// Columns are echoed in the byte order of their names.
impl Ord for Column {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for Column {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The destination of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To standard output.
    Stdout,
    /// Into a text file.
    File(String),
    /// To a Chrome trace; the step is appended to the name.
    Timeline(String),
    /// Into a profile for pprof.
    Pprof(String),
    /// Nowhere.
    None,
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Stdout => f.write_str("stdout:"),
            Output::File(path) => write!(f, "file:outfile={path}"),
            Output::Timeline(path) => write!(f, "timeline:outfile={path}"),
            Output::Pprof(path) => write!(f, "pprof:outfile={path}"),
            Output::None => f.write_str("none:"),
        }
    }
}

/// An option with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    /// The option.
    pub option: String,
    /// The value.
    pub value: String,
    /// What is expected.
    pub expected: String,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OptionError { option, value, expected } = self;
        write!(f, "Invalid option '{option}' value: '{value}'; {expected}")
    }
}

impl Options {
    /// The options as tfprof echoes them.
    pub fn echo(&self) -> String {
        let select: Vec<&str> = self.select.iter().map(|column| column.name()).collect();
        let list = |patterns: &Patterns| patterns.given().join(",");
        let values = [
            ("-max_depth", self.max_depth.to_string()),
            ("-min_bytes", self.min_bytes.to_string()),
            ("-min_peak_bytes", self.min_peak_bytes.to_string()),
            ("-min_residual_bytes", self.min_residual_bytes.to_string()),
            ("-min_output_bytes", self.min_output_bytes.to_string()),
            ("-min_micros", self.min_micros.to_string()),
            ("-min_accelerator_micros", self.min_accelerator_micros.to_string()),
            ("-min_cpu_micros", self.min_cpu_micros.to_string()),
            ("-min_params", self.min_params.to_string()),
            ("-min_float_ops", self.min_float_ops.to_string()),
            ("-min_occurrence", self.min_occurrence.to_string()),
            ("-step", self.step.to_string()),
            ("-order_by", self.order_by.name().to_owned()),
            ("-account_type_regexes", list(&self.account_type_regexes)),
            ("-start_name_regexes", list(&self.start_name_regexes)),
            ("-trim_name_regexes", list(&self.trim_name_regexes)),
            ("-show_name_regexes", list(&self.show_name_regexes)),
            ("-hide_name_regexes", list(&self.hide_name_regexes)),
            ("-account_displayed_op_only", self.account_displayed_op_only.to_string()),
            ("-select", select.join(",")),
            ("-output", self.output.to_string()),
        ];
        values.iter().map(|(name, value)| format!("{name:<28}{value}\n")).collect()
    }

    /// Whether values of variables are requested.
    pub fn shows_values(&self) -> bool {
        self.shows(Column::TensorValue)
    }

    pub(crate) fn shows(&self, column: Column) -> bool {
        self.select.contains(&column)
    }
}
