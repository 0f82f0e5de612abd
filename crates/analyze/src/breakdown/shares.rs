//! Who may own a step's time, and how much each owns.

use stepscope_trace::Dur;

/// Who owns an instant of a step. The contract's categories, in the order in which they are shown.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Category {
    /// Ops or kernels doing the model's work.
    Compute,
    /// Collectives not hidden under compute.
    Communication,
    /// Copies to the device, not hidden.
    TransferIn,
    /// Copies from the device, not hidden.
    TransferOut,
    /// Copies within or between devices, not hidden.
    TransferDevice,
    /// The step waits for the next batch.
    Input,
    /// A graph is being built.
    Tracing,
    /// A graph is being compiled.
    Compile,
    /// The host enqueues work while the device has nothing to do.
    Launch,
    /// The framework's overhead around ops.
    Dispatch,
    /// The loop's own Python.
    Python,
    /// Checkpoints, summaries, results.
    Output,
    /// The host is blocked on an idle device.
    Sync,
    /// Nothing that was recorded runs anywhere.
    Idle,
    /// What ran was not recorded.
    Unknown,
}

impl Category {
    /// How many there are.
    pub const COUNT: usize = 15;

    /// All, in the order in which they are shown.
    pub const ALL: [Category; Self::COUNT] = [
        Category::Compute,
        Category::Communication,
        Category::TransferIn,
        Category::TransferOut,
        Category::TransferDevice,
        Category::Input,
        Category::Tracing,
        Category::Compile,
        Category::Launch,
        Category::Dispatch,
        Category::Python,
        Category::Output,
        Category::Sync,
        Category::Idle,
        Category::Unknown,
    ];

    /// The contract's word.
    pub fn key(self) -> &'static str {
        match self {
            Category::Compute => "compute",
            Category::Communication => "communication",
            Category::TransferIn => "transfer_in",
            Category::TransferOut => "transfer_out",
            Category::TransferDevice => "transfer_device",
            Category::Input => "input",
            Category::Tracing => "tracing",
            Category::Compile => "compile",
            Category::Launch => "launch",
            Category::Dispatch => "dispatch",
            Category::Python => "python",
            Category::Output => "output",
            Category::Sync => "sync",
            Category::Idle => "idle",
            Category::Unknown => "unknown",
        }
    }
}

/// Time by category.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Shares([Dur; Category::COUNT]);

impl Shares {
    /// How much a category owns.
    #[inline]
    pub fn get(&self, category: Category) -> Dur {
        self.0[category as usize]
    }

    /// Gives a category more.
    #[inline]
    pub fn add(&mut self, category: Category, time: Dur) {
        self.0[category as usize] += time;
    }

    /// Gives every category what it has in `other`.
    pub fn add_all(&mut self, other: &Shares) {
        Category::ALL.iter().for_each(|&category| self.add(category, other.get(category)));
    }

    /// What all own together.
    pub fn total(&self) -> Dur {
        self.0.iter().copied().sum()
    }

    /// The categories that own something, in the order in which they are shown.
    pub fn owners(&self) -> impl Iterator<Item = (Category, Dur)> + '_ {
        Category::ALL
            .into_iter()
            .map(|category| (category, self.get(category)))
            .filter(|(_, time)| !time.is_zero())
    }
}
