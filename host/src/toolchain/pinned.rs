//! `host/toolchain.toml`, read once: the versions that this revision of the project installs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::version::Version;

/// The pinned versions.
pub(super) static PINNED: LazyLock<Pinned> = LazyLock::new(|| {
    toml::from_str(include_str!("../../toolchain.toml"))
        .expect("host/toolchain.toml has the shape of `Pinned`")
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pinned {
    pub rust: Rust,
    /// Keyed by `CudaSet::name`.
    pub cuda: BTreeMap<String, Cuda>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rust {
    #[serde(deserialize_with = "version")]
    pub minimum: Version,
    pub debian: Vec<String>,
    pub components: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cuda {
    #[serde(deserialize_with = "version")]
    pub version: Version,
    #[serde(deserialize_with = "version")]
    pub cccl: Version,
    /// PyPI distribution → version.
    pub wheels: BTreeMap<String, String>,
}

impl Cuda {
    /// What pip is asked for, one `name==version` per wheel.
    pub fn requirements(&self) -> Vec<String> {
        self.wheels
            .iter()
            .map(|(name, version)| format!("{name}=={version}"))
            .collect()
    }
}

fn version<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
    let text = String::deserialize(from)?;
    Version::parse(&text)
        .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a version number")))
}

#[cfg(test)]
mod tests {
    use super::super::CudaSet;

    #[test]
    fn the_file_holds_every_set_with_its_nvcc_at_the_sets_version() {
        for set in [CudaSet::Assembler, CudaSet::Driver13_0] {
            let cuda = set.pinned();
            assert_eq!(
                cuda.wheels["nvidia-cuda-nvcc"],
                cuda.version.to_string(),
                "{set:?}"
            );
        }
    }
}
