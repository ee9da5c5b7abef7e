//! Specs with one wrong line: the tests must notice each.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::build::write_if_changed;
use crate::generate;
use crate::spec::{self, Spec};
use crate::toolchain;

/// A line of the spec, and a wrong one in its place.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What it is called in reports.
    pub name: &'static str,
    /// The family whose spec it is in.
    pub family: &'static str,
    /// Text that occurs in that spec once.
    pub right: &'static str,
    /// What stands there instead.
    pub wrong: &'static str,
    /// The functions that it makes wrong.
    pub functions: &'static [&'static str],
    /// Whether `cuda::ptx` lacks them: no header says what is right, and what the kernels give must show it.
    pub beyond: bool,
}

/// Seven mutants, each of another family: an operand order, a clobber, a tag, an operation, a field; and beyond
/// `cuda::ptx` an operand order, and layouts of matrices.
pub const MUTANTS: [Mutant; 7] = [
    Mutant {
        name: "operand-order",
        family: "bits",
        right: "prmt.b32 dest, a_reg, b_reg, c_reg;",
        wrong: "prmt.b32 dest, b_reg, a_reg, c_reg;",
        functions: &["prmt"],
        beyond: false,
    },
    Mutant {
        name: "missing-clobber",
        family: "ld_st",
        right: "    st.space.type [addr], src;\n",
        wrong: "    st.space.type [addr], src;\n    effects volatile A deliberate mistake.\n",
        functions: &["st"],
        beyond: false,
    },
    Mutant {
        name: "wrong-tag",
        family: "tags",
        right: "    inc     .inc ",
        wrong: "    inc     .dec ",
        functions: &["red_async"],
        beyond: false,
    },
    Mutant {
        name: "wrong-operation",
        family: "mbarrier",
        right: "mbarrier.arrive_drop.sem.scope.space.b64 state, [addr], count;",
        wrong: "mbarrier.arrive.sem.scope.space.b64 state, [addr], count;",
        functions: &["mbarrier_arrive_drop"],
        beyond: false,
    },
    Mutant {
        name: "wrong-field",
        family: "tensormap",
        right: "global_dim.global_dim.b32",
        wrong: "global_dim.box_dim.b32",
        functions: &["tensormap_replace_global_dim"],
        beyond: false,
    },
    Mutant {
        name: "swapped-halves",
        family: "convert",
        right: "cvt.rn.to.f32 d, a, b;",
        wrong: "cvt.rn.to.f32 d, b, a;",
        functions: &["cvt_rn_f16x2_f32", "cvt_rn_bf16x2_f32"],
        beyond: true,
    },
    Mutant {
        name: "wrong-layout",
        family: "mma",
        right: "m8n8k4.alayout.blayout.f16.atype.btype.f16 d",
        wrong: "m8n8k4.blayout.alayout.f16.atype.btype.f16 d",
        functions: &["mma_sync_m8n8k4_row_col", "mma_sync_m8n8k4_col_row"],
        beyond: true,
    },
];

impl Mutant {
    /// The spec with the wrong line.
    ///
    /// # Errors
    ///
    /// The right line is no longer there, or the wrong one is not a spec.
    pub fn spec(&self) -> Result<Spec> {
        let mut tags = String::new();
        let mut families = Vec::new();
        for entry in std::fs::read_dir(spec::directory())? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "spec") {
                continue;
            }
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let mut text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            if name == self.family {
                ensure!(
                    text.contains(self.right),
                    "{} no longer has `{}`: choose another line for the mutant {}",
                    path.display(),
                    self.right,
                    self.name
                );
                text = text.replacen(self.right, self.wrong, 1);
            }
            match name.as_str() {
                "tags" => tags = text,
                _ => families.push((name, text)),
            }
        }
        families.sort();
        spec::build(&tags, &families)
    }

    /// A device crate made from the wrong spec, in a folder of its own.
    pub(super) fn write_crate(&self, work: &Path) -> Result<PathBuf> {
        let folder = work.join("mutated").join(self.name);
        let manifest = "[package]\nname = \"cuda-ptx\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[lib]\nname = \"cuda_ptx\"\n\n\
            [lints.rust]\nunexpected_cfgs = \"allow\"\n\n[workspace]\n";
        write_if_changed(&folder.join("Cargo.toml"), manifest)?;
        let generated = generate::outputs(&self.spec()?)?;
        copy_sources(
            &toolchain::workspace_root(),
            Path::new("src"),
            &folder,
            &generated,
        )?;
        for (path, text) in &generated {
            if path.starts_with("src") {
                write_if_changed(&folder.join(path), text)?;
            }
        }
        Ok(folder)
    }
}

/// The sources that are not generated.
fn copy_sources(
    root: &Path,
    place: &Path,
    folder: &Path,
    generated: &[generate::Output],
) -> Result<()> {
    for entry in std::fs::read_dir(root.join(place))
        .with_context(|| format!("cannot read {}", place.display()))?
    {
        let entry = entry?;
        let path = place.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_sources(root, &path, folder, generated)?;
        } else if !generated.iter().any(|(made, _)| *made == path) {
            write_if_changed(&folder.join(&path), &std::fs::read_to_string(entry.path())?)?;
        }
    }
    Ok(())
}
