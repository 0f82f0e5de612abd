//! The folders that a server may read, and paths below them. A path that leads out of them, by `..` or by a link, is refused
//! in the same words as one that does not exist, so nothing is revealed about other folders.

use std::path::{Path, PathBuf};

use stepscope_read::files;
use stepscope_render::format::quoted;
use stepscope_session::{Cause, Problem};

/// Folders, with all links resolved.
#[derive(Debug)]
pub(crate) struct Roots(Vec<PathBuf>);

impl Roots {
    /// The folders, which must exist.
    pub(crate) fn new(folders: &[PathBuf]) -> Result<Self, Problem> {
        let real = |folder: &PathBuf| {
            let found = files::canonical(folder).and_then(|real| Ok((files::data(&real)?.is_folder, real)));
            let (cause, todo) = (Cause::Usage, "give folders that contain profiles");
            match found {
                Ok((true, real)) => Ok(real),
                Ok((false, _)) => Err(Problem::new(cause, format!("{} is not a folder", folder.display()))
                    .then("found a file")
                    .then(todo)),
                Err(error) => Err(Problem::new(cause, format!("cannot read {}", folder.display()))
                    .then(error.to_string())
                    .then(todo)),
            }
        };
        Ok(Roots(folders.iter().map(real).collect::<Result<_, _>>()?))
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[PathBuf] {
        &self.0
    }

    /// The file or folder that a client names, absolute or relative to one of the folders.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Problem> {
        let candidates = self.0.iter().map(|root| root.join(path));
        let mut real = candidates.filter_map(|candidate| files::canonical(&candidate).ok());
        real.find(|real| self.contains(real)).ok_or_else(|| {
            let folders: Vec<String> = self.0.iter().map(|root| root.display().to_string()).collect();
            Problem::new(Cause::Nothing, format!("nothing to read at {}", quoted(path)))
                .then(format!(
                    "this server reads below {} and follows no links out of it",
                    folders.join(", ")
                ))
                .then("call list_profiles for the paths of all profiles")
        })
    }

    /// A path as a client can give it back.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let short = match &self.0[..] {
            [only] => path.strip_prefix(only).unwrap_or(path),
            _ => path,
        };
        if short.as_os_str().is_empty() { ".".to_owned() } else { short.display().to_string() }
    }

    fn contains(&self, real: &Path) -> bool {
        self.0.iter().any(|root| real.starts_with(root))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_lies_below_is_resolved() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("in"), folder.path().join("out"));
        fs::create_dir_all(inside.join("a")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        let roots = Roots::new(std::slice::from_ref(&inside)).unwrap();
        assert_eq!(roots.shown(&roots.resolve("a").unwrap()), "a");
        assert_eq!(roots.shown(&roots.resolve(".").unwrap()), ".");
        assert!(roots.resolve(inside.join("a").to_str().unwrap()).is_ok(), "absolute");
        let there = roots.resolve("../out/secret").unwrap_err().to_string();
        let nowhere = roots.resolve("../out/nothing").unwrap_err().to_string();
        assert_eq!(there.replace("secret", "nothing"), nowhere, "both say the same");
        assert!(roots.resolve("/").is_err() && roots.resolve("a\0b").is_err());
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
            assert!(roots.resolve("link").is_err() && roots.resolve("link/secret").is_err());
        }
    }

    #[test]
    fn a_root_must_be_a_folder() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Roots::new(&[file.path().to_owned()]).unwrap_err().to_string().contains("is not a folder"));
        assert!(Roots::new(&[PathBuf::from("/no/such/folder")]).is_err());
    }
}
