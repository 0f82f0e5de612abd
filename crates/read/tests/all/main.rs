//! Reads files of every format: generated, damaged, and real. One binary, which links once.

mod chrome_corpus;
mod chrome_roundtrip;
mod host;
mod hostile;
mod ncu;
mod ncu_corpus;
mod nsys;
mod nsys_corpus;
mod nsys_tables;
mod smi;
mod tf;
mod xplane_corpus;
mod xplane_damage;
mod xplane_model;
mod xplane_shape;
mod zstd;
