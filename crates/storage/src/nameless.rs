//! Files that have no name until they are complete, so that nothing is left behind however the process ends; and the
//! signal of a file that grows beyond what the user may write, which must not end the process.
//!
//! The code is unsafe, because giving an open file a name and handling a signal cannot be done otherwise. It knows nothing
//! about what is written.
#![cfg_attr(unix, expect(unsafe_code, reason = "names an open file and handles a signal"))]

use std::fs::File;
use std::io;
use std::path::Path;

/// A new file in a folder, without a name; `None` where the system has no such files.
#[cfg(target_os = "linux")]
pub(crate) fn create(folder: &Path, mode: u32) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // The name is given through this folder.
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::options().write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder).ok()
}

/// Gives the file a name that nothing has yet.
#[cfg(target_os = "linux")]
pub(crate) fn give_name(file: &File, path: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    let open = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: both texts end with a zero and live until the call returns.
    let failed = unsafe {
        libc::linkat(libc::AT_FDCWD, open.as_ptr(), libc::AT_FDCWD, path.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn create(_: &Path, _: u32) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Lets a write beyond the largest file that the user may write fail, instead of ending the process. Processes that are
/// started keep the system's behaviour: handlers do not outlive the start of another program.
#[cfg(unix)]
pub fn survive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the structure is plain data for which zeros are valid, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

/// There is no such signal here.
#[cfg(not(unix))]
pub fn survive_file_limit() {}
