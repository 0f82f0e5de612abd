//! The categories of step time, and the time of each.

use stepscope_trace::Dur;

/// The category of an instant of a step: the public categories, in display order.
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
    /// Framework overhead around ops.
    Dispatch,
    /// Python in the training loop.
    Python,
    /// Checkpoints, summaries, results.
    Output,
    /// The host is blocked on an idle device.
    Sync,
    /// Nothing that was recorded is running anywhere.
    Idle,
    /// What ran was not recorded.
    Unknown,
}

impl Category {
    /// Number of categories.
    pub const COUNT: usize = 15;

    /// All categories in display order.
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

    /// The public key.
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
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Shares(#[serde(with = "crate::stored::array")] [Dur; Category::COUNT]);

impl Shares {
    /// The time of a category.
    #[inline]
    pub fn get(&self, category: Category) -> Dur {
        self.0[category as usize]
    }

    /// Adds time to a category.
    #[inline]
    pub fn add(&mut self, category: Category, time: Dur) {
        self.0[category as usize] += time;
    }

    /// Adds the times of `other`.
    pub fn add_all(&mut self, other: &Shares) {
        Category::ALL.iter().for_each(|&category| self.add(category, other.get(category)));
    }

    /// The total time.
    pub fn total(&self) -> Dur {
        self.0.iter().copied().sum()
    }

    /// The non-empty categories in display order.
    pub fn owners(&self) -> impl Iterator<Item = (Category, Dur)> + '_ {
        Category::ALL
            .into_iter()
            .map(|category| (category, self.get(category)))
            .filter(|(_, time)| !time.is_zero())
    }
}
