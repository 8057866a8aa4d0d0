//! Serves the files of the page with their content security policies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;

use crate::failure::Failure;

/// A built page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Folder of the page.
    pub folder: PathBuf,
    /// Content-Security-Policy of each document, as its head states it, by path.
    policies: Arc<HashMap<String, HeaderValue>>,
}

impl Page {
    /// Opens a folder built by `cargo xtask build`.
    ///
    /// # Errors
    /// If the folder contains no page.
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

    /// Content-Security-Policy for a path. A browser applies the policy of a worker's script to the worker, so scripts
    /// get the page's policy; all other files get one that allows nothing.
    pub fn policy(&self, path: &str) -> HeaderValue {
        const NO_DOCUMENT: HeaderValue = HeaderValue::from_static("default-src 'none'");
        let stated = if path.ends_with(".js") { "/" } else { path };
        self.policies.get(stated).cloned().unwrap_or(NO_DOCUMENT)
    }
}

/// The policy in a document's head; it uses single quotes inside.
fn policy_of(document: &str) -> Option<HeaderValue> {
    let (_, rest) = document.split_once("http-equiv=\"Content-Security-Policy\"")?;
    let (_, rest) = rest.split_once("content=\"")?;
    let (policy, _) = rest.split_once('"')?;
    HeaderValue::from_str(policy).ok()
}
