//! What profilers' own error messages mean, and what to do about them.

/// What a message means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// What went wrong.
    pub meaning: &'static str,
    /// What to do about it.
    pub fix: &'static str,
}

/// The meaning of a recorder's message; `None` if it is not known.
pub fn known(message: &str) -> Option<Complaint> {
    let lower = message.to_lowercase();
    let row = COMPLAINTS.iter().find(|(words, _, _)| words.iter().all(|word| lower.contains(word)))?;
    Some(Complaint { meaning: row.1, fix: row.2 })
}

/// The first row with all of its words in the message counts.
const COMPLAINTS: &[(&[&str], &str, &str)] = &[
    (
        &["insufficient_privileges"],
        "the driver does not let this user trace the GPU",
        "as root set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reboot, or run the job with CAP_SYS_ADMIN",
    ),
    (
        &["nvgpuctrperm"],
        "the driver does not let this user read the GPU's counters",
        "as root set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reboot, or run the job with CAP_SYS_ADMIN",
    ),
    (
        &["multiple_subscribers"],
        "another profiler holds the GPU's tracing interface",
        "stop the other profiler (nsys, ncu, DCGM, a second framework profiler) and record again",
    ),
    (
        &["getdevicecount failed"],
        "the profiler found no GPU",
        "nothing if the program is meant to run on the CPU; otherwise check the driver with nvidia-smi",
    ),
    (
        &["cupti", "load"],
        "the GPU's tracing library, CUPTI, was not found: this recording has no kernels",
        "put CUPTI on the library path (export LD_LIBRARY_PATH=/usr/local/cuda/extras/CUPTI/lib64:$LD_LIBRARY_PATH, \
         or pip install nvidia-cuda-cupti-cu12) and record again",
    ),
    (
        &["cupti"],
        "the GPU's tracing library, CUPTI, reported an error: kernels may be missing",
        "check that CUPTI matches the CUDA version of the driver and that no other profiler runs, then record again",
    ),
    (
        &["roctracer"],
        "AMD's tracing library reported an error: kernels may be missing",
        "check that roctracer matches the ROCm version of the driver, then record again",
    ),
    (
        &["another profil"],
        "another profiler session was running",
        "stop it (only one can run per process) and record again",
    ),
    (
        &["already", "profil"],
        "another profiler session was running",
        "stop it (only one can run per process) and record again",
    ),
    (&["deadline"], "the capture took longer than allowed", "record for a shorter time, or with less detail"),
    (&["dropped"], "the profiler's buffer was full", "record fewer steps, or with less detail"),
    (&["buffer", "full"], "the profiler's buffer was full", "record fewer steps, or with less detail"),
    (
        &["permission"],
        "the profiler lacked a permission",
        "grant the permission that its message names and record again",
    ),
];
