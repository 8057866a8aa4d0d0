//! Names of the repository's own are the field's: none of those that had to be explained comes back.

use std::path::Path;

use syn::visit::{self, Visit};

use super::sources;

/// Names that no type, function, module or field has, in the case of modules.
const BANNED: [&str; 25] = [
    "birth",
    "births",
    "chore",
    "chores",
    "death",
    "deaths",
    "desk",
    "face",
    "fresh",
    "further",
    "ground",
    "grounds",
    "item_by",
    "later",
    "lay",
    "light",
    "near",
    "player",
    "shelf",
    "shelves",
    "standing",
    "telling",
    "together",
    "take_light",
    "put_together",
];

/// Banned names that mean the field's own in these files.
const ALLOWED: [(&str, &str); 1] = [("light", "src/app/shell/theme.rs")];

/// Collects the names that a file declares.
#[derive(Default)]
struct Names(Vec<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_ident(&mut self, _: &'ast syn::Ident) {}

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.0.push(item.ident.to_string());
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.0.push(item.ident.to_string());
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.0.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.0.push(item.ident.to_string());
        visit::visit_item_type(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.0.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.to_string());
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.0.extend(field.ident.as_ref().map(ToString::to_string));
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.0.push(variant.ident.to_string());
        visit::visit_variant(self, variant);
    }
}

/// Writes a type's name as a module's: `SmallShelf` as `small_shelf`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

fn is_allowed(name: &str, path: &Path) -> bool {
    ALLOWED
        .iter()
        .any(|(allowed, file)| *allowed == name && path.ends_with(file))
}

#[test]
fn no_name_has_to_be_explained() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut names = Names::default();
        names.visit_file(&file);
        for name in names.0.iter().map(|name| snake(name)) {
            if BANNED.contains(&name.as_str()) && !is_allowed(&name, &path) {
                found.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
