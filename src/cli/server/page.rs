//! The page's files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;

use crate::failure::Failure;

/// A built page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its folder.
    pub folder: PathBuf,
    /// The Content-Security-Policy that each document states in its head, by path.
    policies: Arc<HashMap<String, HeaderValue>>,
}

impl Page {
    /// A folder that `cargo xtask build` made.
    ///
    /// # Errors
    /// When no page is in it.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let documents = std::fs::read_dir(folder)
            .map_err(|error| Failure::Input(format!("{}: {error}", folder.display())))?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "html"));
        let mut policies = HashMap::new();
        for document in documents {
            let policy = std::fs::read_to_string(&document)
                .ok()
                .and_then(|text| policy_of(&text));
            if let (Some(policy), Some(name)) = (policy, document.file_name().and_then(|name| name.to_str())) {
                policies.insert(format!("/{name}"), policy);
            }
        }
        let Some(index) = policies.get("/index.html").cloned() else {
            return Err(Failure::Input(format!(
                "{} holds no built page; `cargo xtask build` makes one in dist/",
                folder.display()
            )));
        };
        policies.insert("/".into(), index);
        Ok(Self {
            folder: folder.to_owned(),
            policies: Arc::new(policies),
        })
    }

    /// The policy of what is at this path. A browser holds a worker to that of its script, so scripts state the
    /// page's; what is neither document nor script may do nothing.
    pub fn policy(&self, path: &str) -> HeaderValue {
        const NO_DOCUMENT: HeaderValue = HeaderValue::from_static("default-src 'none'");
        let stated = if path.ends_with(".js") { "/" } else { path };
        self.policies.get(stated).cloned().unwrap_or(NO_DOCUMENT)
    }
}

/// The policy in a document's head. Quotes within it are single ones.
fn policy_of(document: &str) -> Option<HeaderValue> {
    let (_, rest) = document.split_once("http-equiv=\"Content-Security-Policy\"")?;
    let (_, rest) = rest.split_once("content=\"")?;
    let (policy, _) = rest.split_once('"')?;
    HeaderValue::from_str(policy).ok()
}
