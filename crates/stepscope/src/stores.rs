//! Object stores and web servers as a place for files: passes questions of the readers on to `stepscope-remote`, with the
//! names that may be profiles as its rules, and has the words for what goes wrong there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use stepscope_read::discover::{head_bytes, may_be_profile, may_hold_profiles};
use stepscope_read::files::{self, FileData, Moved, Store, StoreError};
use stepscope_remote::{Client, Error, Found, Kind, Rules, Scheme};
use stepscope_render::format::bytes as size;

/// Adds them to the places where files are looked up.
pub(crate) fn add() {
    let rules = Rules { descend: may_hold_profiles, take: may_be_profile, head: head_bytes };
    files::add_store(Box::new(Remote(Client::new(rules))));
}

struct Remote(Client);

/// Queries of signed URLs, by the URL without them. Anyone who has one may read the file until it expires, so that no output
/// shows it.
static SIGNED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Names in a query that make it a signature.
const SIGNATURES: &[&str] = &["X-Amz-Signature=", "X-Goog-Signature=", "Signature=", "sig="];

/// An argument without the query of a signed URL, which is kept for requests.
pub(crate) fn unsigned(argument: OsString) -> OsString {
    let signed = argument.to_str().and_then(|text| text.split_once('?')).filter(|(url, query)| {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        is_web && query.split('&').any(|pair| SIGNATURES.iter().any(|name| pair.starts_with(name)))
    });
    let Some((url, query)) = signed else { return argument };
    SIGNED.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_owned(), query.to_owned());
    OsString::from(url)
}

/// The URL that is asked for.
fn url(path: &Path) -> Result<String, StoreError> {
    let url = path.to_str().ok_or_else(|| {
        said("the URL is not valid text".to_owned(), "give a URL such as s3://bucket/logs".to_owned())
    })?;
    let signed = SIGNED.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(signed.get(url).map_or_else(|| url.to_owned(), |query| format!("{url}?{query}")))
}

impl Store for Remote {
    fn search(&self, path: &Path, heads: bool) -> Result<(), StoreError> {
        self.0.search(&url(path)?, heads).map_err(|error| words(&error))
    }

    fn data(&self, path: &Path) -> Result<FileData, StoreError> {
        match self.0.look(&url(path)?).map_err(|error| words(&error))? {
            Found::Folder => Ok(FileData::folder()),
            Found::Object(object) => Ok(FileData::file(object.bytes, object.modified)),
        }
    }

    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let (folders, files) = self.0.entries(&url(folder)?).map_err(|error| words(&error))?;
        Ok(folders.iter().chain(&files).map(|name| folder.join(name)).collect())
    }

    fn head(&self, path: &Path, bytes: usize) -> Result<Vec<u8>, StoreError> {
        self.0.head(&url(path)?, bytes).map_err(|error| words(&error))
    }

    fn open(&self, path: &Path) -> Result<File, StoreError> {
        self.0.fetch(&url(path)?).map_err(|error| words(&error))
    }

    fn moved(&self) -> Moved {
        let moved = self.0.moved();
        Moved { done: moved.done, total: moved.total, listed: moved.listed }
    }
}

fn said(found: String, todo: String) -> StoreError {
    StoreError { changed: false, missing: false, found, todo }
}

/// What was found, and what to do.
fn words(error: &Error) -> StoreError {
    let plain = |found: &str, todo: &str| said(found.to_owned(), todo.to_owned());
    match &error.kind {
        Kind::BadUrl(why) => said(format!("the URL cannot be used: {why}"), form(error.scheme).to_owned()),
        Kind::NoCredentials => no_credentials(error.scheme),
        Kind::Denied(what) => {
            said(format!("the server refuses access: {what}"), access(error.scheme).to_owned())
        }
        Kind::NoBucket => plain("the bucket does not exist", "check the name of the bucket, and the account"),
        Kind::NotFound => {
            let found = "found neither a file nor a folder of that name";
            StoreError { missing: true, ..plain(found, "check the name; names are case-sensitive") }
        }
        Kind::Region => {
            plain("the bucket is in another region", "set AWS_REGION to the region of the bucket")
        }
        Kind::NoFolder => plain(
            "web servers cannot list folders",
            "give the URL of a file, or a folder of an object store: s3://, gs:// or az://",
        ),
        Kind::NoNetwork(why) => said(
            format!("the server cannot be reached: {why}"),
            "check the network, the proxy (HTTPS_PROXY) and the endpoint".to_owned(),
        ),
        Kind::Changed => StoreError {
            changed: true,
            ..plain(
                "the object was replaced, and nothing was read",
                "wait until it is complete, then run the command again",
            )
        },
        Kind::TooMany(most) => said(
            format!("there are more than {} objects", stepscope_render::format::thousands(*most)),
            "give a folder closer to the profiles".to_owned(),
        ),
        Kind::NoSpace(needs, free, folder) => said(
            format!("its copy needs {}, and {folder} has {} free", size(*needs as f64), size(*free as f64)),
            "set STEPSCOPE_TMPDIR to a folder on a larger disk".to_owned(),
        ),
        Kind::Disk(why) => said(
            format!("its copy cannot be written: {why}"),
            "set STEPSCOPE_TMPDIR to a folder that can be written".to_owned(),
        ),
        Kind::Answer(what) => said(
            format!("the server's answer cannot be used: {what}"),
            "check the endpoint, and try again".to_owned(),
        ),
    }
}

fn form(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => "give s3://BUCKET/FOLDER",
        Scheme::Gcs => "give gs://BUCKET/FOLDER",
        Scheme::Azure => "give az://CONTAINER/FOLDER",
        Scheme::Web => "give s3://, gs://, az:// or https:// with a server or bucket and a name",
    }
}

fn no_credentials(scheme: Scheme) -> StoreError {
    let (found, todo) = match scheme {
        Scheme::S3 => (
            "no credentials: found neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, a web identity, nor the role of a \
             machine; profiles in ~/.aws are not read",
            "run `eval \"$(aws configure export-credentials --format env)\"` first, or set AWS_SKIP_SIGNATURE=true for a \
             public bucket",
        ),
        Scheme::Gcs => (
            "no credentials: found neither GOOGLE_APPLICATION_CREDENTIALS, a login of gcloud, nor the account of a machine",
            "run `gcloud auth application-default login` first, or set GOOGLE_SKIP_SIGNATURE=true for a public bucket",
        ),
        Scheme::Azure => (
            "no credentials: found neither AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or \
             AZURE_STORAGE_SAS_TOKEN, nor the identity of a machine",
            "set them, or set AZURE_STORAGE_ACCOUNT_NAME and AZURE_USE_AZURE_CLI=true after `az login`",
        ),
        Scheme::Web => ("no credentials", "give a signed URL"),
    };
    said(found.to_owned(), todo.to_owned())
}

fn access(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "check that the keys are valid (`aws sts get-caller-identity`) and may list the bucket and get objects \
             (s3:ListBucket, s3:GetObject)"
        }
        Scheme::Gcs => "check that the account has the role Storage Object Viewer on the bucket",
        Scheme::Azure => "check that the account has the role Storage Blob Data Reader on the container",
        Scheme::Web => "check the URL; signed URLs expire",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scheme: Scheme, kind: Kind) -> StoreError {
        words(&Error { url: "s3://b/x".to_owned(), scheme, kind })
    }

    #[test]
    fn missing_credentials_name_the_variables_of_each_store() {
        for (scheme, variable, command) in [
            (Scheme::S3, "AWS_ACCESS_KEY_ID", "aws configure export-credentials --format env"),
            (Scheme::Gcs, "GOOGLE_APPLICATION_CREDENTIALS", "gcloud auth application-default login"),
            (Scheme::Azure, "AZURE_STORAGE_ACCOUNT_KEY", "az login"),
        ] {
            let said = of(scheme, Kind::NoCredentials);
            assert!(said.found.contains(variable) && said.todo.contains(command), "{said}");
        }
    }

    #[test]
    fn signatures_are_kept_from_all_output_and_sent_to_the_server() {
        let signed = "https://host/x.json.gz?X-Amz-Expires=60&X-Amz-Signature=abc";
        assert_eq!(unsigned(OsString::from(signed)), "https://host/x.json.gz");
        assert_eq!(url(Path::new("https://host/x.json.gz")).unwrap(), signed);
        for other in ["https://host/x.json?raw=true", "s3://bucket/a?sig=b", "--filter=a?sig=b"] {
            assert_eq!(unsigned(OsString::from(other)), other);
        }
    }

    #[test]
    fn only_a_replaced_object_is_damage_and_only_a_missing_one_is_missing() {
        assert!(of(Scheme::S3, Kind::Changed).changed && !of(Scheme::S3, Kind::Changed).missing);
        assert!(of(Scheme::Web, Kind::NotFound).missing && !of(Scheme::Web, Kind::NoBucket).missing);
        let full = of(Scheme::Gcs, Kind::NoSpace(2 << 30, 1 << 20, "/tmp".to_owned()));
        assert!(full.found.contains("/tmp has") && full.todo.contains("STEPSCOPE_TMPDIR"));
    }
}
