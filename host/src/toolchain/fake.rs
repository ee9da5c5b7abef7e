//! A made-up machine for tests: a file system root with shell scripts for tools.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::machine::Machine;

/// A root folder with `usr/bin/g++` and `etc/debian_version` in it, and nothing else.
pub(super) struct Fake {
    root: TempDir,
}

impl Fake {
    pub fn new() -> Self {
        let fake = Self {
            root: TempDir::new().expect("a temporary folder"),
        };
        fake.file("etc/debian_version", "12\n");
        fake.tool("usr/bin/g++", "");
        fake
    }

    /// The machine, for a user who is not root, with more environment variables.
    pub fn machine(&self, vars: &[(&str, &str)]) -> Machine {
        let own = [("PATH", self.path("usr/bin")), ("HOME", self.path("home"))];
        Machine {
            vars: own
                .into_iter()
                .map(|(name, value)| (OsString::from(name), value.into_os_string()))
                .chain(vars.iter().map(|(name, value)| (name.into(), value.into())))
                .collect(),
            system: self.path(""),
            is_root: false,
            toolchains: self.path("target/toolchain"),
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// An executable shell script.
    pub fn tool(&self, path: &str, script: &str) -> PathBuf {
        let path = self.file(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A CUDA toolkit; returns its root.
    pub fn toolkit(&self, root: &str, version: &str, cccl: &str) -> PathBuf {
        let said = format!("echo 'Cuda compilation tools, release 0.0, V{version}'");
        self.tool(&format!("{root}/bin/nvcc"), &said);
        for tool in ["ptxas", "nvdisasm", "cuobjdump"] {
            self.tool(&format!("{root}/bin/{tool}"), "");
        }
        self.file(&format!("{root}/include/cccl/cuda/ptx"), "");
        let parts: Vec<u32> = cccl.split('.').map(|part| part.parse().unwrap()).collect();
        let number = parts[0] * 1_000_000 + parts[1] * 1000 + parts[2];
        self.file(
            &format!("{root}/include/cccl/cuda/std/__cccl/version.h"),
            &format!("#define CCCL_VERSION {number}\n"),
        );
        self.path(root)
    }

    /// A rustc with its sources; returns its sysroot.
    pub fn rustc(&self, sysroot: &str, version: &str, llvm: &str) -> PathBuf {
        let root = self.path(sysroot);
        let script = format!(
            "case \"$*\" in\n\
             -vV) echo 'host: x86_64-unknown-linux-gnu'; echo 'release: {version}'; echo 'LLVM version: {llvm}' ;;\n\
             '--print sysroot') echo '{}' ;;\n\
             *) exit 1 ;;\n\
             esac",
            root.display()
        );
        self.tool(&format!("{sysroot}/bin/rustc"), &script);
        self.file(
            &format!("{sysroot}/lib/rustlib/src/rust/library/core/src/lib.rs"),
            "",
        );
        root
    }

    /// LLVM tools; returns their folder.
    pub fn llvm(&self, dir: &str, version: &str) -> PathBuf {
        self.tool(&format!("{dir}/llvm-link"), "");
        self.tool(&format!("{dir}/opt"), "");
        let said = format!("echo 'LLVM version {version}'; echo ' nvptx64 - NVIDIA PTX 64-bit'");
        self.tool(&format!("{dir}/llc"), &said);
        self.path(dir)
    }

    /// A python3 whose pip leaves a wheel and whose zipfile "unpacks" a CUDA toolkit without run bits.
    pub fn python(&self) {
        self.toolkit("wheels/nvidia/cu13", "13.5.37", "3.5.0");
        self.tool("wheels/nvidia/cu13/nvvm/bin/cicc", "");
        let script = format!(
            "case \"$*\" in\n\
             *'pip --disable-pip-version-check --version') ;;\n\
             *' download '*)\n\
             echo call >> '{calls}'\n\
             while [ \"$1\" != --dest ]; do shift; done; touch \"$2/one.whl\" ;;\n\
             '-m zipfile -e '*) cp -R '{wheels}/.' \"$5\"; find \"$5\" -type f -exec chmod a-x '{{}}' + ;;\n\
             *) exit 1 ;;\n\
             esac",
            calls = self.path("pip-download.calls").display(),
            wheels = self.path("wheels").display(),
        );
        self.tool("usr/bin/python3", &script);
    }

    /// A python3 whose pip is there and fails to download.
    pub fn failing_pip(&self, said: &str) {
        let script = format!(
            "case \"$*\" in *--version) exit 0 ;; esac\n\
             while [ \"$1\" != --dest ]; do shift; done; touch \"$2/half.whl\"\n\
             echo '{said}' >&2; exit 1"
        );
        self.tool("usr/bin/python3", &script);
    }

    /// An apt that offers a rustc-web of some version and installs what lies under `packages` into `usr`.
    pub fn apt(&self, rustc_web: &str) {
        self.tool(
            "usr/bin/apt-cache",
            &format!("echo '  Candidate: {rustc_web}'"),
        );
        let script = format!(
            "case \"$*\" in *install*) echo call >> '{calls}'; cp -R '{packages}/.' '{usr}' ;; esac",
            calls = self.path("apt-install.calls").display(),
            packages = self.path("packages").display(),
            usr = self.path("usr").display(),
        );
        self.tool("usr/bin/apt-get", &script);
    }

    /// How often a counted tool ran.
    pub fn calls(&self, name: &str) -> usize {
        fs::read_to_string(self.path(&format!("{name}.calls")))
            .map_or(0, |calls| calls.lines().count())
    }
}
