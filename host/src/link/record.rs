//! The records that `kernel!` leaves in the section `.cuda_ptx.kernel`: layout as in
//! `cuda_ptx::kernel::Record`, all little-endian.

use anyhow::{Context, Result, bail};

/// The section that `kernel!` puts its records in.
pub const SECTION: &str = ".cuda_ptx.kernel";

/// Launch attributes and grid-constant parameters of one kernel.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub name: String,
    max_threads: u32,
    min_blocks: u32,
    max_registers: u32,
    cluster: [u32; 3],
    block: [u32; 3],
    /// For each parameter its size and alignment in bytes if it is a grid constant.
    pub grid_constants: Vec<Option<GridConstant>>,
}

/// A parameter passed by value whose address can be taken.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub struct GridConstant {
    pub size: u32,
    pub align: u32,
}

impl Record {
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut words = Words(bytes);
        let max_threads = words.next()?;
        let min_blocks = words.next()?;
        let max_registers = words.next()?;
        let cluster = [words.next()?, words.next()?, words.next()?];
        let block = [words.next()?, words.next()?, words.next()?];
        let count = words.next()?;
        let mut grid_constants = Vec::new();
        for _ in 0..count {
            let (size, align) = (words.next()?, words.next()?);
            grid_constants.push((size > 0).then_some(GridConstant { size, align }));
        }
        let name = std::str::from_utf8(words.0).context("a kernel record's name is not UTF-8")?;
        if name.is_empty() {
            bail!("a kernel record has no name");
        }
        Ok(Self {
            name: name.to_owned(),
            max_threads,
            min_blocks,
            max_registers,
            cluster,
            block,
            grid_constants,
        })
    }

    /// The LLVM function attributes that become the PTX performance-tuning directives.
    pub fn function_attributes(&self) -> String {
        let mut attributes = String::new();
        let mut add =
            |key: &str, value: String| attributes.push_str(&format!(" \"{key}\"=\"{value}\""));
        if self.max_threads > 0 {
            add("nvvm.maxntid", self.max_threads.to_string());
        }
        if self.min_blocks > 0 {
            add("nvvm.minctasm", self.min_blocks.to_string());
        }
        if self.max_registers > 0 {
            add("nvvm.maxnreg", self.max_registers.to_string());
        }
        if self.block[0] > 0 {
            add("nvvm.reqntid", triple(self.block));
        }
        if self.cluster[0] > 0 {
            add("nvvm.cluster_dim", triple(self.cluster));
        }
        attributes
    }
}

fn triple([x, y, z]: [u32; 3]) -> String {
    format!("{x},{y},{z}")
}

struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn next(&mut self) -> Result<u32> {
        let (word, rest) = self
            .0
            .split_first_chunk::<4>()
            .context("a kernel record is too short")?;
        self.0 = rest;
        Ok(u32::from_le_bytes(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32], name: &str) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.extend(name.bytes());
        bytes
    }

    #[test]
    fn attributes_and_grid_constants_are_read() {
        let record = Record::parse(&bytes(
            &[256, 2, 64, 2, 1, 1, 0, 0, 0, 2, 0, 0, 128, 64],
            "tiles",
        ))
        .unwrap();
        assert_eq!(record.name, "tiles");
        assert_eq!(
            record.grid_constants,
            [
                None,
                Some(GridConstant {
                    size: 128,
                    align: 64
                })
            ]
        );
        assert_eq!(
            record.function_attributes(),
            r#" "nvvm.maxntid"="256" "nvvm.minctasm"="2" "nvvm.maxnreg"="64" "nvvm.cluster_dim"="2,1,1""#
        );
    }

    #[test]
    fn a_truncated_record_is_an_error() {
        assert!(Record::parse(&bytes(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0], "k")).is_err());
        assert!(Record::parse(&bytes(&[0; 10], "")).is_err());
    }
}
