//! Ids: small integers that point into a table of the trace. Each has its own type, so that a track is never
//! looked up by the number of a string.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the table that this id points into.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the table's `index`th entry.
            ///
            /// Tables are limited to `u32::MAX` entries; a larger index saturates.
            #[inline]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}

id!(
    /// An interned string.
    StrId
);
id!(
    /// What an event is: name, category and form.
    KindId
);
id!(
    /// A group of tracks: an operating-system process, a device, a pseudo process.
    ProcessId
);
id!(
    /// One row of the timeline.
    TrackId
);
id!(
    /// A device with its properties.
    DeviceId
);
id!(
    /// A source of arguments.
    ArgSourceId
);

/// One event: the `index`th, in time order, of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The track of the event.
    pub track: TrackId,
    /// Its position in the track's columns.
    pub index: u32,
}
