//! Values that a program logged step by step (loss, accuracy, throughput): columns per tag, one log per run. A source
//! beside the timeline: it knows steps and the time of day, and nothing of events.

/// The values of one tag in one run, in the order in which they count. The three columns are equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What the program calls it, e.g. `train/loss`.
    pub tag: String,
    /// The step of each point, as the program counts.
    pub steps: Vec<i64>,
    /// When each point was written, in seconds since 1970.
    pub wall_s: Vec<f64>,
    /// The values; not a number and infinities are data.
    pub values: Vec<f64>,
    /// Points in damaged records that were most likely this tag's.
    pub lost: u64,
    /// Points that a restarted program wrote again, and that its newer ones replaced.
    pub replaced: u64,
}

/// What a tag holds that is not a number per step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtherKind {
    /// A distribution.
    Histogram,
    /// Text.
    Text,
    /// Pictures.
    Image,
    /// Sound.
    Audio,
    /// Hyperparameters.
    Hparams,
    /// A graph.
    Graph,
    /// What a run recorded of its nodes.
    RunMetadata,
    /// A tensor of some other kind.
    Tensor,
}

/// A tag whose values are not numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherTag {
    /// What the program calls it.
    pub tag: String,
    /// What it holds.
    pub kind: OtherKind,
    /// How often it was written.
    pub count: u64,
}

/// How many values lie between two bounds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The lower bound.
    pub from: f64,
    /// The upper bound.
    pub to: f64,
    /// How many.
    pub count: f64,
}

/// The distribution that a program logged in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The step.
    pub step: i64,
    /// When it was written, in seconds since 1970.
    pub wall_s: f64,
    /// Its buckets, from the lowest to the highest.
    pub buckets: Vec<Bucket>,
}

/// The distributions of one tag. Those that are kept are spread evenly over what was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histograms {
    /// What the program calls it.
    pub tag: String,
    /// The distributions, by step.
    pub kept: Vec<Histogram>,
}

/// The latest text of a tag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    /// What the program calls it.
    pub tag: String,
    /// The step.
    pub step: i64,
    /// When it was written, in seconds since 1970.
    pub wall_s: f64,
    /// The text, or the beginning of a long one.
    pub text: String,
}

/// Where bytes lie in one of a run's files, once that is inflated.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobPlace {
    /// Which of the run's files, in the order in which they were given.
    pub file: usize,
    /// Where it begins.
    pub at: u64,
    /// How long it is.
    pub bytes: u64,
}

/// The pictures that a program logged under one tag in one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// The step.
    pub step: i64,
    /// When they were written, in seconds since 1970.
    pub wall_s: f64,
    /// The pictures as they are encoded in the file.
    pub samples: Vec<BlobPlace>,
}

/// The pictures of one tag. Steps that are kept are spread evenly over what was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pictures {
    /// What the program calls it.
    pub tag: String,
    /// The pictures, by step.
    pub kept: Vec<Picture>,
}

/// How a graph is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GraphForm {
    /// A `GraphDef`.
    Graph,
    /// A `MetaGraphDef` around one.
    MetaGraph,
    /// The `RunMetadata` of traced functions, or the JSON of a Keras model.
    Traced,
}

/// A graph that a program logged.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedGraph {
    /// What the program calls it.
    pub tag: String,
    /// How it is written.
    pub form: GraphForm,
    /// Where it lies.
    pub place: BlobPlace,
}

/// What a program recorded of one step of classic TensorFlow.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRun {
    /// What the program calls it.
    pub tag: String,
    /// Where its `RunMetadata` lies.
    pub place: BlobPlace,
}

/// The value of a hyperparameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A switch.
    Flag(bool),
}

/// How a trial ended, as far as its program says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TrialStatus {
    /// It succeeded.
    Success,
    /// It failed.
    Failure,
    /// It is running.
    Running,
}

/// A metric that a study is about: a tag in the folder of the trial, or in one below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyMetric {
    /// The folder below that of the trial; empty for the trial's own.
    pub group: String,
    /// The tag.
    pub tag: String,
}

/// What a run says about hyperparameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hparams {
    /// Its hyperparameters, by name; empty if it only describes the study.
    pub settings: Vec<(String, Setting)>,
    /// The metrics that it says the study is about.
    pub metrics: Vec<StudyMetric>,
    /// How it ended.
    pub status: Option<TrialStatus>,
}

/// A program that began again and repeated steps.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Restart {
    /// The first step that it repeated.
    pub step: i64,
    /// When, in seconds since 1970.
    pub wall_s: f64,
    /// The last step that it had reached before.
    pub last_step: i64,
    /// When it had done the first of the repeated steps before.
    pub from_s: f64,
    /// When it had done the last of them.
    pub until_s: f64,
}

/// Where a log is damaged, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct LogDamage {
    /// The file.
    pub file: String,
    /// The offset in it, in bytes.
    pub at: u64,
    /// What is wrong.
    pub what: LogFault,
}

/// What can be wrong with a log.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFault {
    /// A record does not match its checksum; it is left out.
    Record,
    /// The length of a record does not match its checksum, but the record does; it is kept.
    Length,
    /// Number of bytes that are not records.
    Gap(u64),
    /// The file ends within a record: it is still being written, or was cut off.
    Cut,
    /// The file holds more than its budget allows: the rest was not read.
    OverBudget,
    /// Nothing in the file is a record.
    Nothing,
}

/// All that one run logged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLog {
    /// The run: its folder as seen from the log directory, `.` for that itself.
    pub name: String,
    /// Bytes of its files.
    pub bytes: u64,
    /// Records that were read.
    pub records: u64,
    /// Its numbers, by tag.
    pub series: Vec<Series>,
    /// Its other tags, by tag.
    pub others: Vec<OtherTag>,
    /// Its distributions, by tag.
    pub histograms: Vec<Histograms>,
    /// Its texts, by tag.
    pub texts: Vec<Note>,
    /// Its pictures, by tag.
    pub pictures: Vec<Pictures>,
    /// Its graphs, by tag.
    pub graphs: Vec<LoggedGraph>,
    /// The steps that it recorded node by node, in the order of the files.
    pub recorded: Vec<LoggedRun>,
    /// Its hyperparameters.
    pub hparams: Option<Hparams>,
    /// Where it began again.
    pub restarts: Vec<Restart>,
    /// When it began each of its files, in seconds since 1970.
    pub opened_s: Vec<f64>,
    /// When it says that it saved a checkpoint.
    pub saved_s: Vec<f64>,
    /// When it last wrote anything.
    pub last_s: Option<f64>,
    /// What is wrong with its files.
    pub damage: Vec<LogDamage>,
}
