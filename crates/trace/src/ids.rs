//! Ids: small integers that point into one of a trace's tables. Each has its own type, so that a track is
//! never looked up by a string's number.

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
    /// A device with properties of its own.
    DeviceId
);
id!(
    /// A place from which events' arguments are decoded.
    ArgSourceId
);

/// One event: the `index`th, in time order, of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The track that the event lies on.
    pub track: TrackId,
    /// Its position in the track's columns.
    pub index: u32,
}
