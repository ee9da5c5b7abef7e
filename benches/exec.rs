//! How fast one core executes PTX: `cargo bench --package cuda-ptx-host --bench exec`.

use cuda_ptx_host::exec::{Grid, Memory, Options, Program};

/// What a kernel does, its shared memory, and its body. `%r1` is the thread, `%rd2` a buffer of 4 MiB.
const KERNELS: [(&str, &str, &str); 4] = [
    (
        "integers and floats",
        "",
        "mov.u32 %r2, 0; mov.f32 %f1, 0f3F800000;
         L: mad.lo.u32 %r3, %r2, %r1, 17; xor.b32 %r4, %r3, %r4; shr.u32 %r5, %r4, 3;
         cvt.rn.f32.u32 %f2, %r5; fma.rn.f32 %f1, %f2, %f1, %f2; min.u32 %r6, %r5, %r3;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2000; @%p1 bra L;",
    ),
    (
        "divergent branches",
        "",
        "mov.u32 %r2, 0; mov.u32 %r3, %r1;
         L: and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra E;
         mad.lo.u32 %r3, %r3, 3, 1; bra N;
         E: shr.u32 %r3, %r3, 1;
         N: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 1000; @%p1 bra L;",
    ),
    (
        "global and shared memory, with barriers",
        ".shared .align 4 .b8 tile[1024];",
        "mov.u32 %r2, 0; mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;
         xor.b32 %r7, %r6, 512; mov.u32 %r8, tile; add.u32 %r7, %r8, %r7;
         L: mad.lo.u32 %r3, %r2, 256, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd2, %rd3;
         ld.global.u32 %r4, [%rd4]; st.shared.u32 [%r5], %r4; bar.sync 0;
         ld.shared.u32 %r4, [%r7]; bar.sync 0;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 500; @%p1 bra L;",
    ),
    (
        "mbarrier phases",
        ".shared .align 8 .b64 bar;",
        "mov.u32 %r2, 0; mov.u32 %r5, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra S;
         mbarrier.init.shared.b64 [%r5], 256;
         S: bar.sync 0;
         L: mbarrier.arrive.shared.b64 %rd3, [%r5];
         W: mbarrier.try_wait.shared::cta.b64 %p1, [%r5], %rd3; @!%p1 bra W;
         add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 500; @%p1 bra L;",
    ),
];

/// The processor time of this thread: other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `time` is a place for it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    println!(
        "10^6 instructions of threads per second, one core; with and without checks of accesses"
    );
    for (what, shared, body) in KERNELS {
        let text = format!(
            ".version 8.7\n.target sm_90a\n.address_size 64\n{shared}\n.visible .entry k(.param .u64 data)
             {{ .reg .pred %p<4>; .reg .b32 %r<16>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
             ld.param.u64 %rd2, [data]; mov.u32 %r1, %tid.x; {body} ret; }}"
        );
        let program = Program::parse(&text).expect("the kernels are right");
        let rate = |races| {
            let mut memory = Memory::new();
            let data = memory.upload(&vec![1; 4 << 20]);
            let arguments = [data.address().to_le_bytes().to_vec()];
            let grid = Grid::new([8, 1, 1], [256, 1, 1]);
            let options = Options {
                races,
                ..Options::default()
            };
            let start = cpu_seconds();
            let stats = program
                .run("k", &grid, &arguments, &mut memory, &options)
                .expect("the kernels are right");
            stats.thread_instructions as f64 / (cpu_seconds() - start) / 1e6
        };
        println!("{what}: {:.0}, {:.0}", rate(true), rate(false));
    }
}
