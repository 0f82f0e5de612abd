//! What fits: two peaks at two batch sizes give the fixed part and the part per example.

use super::Memory;

/// The share of the capacity that can be filled: fragments and other libraries take the rest.
pub const USABLE: f64 = 0.95;

/// The peak as a function of the batch size.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The allocator.
    pub allocator: String,
    /// Both batch sizes.
    pub batches: [u64; 2],
    /// Both peaks in bytes.
    pub peaks: [i64; 2],
    /// Bytes that do not depend on the batch.
    pub fixed: f64,
    /// Bytes per example.
    pub per_example: f64,
    /// Bytes there are.
    pub capacity: Option<u64>,
    /// The largest batch whose peak stays within [`USABLE`] of the capacity.
    pub largest_batch: Option<u64>,
}

/// Splits the peak of the largest allocator that both recordings have.
pub fn fit(
    base: &Memory,
    new: &Memory,
    batches: [u64; 2],
    capacity: Option<u64>,
) -> Result<Fit, &'static str> {
    if batches[0] == batches[1] {
        return Err("both recordings have the same batch size");
    }
    let both = new.allocators.iter().find_map(|after| {
        let before = base.allocators.iter().find(|before| before.name == after.name)?;
        Some((before, after))
    });
    let Some((before, after)) = both else { return Err("the recordings have no allocator in common") };
    let peaks = [before.peak, after.peak];
    let examples = batches[1] as f64 - batches[0] as f64;
    let per_example = (peaks[1] as f64 - peaks[0] as f64) / examples;
    if per_example <= 0.0 {
        return Err("the larger batch does not have the higher peak");
    }
    let fixed = peaks[0] as f64 - per_example * batches[0] as f64;
    let capacity = capacity.or(after.capacity).or(before.capacity);
    let largest =
        capacity.map(|capacity| ((capacity as f64 * USABLE - fixed) / per_example).max(0.0).floor() as u64);
    Ok(Fit {
        allocator: after.name.clone(),
        batches,
        peaks,
        fixed,
        per_example,
        capacity,
        largest_batch: largest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Allocator;

    fn memory(peak: i64) -> Memory {
        Memory { allocators: vec![Allocator { name: "CUDA:0".into(), peak, ..Allocator::default() }] }
    }

    #[test]
    fn two_batch_sizes_give_the_fixed_part_and_the_part_per_example() {
        let fit = fit(&memory(3_000), &memory(5_000), [10, 20], Some(10_000)).unwrap();
        assert_eq!((fit.fixed, fit.per_example, fit.largest_batch), (1_000.0, 200.0, Some(42)));
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        assert!(fit(&memory(3), &memory(5), [8, 8], None).is_err());
        assert!(fit(&memory(5), &memory(3), [8, 16], None).is_err());
        assert!(fit(&memory(5), &Memory { allocators: Vec::new() }, [8, 16], None).is_err());
    }
}
