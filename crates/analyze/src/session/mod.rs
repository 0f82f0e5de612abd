//! What all hosts of a session say together: runs every analysis on one host ([`HostPartial::of`]), merges hosts, and
//! finishes what each analysis found ([`Session::finish`]). Nothing is judged here.
//!
//! A new analysis is a file with its [`Analysis`], and one line in the list of its room's `mod.rs`, beside its `mod`.

mod gathering;

use std::ops::Deref;

use crate::analysis::Analysis;
use crate::context::Context;
use crate::devices::bottleneck::DeviceDetail;
use crate::devices::collectives::CollectivesPartial;
use crate::devices::gpu_samples::Wall;
use crate::input::InputPartial;
use crate::memory::MemoryPartial;
use crate::ranks::RanksPartial;
use crate::states::missing_device::MissingDevice;
use crate::time::odd_steps::OddSteps;
use crate::time::summary::{HostSummary, Summary};
use crate::time::uneven_steps::UnevenSteps;
use crate::vocabulary::has_timeline;

pub use gathering::{Gathering, Timeline};

/// Declares what a host says, how hosts are merged and bounded, and the results, from one list. Analyses in one pair of
/// braces run one after the other; the groups run side by side.
macro_rules! analyses {
    (
        => bottleneck { $($(#[doc = $about:literal])+ $detail:ident: $of_host:ty,)+ }
        $({ $($(#[doc = $doc:literal])+ $field:ident: $analysis:ty,)+ })+
    ) => {
        /// Everything that one host has to say.
        #[derive(Debug, serde::Serialize, serde::Deserialize)]
        pub struct HostPartial {
            summary: HostSummary,
            $($(#[doc = $about])+ #[serde(default)] $detail: Option<$of_host>,)+
            /// Does it say what ran when?
            timeline: bool,
            wall: Option<Wall>,
            sums: Sums,
        }

        impl HostPartial {
            /// Runs the analyses on one host.
            pub fn of(context: &Context) -> Self {
                let summary = HostSummary::of(context);
                // What all groups share is made before they part: the one that makes it must not wait for another group.
                context.launches();
                context.trace.rest_arguments();
                let mut sums = Sums::default();
                $(let mut $detail = None;)+
                rayon::scope(|scope| {
                    $(scope.spawn(|_| {
                        $(sums.$field = Analysis::of(context);)+
                    });)+
                    $(scope.spawn(|_| $detail = <$of_host>::of(context));)+
                });
                let (timeline, wall) = (has_timeline(context.trace), Wall::of(context.trace));
                HostPartial { summary, $($detail,)+ timeline, wall, sums }
            }
        }

        /// What hosts have to say together. Analyses that a stored partial does not know say nothing.
        #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        struct Sums {
            $($($field: $analysis,)+)+
        }

        impl Sums {
            fn merge(mut self, other: Sums) -> Self {
                $($(self.$field.merge(other.$field);)+)+
                self
            }

            fn bound(&mut self) {
                $($(self.$field.bound();)+)+
            }
        }

        /// The results of all analyses.
        #[derive(Debug)]
        pub struct Results {
            $($(#[doc = $about])+ pub $detail: Option<$of_host>,)+
            $($($(#[doc = $doc])+ pub $field: <$analysis as Analysis>::Output,)+)+
        }

        /// What one host says about its steps, and what is only of interest of the host that limits the step.
        #[derive(Debug)]
        struct OfHost {
            summary: HostSummary,
            $($detail: Option<$of_host>,)+
        }

        impl HostPartial {
            fn into_parts(self) -> (OfHost, Sums) {
                (OfHost { summary: self.summary, $($detail: self.$detail,)+ }, self.sums)
            }
        }

        impl Results {
            fn of(bottleneck: Option<OfHost>, sums: Sums) -> Self {
                $(let mut $detail = None;)+
                if let Some(host) = bottleneck {
                    $($detail = host.$detail;)+
                }
                Results { $($detail,)+ $($($field: sums.$field.finish(),)+)+ }
            }
        }
    };
}
pub(crate) use analyses;

// The rooms with several analyses add theirs; the list starts with what is one analysis per room.
crate::work::analyses! { time devices recording session =>
    bottleneck {
        /// The bottleneck device of the host that limits the step.
        detail: DeviceDetail,
        /// Long steps of that host that occur now and then.
        odd: OddSteps,
        /// Why some steps of that host take longer than the others.
        uneven: UnevenSteps,
    }
    {
        /// Where batches come from.
        input: InputPartial,
        /// The allocators.
        memory: MemoryPartial,
    }
    {
        /// What each rank does itself.
        ranks: RanksPartial,
        /// Why no kernel of a device was recorded; `None` where some were.
        missing_device: Option<MissingDevice>,
    }
}

impl Default for Results {
    fn default() -> Self {
        Results::of(None, Sums::default())
    }
}

impl HostPartial {
    /// When it was recorded, if it has a time of day.
    pub fn wall(&self) -> Option<Wall> {
        self.wall
    }

    /// Its collectives.
    pub fn collectives(&self) -> &CollectivesPartial {
        &self.sums.collectives
    }

    /// What it says about the time that it covers; `None` if it has no timeline.
    pub fn timeline(&self) -> Option<Timeline> {
        self.timeline.then_some(Timeline { wall: self.wall })
    }

    /// Limits what grows with the length of a recording, for files.
    pub fn bound(&mut self) {
        self.summary.bound();
        self.sums.bound();
    }
}

/// What all hosts of a session say together.
#[derive(Debug)]
pub struct Session {
    /// Does any host say what ran when?
    pub timeline: bool,
    /// Steps and their breakdown.
    pub summary: Summary,
    /// What the analyses found.
    pub results: Results,
}

impl Session {
    /// Puts the hosts together; `None` of no host.
    pub fn finish(hosts: Vec<HostPartial>) -> Option<Self> {
        let mut gathering = Gathering::new(hosts.iter().filter_map(HostPartial::timeline));
        hosts.into_iter().for_each(|host| gathering.add(host));
        gathering.finish()
    }
}

impl Deref for Session {
    type Target = Results;

    fn deref(&self) -> &Results {
        &self.results
    }
}
