//! Files that an adversary would write: small ones that claim to be huge ([`bombs`]), and large ones whose shape
//! makes a careless loop quadratic ([`shapes`]). Written byte by byte, like every other builder here.

pub mod bombs;
mod others;
pub mod shapes;
