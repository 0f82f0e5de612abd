//! Words of the [`serve`]r's refusals. Those that reports and tables share are in `stepscope-results`, a finding's own in its
//! file in `stepscope-diagnose`.

pub mod serve;
