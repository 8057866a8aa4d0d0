//! Groups of the catalogue's models: by the vendor, and by size where a vendor has many.

/// Vendors by the beginning of a name in lower case: the owner of an id, or a short name.
const VENDORS: [(&str, &str); 44] = [
    ("qwen", "Qwen"),
    ("llava", "LLaVA"),
    ("tinyllava", "LLaVA"),
    ("opengvlab", "OpenGVLab"),
    ("internvl", "OpenGVLab"),
    ("google", "Google"),
    ("gemma", "Google"),
    ("paligemma", "Google"),
    ("vit-", "Google"),
    ("meta-llama", "Meta"),
    ("llama", "Meta"),
    ("mllama", "Meta"),
    ("facebook", "Meta"),
    ("mistralai", "Mistral AI"),
    ("huggingface", "Hugging Face"),
    ("smolvlm", "Hugging Face"),
    ("microsoft", "Microsoft"),
    ("openai", "OpenAI"),
    ("clip", "OpenAI"),
    ("gpt2", "OpenAI"),
    ("salesforce", "Salesforce"),
    ("blip2", "Salesforce"),
    ("deepseek-ai", "DeepSeek"),
    ("aidc-ai", "AIDC-AI"),
    ("zai-org", "Z.ai"),
    ("thudm", "Z.ai"),
    ("baidu", "Baidu"),
    ("allenai", "Ai2"),
    ("mcg-nju", "MCG-NJU"),
    ("videomae", "MCG-NJU"),
    ("r3d", "torchvision"),
    ("mc3", "torchvision"),
    ("r2plus1d", "torchvision"),
    ("lmsys", "LMSYS"),
    ("vicuna", "LMSYS"),
    ("tinyllama", "TinyLlama"),
    ("eleutherai", "EleutherAI"),
    ("bigcode", "BigCode"),
    ("cohere", "Cohere"),
    ("bytedance", "ByteDance"),
    ("ibm-granite", "IBM"),
    ("stabilityai", "Stability AI"),
    ("liquidai", "Liquid AI"),
    ("01-ai", "01.AI"),
];

/// Most models of a vendor in one group.
const MOST: usize = 10;

/// Sizes at which groups of one vendor begin, in millions of parameters, and what they are called.
const SIZES: [(u64, &str); 4] = [(0, "< 4B"), (4_000, "4–15B"), (15_001, "15–50B"), (50_001, "> 50B")];

/// A model in its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouped {
    /// The model.
    pub name: &'static str,
    /// Its vendor.
    pub vendor: String,
    /// Heading of its group.
    pub group: String,
}

/// Puts models into groups. Vendors stay in the order in which they come, and models of a vendor are ordered by size.
pub fn grouped(names: &[&'static str]) -> Vec<Grouped> {
    let mut vendors: Vec<(String, Vec<(u64, &'static str)>)> = Vec::new();
    for name in names {
        let vendor = vendor(name);
        let one = (size(name).unwrap_or(0), *name);
        match vendors.iter_mut().find(|(known, _)| *known == vendor) {
            Some((_, models)) => {
                // After those of its size.
                let place = models.iter().take_while(|(size, _)| *size <= one.0).count();
                models.insert(place, one);
            }
            None => vendors.push((vendor, vec![one])),
        }
    }
    let mut all = Vec::new();
    for (vendor, models) in vendors {
        let is_split = models.len() > MOST;
        for (size, name) in models {
            let class = SIZES.iter().filter(|(begin, _)| *begin <= size).count();
            let group = match is_split {
                true => format!("{vendor} · {}", SIZES[class - 1].1),
                false => vendor.clone(),
            };
            all.push(Grouped {
                name,
                vendor: vendor.clone(),
                group,
            });
        }
    }
    all
}

/// Vendor of a model; the owner in its id if it has no other name here.
fn vendor(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let known = VENDORS.iter().find(|(begin, _)| lower.starts_with(begin));
    let owner = name.split_once('/').map_or(name, |(owner, _)| owner);
    known.map_or(owner, |(_, vendor)| vendor).to_owned()
}

/// Millions of parameters that a name tells, of all experts.
fn size(name: &str) -> Option<u64> {
    name.to_ascii_lowercase().split(['-', '/', '_']).find_map(|part| {
        let (number, millions) = match part.strip_suffix('b') {
            Some(number) => (number, 1000.0),
            None => (part.strip_suffix('m')?, 1.0),
        };
        let (experts, each) = number.split_once('x').unwrap_or(("1", number));
        let number = experts.parse::<f64>().ok()? * each.parse::<f64>().ok()?;
        // Parts such as `1b` of eight experts and `0.5b` alike.
        Some((number * millions) as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_engine::Model;

    #[test]
    fn a_name_tells_its_size() {
        let sizes = [
            ("Qwen/Qwen2.5-VL-7B-Instruct", Some(7000)),
            ("Qwen/Qwen3-30B-A3B", Some(30_000)),
            ("mistralai/Mixtral-8x7B-v0.1", Some(56_000)),
            ("HuggingFaceTB/SmolLM2-135M", Some(135)),
            ("smolvlm2-2.2b", Some(2200)),
            ("openai/clip-vit-base-patch32", None),
            ("gpt2", None),
        ];
        for (name, millions) in sizes {
            assert_eq!(size(name), millions, "{name}");
        }
    }

    #[test]
    fn every_model_is_in_one_group_of_its_vendor() {
        let names = Model::catalogue();
        let all = grouped(&names);
        assert_eq!(all.len(), names.len());
        for name in &names {
            assert_eq!(all.iter().filter(|one| one.name == *name).count(), 1, "{name}");
            let known = VENDORS
                .iter()
                .any(|(begin, _)| name.to_ascii_lowercase().starts_with(begin));
            assert!(
                known,
                "{name} is of a vendor that src/app/state/model_groups.rs does not name"
            );
        }
        // A group is in one piece, and of a readable length.
        let mut groups: Vec<&str> = all.iter().map(|one| one.group.as_str()).collect();
        groups.dedup();
        let count = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), count);
        assert!(all.iter().any(|one| one.group == "Qwen · < 4B"));
        // By size within a vendor.
        assert_eq!(all[0].name, "tinyllava-1.5b");
    }
}
