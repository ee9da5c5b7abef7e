//! Tags: the empty values (`sem_release`) whose types select an instruction.
//!
//! `tags.spec` has one `tags` block per family:
//!
//! ```text
//! tags sem
//!     Memory ordering of an operation.
//!     acquire  .acquire  Later accesses are not reordered before it.
//! ```

use anyhow::{Result, bail};

use super::parse::Location;

/// A tag constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// Its family, e.g. `sem`.
    pub family: String,
    /// Its full name, e.g. `sem_release`.
    pub name: String,
    /// How PTX spells it, with the leading dot, e.g. `.release`; empty if it has no word for it.
    pub ptx: String,
    /// One sentence.
    pub doc: String,
}

/// The tags that exclude each other.
#[derive(Clone, Debug)]
pub struct TagFamily {
    /// Common prefix of the names, e.g. `sem`.
    pub name: String,
    /// One sentence.
    pub doc: String,
    /// In the order of the file.
    pub tags: Vec<Tag>,
}

/// All tags.
#[derive(Clone, Debug, Default)]
pub struct TagTable {
    /// In the order of the file.
    pub families: Vec<TagFamily>,
}

impl TagTable {
    /// The tag of that full name.
    pub fn constant(&self, name: &str) -> Option<Tag> {
        self.families
            .iter()
            .flat_map(|family| &family.tags)
            .find(|tag| tag.name == name)
            .cloned()
    }

    /// The family of that name.
    pub fn family(&self, name: &str) -> Option<&TagFamily> {
        self.families.iter().find(|family| family.name == name)
    }
}

impl TagFamily {
    /// The member whose name is the family's name, an underscore and `member`.
    pub fn member(&self, member: &str) -> Option<&Tag> {
        self.tags
            .iter()
            .find(|tag| tag.name.strip_prefix(&self.name) == Some(&format!("_{member}")))
    }
}

pub(super) fn parse(file: &str, text: &str) -> Result<TagTable> {
    let mut table = TagTable::default();
    for (index, line) in text.lines().enumerate() {
        let at = Location::new(file, index + 1);
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("tags ") {
            if table.family(name.trim()).is_some() {
                bail!("{at}: the tags `{}` are there already", name.trim());
            }
            table.families.push(TagFamily {
                name: name.trim().to_string(),
                doc: String::new(),
                tags: Vec::new(),
            });
            continue;
        }
        let Some(family) = table.families.last_mut() else {
            bail!("{at}: expected `tags NAME`, found `{content}`");
        };
        if family.doc.is_empty() {
            family.doc = content.to_string();
            continue;
        }
        let mut words = content.splitn(3, char::is_whitespace).map(str::trim);
        let (Some(member), Some(rest)) = (words.next(), words.next()) else {
            bail!("{at}: expected `NAME .ptx DESCRIPTION`, found `{content}`");
        };
        let doc = words.next().unwrap_or_default();
        // `splitn` leaves padding between the columns in the last part.
        let (ptx, doc) = if rest.is_empty() {
            let mut columns = doc.splitn(2, char::is_whitespace).map(str::trim);
            (
                columns.next().unwrap_or_default(),
                columns.next().unwrap_or_default(),
            )
        } else {
            (rest, doc)
        };
        if !(ptx.starts_with('.') || ptx == "-") || doc.is_empty() {
            bail!("{at}: expected `NAME .ptx DESCRIPTION`, found `{content}`");
        }
        if family.member(member).is_some() {
            bail!("{at}: `{}_{member}` is there already", family.name);
        }
        family.tags.push(Tag {
            family: family.name.clone(),
            name: format!("{}_{member}", family.name),
            ptx: if ptx == "-" {
                String::new()
            } else {
                ptx.to_string()
            },
            doc: doc.trim().to_string(),
        });
    }
    Ok(table)
}
