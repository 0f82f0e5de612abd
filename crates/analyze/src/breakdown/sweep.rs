//! The sums over one window: who owns its instants, and what is hidden.
//!
//! A window of a long step has hundreds of thousands of pieces, but hardly a dozen combinations of states. Nearly always these
//! alone decide what a piece is, so that their times are summed up first and judged once per window: 36 instead of 60 ms of
//! processor time for nine million events.

use stepscope_trace::{Dur, Span};

use super::{Category, Ground, ORDER, Shares, StepShares, owner};
use crate::states::State;
use crate::states::timeline::{DEVICE_BUSY, Mask, Timeline, is_inside};

/// States that say what an instant is, wherever in the recording it is.
const EXPLAINED: Mask = {
    let (mut states, mut place) = (0, 0);
    while place < ORDER.len() {
        states |= ORDER[place] as u16;
        place += 1;
    }
    Mask(states & !(State::Present as u16))
};

/// The shares of one step on one device.
pub(super) fn shares_of(
    host: &Timeline,
    device: &Timeline,
    window: Span,
    ground: &Ground,
    starving: &[Span],
) -> StepShares {
    let mut sums = Sums::default();
    // Whether the place in the recording decides, or the states alone.
    let instant_matters = |host: Mask, device: Mask| {
        (!ground.gaps.is_empty() && host.or(device).0 & EXPLAINED.0 == 0)
            || (!starving.is_empty() && host.has(State::InputWait))
    };
    let mut by_states = ByStates::default();
    host.sweep(device, window, |span, host, device| {
        if instant_matters(host, device) {
            let starves = host.has(State::InputWait) && is_inside(starving, span.start);
            let owner = if starves { Category::Input } else { owner(host, device, ground, span.start) };
            sums.add(owner, host, device, span.dur());
        } else if let Some((host, device, time)) = by_states.add(host, device, span.dur()) {
            sums.add(owner(host, device, ground, window.start), host, device, time);
        }
    });
    for (host, device, time) in by_states.finish() {
        sums.add(owner(host, device, ground, window.start), host, device, time);
    }
    let own_busy = if device.span().is_some() { sums.device_busy } else { sums.busy };
    let Sums { shares, busy, hidden_communication, hidden_copies, .. } = sums;
    StepShares { window, work: window, shares, busy, own_busy, hidden_communication, hidden_copies }
}

/// Sums over the pieces of a window.
#[derive(Default)]
struct Sums {
    shares: Shares,
    busy: Dur,
    device_busy: Dur,
    hidden_communication: Dur,
    hidden_copies: Dur,
}

impl Sums {
    fn add(&mut self, owner: Category, host: Mask, device: Mask, time: Dur) {
        let copies = Mask(State::CopyIn as u16 | State::CopyOut as u16 | State::CopyDevice as u16);
        self.shares.add(owner, time);
        if device.0 & DEVICE_BUSY.0 != 0 || host.has(State::HostCompute) {
            self.busy += time;
        }
        if device.0 & DEVICE_BUSY.0 != 0 {
            self.device_busy += time;
        }
        if device.has(State::DeviceCompute) {
            if device.has(State::Communication) {
                self.hidden_communication += time;
            }
            if device.0 & copies.0 != 0 {
                self.hidden_copies += time;
            }
        } else if host.has(State::HostCompute) && host.has(State::Communication) {
            // Processors exchange on threads of their own.
            self.hidden_communication += time;
        }
    }
}

/// Times by combination of states. Two combinations that share a place take turns there.
#[derive(Default)]
struct ByStates([(Mask, Mask, Dur); ByStates::PLACES]);

impl ByStates {
    const PLACES: usize = 32;

    /// Adds the time of a piece; returns the combination whose place it takes, with its time.
    #[inline]
    fn add(&mut self, host: Mask, device: Mask, time: Dur) -> Option<(Mask, Mask, Dur)> {
        // Single states have bits that are far apart: the product brings them together.
        let mixed = (u32::from(host.0) | u32::from(device.0) << 16).wrapping_mul(0x9e37_79b1);
        let place = &mut self.0[(mixed >> 27) as usize % Self::PLACES];
        if (place.0, place.1) == (host, device) {
            place.2 += time;
            return None;
        }
        let before = std::mem::replace(place, (host, device, time));
        (!before.2.is_zero()).then_some(before)
    }

    fn finish(self) -> impl Iterator<Item = (Mask, Mask, Dur)> {
        self.0.into_iter().filter(|(_, _, time)| !time.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_time_comes_back_under_its_own_states() {
        let mut sums = ByStates::default();
        let mut found = hashbrown::HashMap::new();
        let mut put = |(host, device, time): (Mask, Mask, Dur)| {
            *found.entry((host.0, device.0)).or_insert(Dur::ZERO) += time;
        };
        for number in 0..10_000_u16 {
            let (host, device) = (Mask(1 << (number % 16)), Mask(number / 16 % 5));
            sums.add(host, device, Dur::from_ps(i64::from(number))).into_iter().for_each(&mut put);
        }
        sums.finish().for_each(&mut put);
        assert_eq!(found.len(), 16 * 5);
        assert_eq!(found.values().copied().sum::<Dur>(), Dur::from_ps(9_999 * 10_000 / 2));
        let own = (0..10_000_i64).filter(|number| number % 16 == 3 && number / 16 % 5 == 2).sum();
        assert_eq!(found[&(8, 2)], Dur::from_ps(own));
    }
}
