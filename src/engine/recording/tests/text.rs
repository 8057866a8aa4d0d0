//! Builder of recordings for tests.

/// Recording under construction.
pub(super) struct Text {
    lines: Vec<String>,
    storages: u64,
    functions: Vec<String>,
    metas: u64,
}

/// Tensor in the recording: its name in arguments, and its storage.
#[derive(Clone)]
pub(super) struct Written {
    pub name: String,
    pub storage: u64,
}

/// Returns the header for a card of this compute capability.
pub(super) fn header(capability: [u32; 2]) -> String {
    let [major, minor] = capability;
    format!(
        r#"{{"t":"header","format":"vramscope-recording","version":1,"recorder":"0.1.0","versions":{{"torch":"2.11.0+cu130"}},"gpu":{{"name":"NVIDIA H200","capability":[{major},{minor}],"memory":150109880320,"sms":132}},"settings":{{"alloc_conf":"","cublas_workspace":"","sdp":["flash"]}},"rank":0,"world":1,"command":["train.py"],"steps":1}}"#
    )
}

impl Text {
    /// Starts a recording with its header.
    pub fn new() -> Self {
        Self {
            lines: vec![header([9, 0])],
            storages: 0,
            functions: Vec::new(),
            metas: 0,
        }
    }

    /// Adds a line.
    pub fn line(&mut self, line: impl Into<String>) -> &mut Self {
        self.lines.push(line.into());
        self
    }

    /// Adds marks.
    pub fn marks(&mut self, marks: &[&str]) -> &mut Self {
        for mark in marks {
            self.line(format!(r#"{{"t":"mark","at":"{mark}"}}"#));
        }
        self
    }

    /// Declares a layout.
    pub fn meta(&mut self, dtype: &str, shape: &[u64], strides: Option<&[u64]>) -> u64 {
        let strides = strides
            .map(|strides| format!(r#","strides":{strides:?}"#))
            .unwrap_or_default();
        let id = self.metas;
        self.metas += 1;
        self.line(format!(
            r#"{{"t":"meta","id":{id},"dtype":"{dtype}","shape":{shape:?}{strides}}}"#
        ));
        id
    }

    /// Declares an operation if it is new; returns its number.
    pub fn function(&mut self, name: &str) -> usize {
        if let Some(known) = self.functions.iter().position(|known| known == name) {
            return known;
        }
        let id = self.functions.len();
        self.functions.push(name.into());
        self.line(format!(r#"{{"t":"fn","id":{id},"name":"{name}"}}"#));
        id
    }

    /// Adds a contiguous tensor with its own memory, made by `empty`.
    pub fn tensor(&mut self, dtype: &str, shape: &[u64]) -> Written {
        self.op("aten.empty.memory_format", "", "", &[(dtype, shape)]).remove(0)
    }

    /// Returns a view of a tensor's memory.
    pub fn view(&mut self, of: &Written, dtype: &str, shape: &[u64], strides: &[u64]) -> Written {
        let meta = self.meta(dtype, shape, Some(strides));
        Written {
            name: format!("\"#{}:{meta}\"", of.storage),
            storage: of.storage,
        }
    }

    /// Adds an operation with these arguments, further keys, and results in their own memory.
    pub fn op(&mut self, name: &str, arguments: &str, keys: &str, results: &[(&str, &[u64])]) -> Vec<Written> {
        let function = self.function(name);
        let written: Vec<(Written, u64)> = results
            .iter()
            .map(|(dtype, shape)| {
                let meta = self.meta(dtype, shape, None);
                let storage = self.storages;
                self.storages += 1;
                let width = match *dtype {
                    "f32" | "i32" => 4,
                    "i64" => 8,
                    "bool" | "u8" => 1,
                    _ => 2,
                };
                let name = format!("\"#{storage}:{meta}\"");
                (Written { name, storage }, width * shape.iter().product::<u64>())
            })
            .collect();
        let names: Vec<&str> = written.iter().map(|(tensor, _)| &*tensor.name).collect();
        let new: Vec<String> = written
            .iter()
            .map(|(t, bytes)| format!("[{},{bytes}]", t.storage))
            .collect();
        let (names, new) = (names.join(","), new.join(","));
        self.line(format!(
            r#"{{"t":"op","f":{function},"a":[{arguments}],"o":[{names}],"n":[{new}]{keys}}}"#
        ));
        written.into_iter().map(|(tensor, _)| tensor).collect()
    }

    /// Frees the memory of tensors.
    pub fn free(&mut self, tensors: &[&Written]) -> &mut Self {
        let ids: Vec<u64> = tensors.iter().map(|tensor| tensor.storage).collect();
        self.line(format!(r#"{{"t":"free","s":{ids:?}}}"#))
    }

    /// Returns all lines with the end.
    pub fn all(&self) -> String {
        let end = r#"{"t":"end","steps":1,"ops":1,"storages":1,"seconds":0.1}"#;
        self.lines.join("\n") + "\n" + end + "\n"
    }

    /// Returns all lines without the end.
    pub fn without_end(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// Returns a step that runs `inside` in its backward.
pub(super) fn step(inside: impl FnOnce(&mut Text)) -> Text {
    let mut text = Text::new();
    text.marks(&["step", "forward", "forward_end", "backward"]);
    inside(&mut text);
    text.marks(&["backward_end", "optimizer", "optimizer_end", "step_end"]);
    text
}
