//! cuBLASLt, loaded at run time: the few calls that a matrix product takes.

use std::ffi::{CStr, c_void};

use anyhow::{Context, Result, bail, ensure};
use cuda_ptx_host::driver::Driver;
use cust::memory::DeviceBuffer;

use crate::matrix::{Input, Output};

type Handle = *mut c_void;

const NAMES: [&CStr; 4] = [
    c"libcublasLt.so.13",
    c"/usr/local/cuda/lib64/libcublasLt.so.13",
    c"libcublasLt.so.12",
    c"/usr/local/cuda/lib64/libcublasLt.so.12",
];

// cublasComputeType_t, cudaDataType_t, cublasOperation_t and attributes, by their names in the headers.
const CUBLAS_COMPUTE_32F: i32 = 68;
const CUDA_R_32F: i32 = 0;
const CUDA_R_16BF: i32 = 14;
const CUDA_R_8F_E4M3: i32 = 28;
const CUBLAS_OP_T: i32 = 1;
const CUBLASLT_MATMUL_DESC_TRANSA: i32 = 3;
const CUBLASLT_MATMUL_DESC_FAST_ACCUM: i32 = 25;
const CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: i32 = 1;

/// What cuBLASLt may use beside the matrices, in bytes.
const WORKSPACE: usize = 64 << 20;
/// How many of its algorithms are tried.
const CANDIDATES: usize = 8;

/// cublasLtMatmulHeuristicResult_t.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Candidate {
    algorithm: [u64; 8],
    workspace: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

macro_rules! entry_points {
    ($($name:ident($($type:ty),*);)*) => {
        #[allow(non_snake_case)]
        struct Api {
            $($name: unsafe extern "C" fn($($type),*) -> i32,)*
        }

        impl Api {
            fn load(library: Handle) -> Result<Self> {
                Ok(Self {$(
                    $name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the name ends in NUL, and the type is that of cublasLt.h.
                        let found = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
                        ensure!(!found.is_null(), "libcublasLt has no {}", stringify!($name));
                        unsafe { std::mem::transmute::<Handle, unsafe extern "C" fn($($type),*) -> i32>(found) }
                    },
                )*})
            }
        }
    };
}

entry_points! {
    cublasLtCreate(*mut Handle);
    cublasLtMatmulDescCreate(*mut Handle, i32, i32);
    cublasLtMatmulDescSetAttribute(Handle, i32, *const c_void, usize);
    cublasLtMatrixLayoutCreate(*mut Handle, i32, u64, u64, i64);
    cublasLtMatmulPreferenceCreate(*mut Handle);
    cublasLtMatmulPreferenceSetAttribute(Handle, i32, *const c_void, usize);
    cublasLtMatmulAlgoGetHeuristic(Handle, Handle, Handle, Handle, Handle, Handle, Handle, i32, *mut Candidate, *mut i32);
    cublasLtMatmul(Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle, *const c_void,
        *const c_void, Handle, *mut c_void, Handle, *const Candidate, *mut c_void, usize, Handle);
}

/// Calls an entry point and turns its code into an error.
macro_rules! call {
    ($api:expr, $name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: pointers are to live values of the declared types, handles are the library's own.
        let code = unsafe { ($api.$name)($($argument),*) };
        ensure!(code == 0, "{} gives cublasStatus_t {code}", stringify!($name));
    }};
}

/// The library.
pub struct Cublas<'d> {
    api: Api,
    handle: Handle,
    driver: &'d Driver,
    workspace: DeviceBuffer<u8>,
}

impl<'d> Cublas<'d> {
    /// Loads the library, if this machine has it.
    pub fn open(driver: &'d Driver) -> Result<Self> {
        // SAFETY: the names end in NUL; the library stays loaded for good.
        let open = |name: &&CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let library = NAMES.iter().map(open).find(|library| !library.is_null());
        let api =
            Api::load(library.context("expected libcublasLt.so.13 or .12 to compare with, found neither")?)?;
        let mut handle = std::ptr::null_mut();
        call!(api, cublasLtCreate(&mut handle));
        Ok(Self { api, handle, driver, workspace: driver.zeroed(WORKSPACE)? })
    }

    /// C = A · Bᵀ, all with packed rows. For cuBLAS, whose matrices have packed columns, that is
    /// Cᵀ = (Bᵀ)ᵀ · Aᵀ.
    pub fn plan(&self, [m, n, k]: [u64; 3], input: Input, output: Output) -> Result<Plan<'_>> {
        let api = &self.api;
        let (input, output) = (
            data_type(input),
            match output {
                Output::Bf16 => CUDA_R_16BF,
                Output::F32 => CUDA_R_32F,
            },
        );
        let mut operation = std::ptr::null_mut();
        call!(api, cublasLtMatmulDescCreate(&mut operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        let set = |attribute, value: &[u8]| {
            call!(
                api,
                cublasLtMatmulDescSetAttribute(operation, attribute, value.as_ptr().cast(), value.len())
            );
            Ok(())
        };
        set(CUBLASLT_MATMUL_DESC_TRANSA, &CUBLAS_OP_T.to_ne_bytes())?;
        if input == CUDA_R_8F_E4M3 {
            // As the instruction accumulates, with no additions in f32 in between.
            set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, &[1])?;
        }
        let layout = |element, rows, columns| {
            let mut layout = std::ptr::null_mut();
            call!(api, cublasLtMatrixLayoutCreate(&mut layout, element, rows, columns, rows as i64));
            Ok::<_, anyhow::Error>(layout)
        };
        let layouts = [layout(input, k, n)?, layout(input, k, m)?, layout(output, n, m)?];
        let mut preference = std::ptr::null_mut();
        call!(api, cublasLtMatmulPreferenceCreate(&mut preference));
        let (limit, size) = (&raw const WORKSPACE_LIMIT, size_of::<usize>());
        call!(
            api,
            cublasLtMatmulPreferenceSetAttribute(
                preference,
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                limit.cast(),
                size
            )
        );
        let mut candidates = [Candidate::default(); CANDIDATES];
        let mut found = 0;
        let [a, b, c] = layouts;
        call!(
            api,
            cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                operation,
                a,
                b,
                c,
                c,
                preference,
                CANDIDATES as i32,
                candidates.as_mut_ptr(),
                &mut found
            )
        );
        if found == 0 {
            bail!("cuBLASLt has no algorithm for {m} by {n} by {k}");
        }
        Ok(Plan { cublas: self, operation, layouts, candidates: candidates[..found as usize].to_vec() })
    }
}

static WORKSPACE_LIMIT: usize = WORKSPACE;

fn data_type(input: Input) -> i32 {
    match input {
        Input::Bf16 => CUDA_R_16BF,
        Input::E4m3 => CUDA_R_8F_E4M3,
    }
}

/// A product, and the algorithms for it, the most promising one first.
pub struct Plan<'c> {
    cublas: &'c Cublas<'c>,
    operation: Handle,
    layouts: [Handle; 3],
    candidates: Vec<Candidate>,
}

impl Plan<'_> {
    /// How many algorithms there are.
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Queues the product by one of the algorithms.
    pub fn launch(
        &self,
        algorithm: usize,
        a: &DeviceBuffer<u8>,
        b: &DeviceBuffer<u8>,
        c: &DeviceBuffer<u8>,
    ) -> Result<()> {
        let Cublas { api, handle, driver, workspace } = self.cublas;
        let address = |buffer: &DeviceBuffer<u8>| buffer.as_device_ptr().as_raw() as *mut c_void;
        let (one, zero) = (1.0f32, 0.0f32);
        let scalar = |x: &f32| std::ptr::from_ref(x).cast::<c_void>();
        let [layout_b, layout_a, layout_c] = self.layouts;
        call!(
            api,
            cublasLtMatmul(
                *handle,
                self.operation,
                scalar(&one),
                address(b),
                layout_b,
                address(a),
                layout_a,
                scalar(&zero),
                address(c),
                layout_c,
                address(c),
                layout_c,
                &self.candidates[algorithm],
                address(workspace),
                WORKSPACE,
                driver.stream().as_inner().cast(),
            )
        );
        Ok(())
    }
}
