//! Names of repositories: ids and addresses of the hubs. The hubs' hosts stand in this file alone.

use std::fmt;

/// Address of the Hugging Face Hub; `HF_ENDPOINT` names another. The page's build reads it from the same file.
pub const HUGGING_FACE: &str = include_str!("hugging_face.txt").trim_ascii();
/// Address of ModelScope; `MODELSCOPE_ENDPOINT` names another.
pub const MODELSCOPE: &str = "https://modelscope.cn";

/// Hosts whose addresses are those of the Hugging Face Hub: its own, its short form, and its best-known mirror.
const HUGGING_FACE_HOSTS: [&str; 4] = ["huggingface.co", "www.huggingface.co", "hf.co", "hf-mirror.com"];
const MODELSCOPE_HOSTS: [&str; 4] = [
    "modelscope.cn",
    "www.modelscope.cn",
    "modelscope.ai",
    "www.modelscope.ai",
];
/// Parts of an address between a repository and a revision.
const VIEWS: [&str; 4] = ["tree", "blob", "resolve", "raw"];
/// Longest name that a hub allows.
const MOST_CHARACTERS: usize = 96;

/// Place that has models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hub {
    /// The Hugging Face Hub, or a mirror of it.
    #[default]
    HuggingFace,
    /// ModelScope.
    ModelScope,
}

/// A model's repository at a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Hub that the text names; the Hugging Face Hub for a bare id.
    pub hub: Hub,
    /// Owner and name, `Qwen/Qwen2.5-VL-3B-Instruct`.
    pub id: String,
    /// Branch, tag or commit, if one is named.
    pub revision: Option<String>,
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revision {
            Some(revision) => write!(f, "{}@{revision}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl Repository {
    /// Reads an id (`owner/name`, `owner/name@revision`, `owner/name:Q4_K_M` as llama.cpp writes it), an address of a hub,
    /// or the folder of one in a cache of Hugging Face's libraries (`models--owner--name`). `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let bare = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let host = bare.unwrap_or(text).split('/').next()?.to_ascii_lowercase();
        if HUGGING_FACE_HOSTS.contains(&&*host) || MODELSCOPE_HOSTS.contains(&&*host) {
            return Self::of_address(bare.unwrap_or(text), &host);
        }
        if bare.is_some() {
            return None;
        }
        let text = text.strip_prefix("hf://").unwrap_or(text);
        if let Some(folder) = text.strip_prefix("models--") {
            let (owner, name) = folder.split_once("--")?;
            return Self::new(Hub::HuggingFace, owner, name, None);
        }
        let (id, revision) = text.split_once('@').map_or((text, None), |(id, of)| (id, Some(of)));
        let (owner, name) = id.split_once('/')?;
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        Self::new(Hub::HuggingFace, owner, name, revision)
    }

    /// Reads `host/owner/name`, with what may follow: `/tree/REVISION`, a query, a fragment.
    fn of_address(address: &str, host: &str) -> Option<Self> {
        let hub = if MODELSCOPE_HOSTS.contains(&host) {
            Hub::ModelScope
        } else {
            Hub::HuggingFace
        };
        let (path, query) = address.split(['#']).next()?.split_once('?').unwrap_or((address, ""));
        let path = path.split('#').next()?;
        let mut parts = path.split('/').skip(1).filter(|part| !part.is_empty()).peekable();
        if hub == Hub::ModelScope {
            parts.next_if_eq(&"models");
        }
        let (owner, name) = (parts.next()?, parts.next()?);
        let of_query = || query.split('&').find_map(|pair| pair.strip_prefix("Revision="));
        let revision = match parts.next() {
            Some(view) if VIEWS.contains(&view) => parts.next(),
            _ => of_query(),
        };
        let revision = revision.map(|of| {
            percent_encoding::percent_decode_str(of)
                .decode_utf8_lossy()
                .into_owned()
        });
        Self::new(hub, owner, name, revision.as_deref())
    }

    fn new(hub: Hub, owner: &str, name: &str, revision: Option<&str>) -> Option<Self> {
        // Data sets and spaces have addresses of the same form.
        let is_model = !["datasets", "spaces", "api", "docs", "models"].contains(&owner);
        let is_revision = revision.is_none_or(|of| !of.is_empty() && !of.contains(char::is_whitespace));
        (is_model && is_revision && is_name(owner) && is_name(name)).then(|| Self {
            hub,
            id: format!("{owner}/{name}"),
            revision: revision.map(str::to_owned),
        })
    }

    /// Address of a file at the hub whose own address is `endpoint`.
    pub fn file_address(&self, endpoint: &str, file: &str) -> String {
        let revision = self.revision.as_deref();
        match self.hub {
            Hub::HuggingFace => {
                let revision = escaped(revision.unwrap_or("main"));
                format!("{endpoint}/{}/resolve/{revision}/{file}", self.id)
            }
            // As ModelScope's library asks for a file (`file_download.py`).
            Hub::ModelScope => {
                let revision = escaped(revision.unwrap_or("master"));
                format!(
                    "{endpoint}/api/v1/models/{}/repo?Revision={revision}&FilePath={file}",
                    self.id
                )
            }
        }
    }

    /// Address at which the Hugging Face Hub's API says what it knows of the repository; `None` for another hub.
    pub fn info_address(&self, endpoint: &str) -> Option<String> {
        (self.hub == Hub::HuggingFace).then_some(())?;
        let mut address = format!("{endpoint}/api/models/{}", self.id);
        if let Some(revision) = &self.revision {
            address.push_str("/revision/");
            address.push_str(&escaped(revision));
        }
        address.push_str("?expand[]=safetensors&expand[]=cardData&expand[]=sha");
        Some(address)
    }

    /// Owner of the repository.
    pub fn owner(&self) -> &str {
        self.id.split_once('/').map_or("", |(owner, _)| owner)
    }

    /// Name without its owner.
    pub fn name(&self) -> &str {
        self.id.split_once('/').map_or(&self.id, |(_, name)| name)
    }
}

/// A revision in an address: branches have slashes.
fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
        .to_string()
        .replace("%2D", "-")
        .replace("%2E", ".")
        .replace("%5F", "_")
}

/// Returns true for what the hubs take as the name of an owner or a repository (`validate_repo_id`).
fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty()
        && text.len() <= MOST_CHARACTERS
        && text.chars().all(is_allowed)
        && !text.starts_with(['.', '-'])
        && !text.ends_with(['.', '-'])
        && !text.contains("--")
        && !text.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Hub, String, Option<String>)> {
        Repository::parse(text).map(|of| (of.hub, of.id, of.revision))
    }

    #[test]
    fn ids_and_addresses_name_a_repository() {
        let cases = [
            ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
            (" Qwen/Qwen3-8B\n", "Qwen/Qwen3-8B", None),
            ("Qwen/Qwen3-8B@v1.0", "Qwen/Qwen3-8B", Some("v1.0")),
            ("Qwen/Qwen3-8B@refs/pr/4", "Qwen/Qwen3-8B", Some("refs/pr/4")),
            ("unsloth/Qwen3-8B-GGUF:Q4_K_M", "unsloth/Qwen3-8B-GGUF", None),
            ("https://huggingface.co/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
            ("https://huggingface.co/Qwen/Qwen3-8B/", "Qwen/Qwen3-8B", None),
            ("hf.co/Qwen/Qwen3-8B?library=peft", "Qwen/Qwen3-8B", None),
            (
                "https://huggingface.co/Qwen/Qwen3-8B/tree/main#files",
                "Qwen/Qwen3-8B",
                Some("main"),
            ),
            (
                "https://huggingface.co/Qwen/Qwen3-8B/blob/refs%2Fpr%2F4/config.json",
                "Qwen/Qwen3-8B",
                Some("refs/pr/4"),
            ),
            ("models--Qwen--Qwen3-8B", "Qwen/Qwen3-8B", None),
        ];
        for (text, id, revision) in cases {
            let expected = (Hub::HuggingFace, id.to_owned(), revision.map(str::to_owned));
            assert_eq!(read(text), Some(expected), "{text}");
        }
        let modelscope = read("https://modelscope.cn/models/Qwen/Qwen3-8B/files");
        assert_eq!(modelscope, Some((Hub::ModelScope, "Qwen/Qwen3-8B".to_owned(), None)));
    }

    #[test]
    fn other_texts_name_none() {
        let others = [
            "",
            "gpt2",
            "a/b/c",
            "./a/b",
            "../models",
            "/models/Qwen3-8B",
            "~/models",
            "a//b",
            "a/b@",
            "a b/c",
            "a/--b",
            "a/b..c",
            "https://example.com/a/b",
            "https://huggingface.co/datasets/a/b",
            "https://huggingface.co/Qwen",
            "C:\\models\\a",
        ];
        for text in others {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
