//! What the CPU executes, and what it finds wrong, in kernels written as PTX.

use cuda_ptx_host::exec::{Check, Grid, Memory, Options, Program, Violation};

/// A module of one kernel `k`, which has two pointers.
fn module(variables: &str, body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n{variables}\n\
         .visible .entry k(.param .u64 input, .param .u64 output)\n{{\n\
         .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<16>;\n\
         ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output];\n\
         mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3;\n\
         {body}\nret;\n}}\n"
    )
}

/// Runs a kernel on numbers from 0 and gives the first `len` words of its output.
fn run_under(text: &str, grid: &Grid, len: usize, seed: u64) -> anyhow::Result<Vec<u32>> {
    let program = Program::parse(text)?;
    let mut memory = Memory::new();
    let input: Vec<u8> = (0..4096u32).flat_map(u32::to_le_bytes).collect();
    let (input, output) = (memory.upload(&input), memory.upload(&vec![0xee; 4 * len]));
    let arguments = [input, output].map(|it| it.address().to_le_bytes().to_vec());
    let options = Options {
        seed,
        ..Options::default()
    };
    program.run("k", grid, &arguments, &mut memory, &options)?;
    let words = memory.download(output).chunks_exact(4);
    Ok(words
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect())
}

fn run(body: &str, threads: u32) -> Vec<u32> {
    let grid = Grid::new([1; 3], [threads, 1, 1]);
    let text = module("", body);
    let first = run_under(&text, &grid, threads as usize, 0).unwrap();
    for seed in 1..20 {
        let again = run_under(&text, &grid, threads as usize, seed).unwrap();
        assert_eq!(first, again, "schedule {seed}");
    }
    first
}

fn violation(text: &str, grid: &Grid, seed: u64) -> Violation {
    let error = run_under(text, grid, 256, seed).unwrap_err();
    error.downcast::<Violation>().unwrap()
}

#[test]
fn an_unknown_instruction_is_named_with_its_line_before_anything_runs() {
    for (instruction, named) in [
        ("frobnicate.u32 %r1, %r2;", "`frobnicate.u32`"),
        ("add.u32.sideways %r1, %r2, %r3;", "`.sideways`"),
        ("ex2.approx.f32 %f1, %f2;", "`ex2.approx.f32`"),
        (
            "tcgen05.wait::ld.sync.aligned;",
            "`tcgen05.wait::ld.sync.aligned`",
        ),
    ] {
        let text = module("", &format!("\n\n{instruction}"));
        let line = 1 + text[..text.find(instruction).unwrap()]
            .matches('\n')
            .count();
        let error = Program::parse(&text).unwrap().executes("k").unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains(named), "{error}");
        assert!(error.contains(&format!("line {line}:")), "{error}");
    }
}

#[test]
fn lanes_diverge_loop_and_meet_again() {
    // Each lane counts the steps of the Collatz sequence from its number + 1.
    let found = run(
        "add.u32 %r2, %r1, 1; mov.u32 %r3, 0;
         LOOP: setp.eq.u32 %p1, %r2, 1; @%p1 bra DONE;
         and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra EVEN;
         mad.lo.u32 %r2, %r2, 3, 1; bra NEXT;
         EVEN: shr.u32 %r2, %r2, 1;
         NEXT: add.u32 %r3, %r3, 1; bra LOOP;
         DONE: shfl.sync.idx.b32 %r5, %r3, 26, 31, -1; sub.u32 %r3, %r3, %r5;
         st.global.u32 [%rd4], %r3;",
        32,
    );
    let steps = |mut n: u32| {
        let mut steps = 0u32;
        while n != 1 {
            n = if n.is_multiple_of(2) {
                n / 2
            } else {
                3 * n + 1
            };
            steps += 1;
        }
        steps
    };
    let expected: Vec<u32> = (1..=32).map(|n| steps(n).wrapping_sub(steps(27))).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_lane_that_spins_lets_the_others_of_its_warp_go_on() {
    let text = module(
        ".shared .align 4 .u32 flag;",
        "st.shared.u32 [flag], 0; bar.sync 0;
         setp.ne.u32 %p1, %r1, 31; @%p1 bra WAIT;
         st.volatile.shared.u32 [flag], 7; bra END;
         WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT;
         END: ld.volatile.shared.u32 %r3, [flag]; st.global.u32 [%rd4], %r3;",
    );
    for seed in 0..20 {
        let found = run_under(&text, &Grid::new([1; 3], [32, 1, 1]), 32, seed).unwrap();
        assert_eq!(found, [7; 32]);
    }
}

#[test]
fn functions_take_and_return_values_also_in_divergent_calls() {
    let text = module(
        ".func (.param .b32 result) factorial(.param .b32 n)
         { .reg .pred %p<2>; .reg .b32 %r<6>;
           ld.param.b32 %r1, [n]; setp.gt.u32 %p1, %r1, 1; @%p1 bra MORE;
           st.param.b32 [result], 1; ret;
           MORE: sub.u32 %r2, %r1, 1;
           { .param .b32 argument; .param .b32 value;
             st.param.b32 [argument], %r2;
             call.uni (value), factorial, (argument);
             ld.param.b32 %r3, [value]; }
           mul.lo.u32 %r4, %r3, %r1; st.param.b32 [result], %r4; ret; }",
        "and.b32 %r2, %r1, 7; setp.lt.u32 %p1, %r2, 2; mov.u32 %r4, 0; @%p1 bra SKIP;
         { .param .b32 argument; .param .b32 value;
           st.param.b32 [argument], %r2; call (value), factorial, (argument);
           ld.param.b32 %r4, [value]; }
         SKIP: st.global.u32 [%rd4], %r4;",
    );
    let found = run_under(&text, &Grid::new([1; 3], [40, 1, 1]), 40, 3).unwrap();
    let expected = |n: u32| if n % 8 < 2 { 0 } else { (1..=n % 8).product() };
    assert_eq!(found, Vec::from_iter((0..40).map(expected)));
}

#[test]
fn lanes_meet_at_warp_barriers_and_shuffles_in_different_arms() {
    // Each half stores for the other, passes its own barrier, reads, and shuffles its own way.
    let text = module(
        ".shared .align 4 .b8 words[128];",
        "shl.b32 %r2, %r1, 2; mov.u32 %r3, words; add.u32 %r4, %r3, %r2;
         add.u32 %r5, %r1, 100; st.shared.u32 [%r4], %r5;
         xor.b32 %r6, %r2, 64; add.u32 %r6, %r3, %r6; setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;
         bar.warp.sync -1; ld.shared.u32 %r7, [%r6];
         shfl.sync.bfly.b32 %r8, %r7, 16, 31, -1; bra END;
         LOW: bar.warp.sync 0xffffffff; ld.shared.u32 %r9, [%r6];
         shfl.sync.bfly.b32 %r8, %r9, 16, 31, -1;
         END: st.global.u32 [%rd4], %r8;",
    );
    for seed in 0..50 {
        let found = run_under(&text, &Grid::new([1; 3], [32, 1, 1]), 32, seed).unwrap();
        assert_eq!(found, Vec::from_iter(100..132), "schedule {seed}");
    }
}

#[test]
fn a_warp_barrier_that_some_lanes_never_reach_is_divergence() {
    let text = module(
        "",
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW; bar.warp.sync -1; bra END;
         LOW: bar.warp.sync 0xffff; bar.sync 0;
         END: st.global.u32 [%rd4], %r1;",
    );
    let found = violation(&text, &Grid::new([1; 3], [32, 1, 1]), 1);
    assert_eq!(found.check, Check::Divergence, "{found}");
    assert!(found.message.contains("lanes 0xffff"), "{found}");
}

#[test]
fn votes_ballots_and_elections_see_their_members() {
    let found = run(
        "and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;
         vote.sync.ballot.b32 %r3, %p1, -1;
         elect.sync %r4|%p2, -1;
         redux.sync.add.u32 %r5, %r1, -1;
         match.any.sync.b32 %r6, %r2, -1;
         xor.b32 %r3, %r3, %r4; xor.b32 %r3, %r3, %r5; xor.b32 %r3, %r3, %r6;
         st.global.u32 [%rd4], %r3;",
        32,
    );
    let expected = |lane: u32| 0x1111_1111 ^ 496 ^ (0x1111_1111 << (lane % 4));
    assert_eq!(found, Vec::from_iter((0..32).map(expected)));
}

#[test]
fn local_memory_is_each_thread_s_own() {
    let found = run(
        ".local .align 4 .b8 depot[64]; mov.u64 %rd5, depot; cvta.local.u64 %rd6, %rd5;
         mul.wide.u32 %rd7, %r1, 4; and.b64 %rd7, %rd7, 60; add.s64 %rd8, %rd6, %rd7;
         st.u32 [%rd8], %r1; ld.u32 %r2, [%rd8]; st.global.u32 [%rd4], %r2;",
        64,
    );
    assert_eq!(found, Vec::from_iter(0..64));
}

#[test]
fn atomics_count_every_thread_of_the_grid() {
    let text = module(
        ".global .align 4 .u32 total;",
        "atom.global.add.u32 %r2, [total], 2; red.global.max.u32 [%rd2], %r2;",
    );
    let program = Program::parse(&text).unwrap();
    let mut memory = Memory::new();
    let output = memory.upload(&[0; 4]);
    let arguments = [output, output].map(|it| it.address().to_le_bytes().to_vec());
    let grid = Grid::new([5, 1, 1], [96, 1, 1]);
    let stats = program
        .run("k", &grid, &arguments, &mut memory, &Options::default())
        .unwrap();
    assert_eq!(memory.download(output), (2 * (5 * 96 - 1u32)).to_le_bytes());
    assert_eq!(stats.thread_instructions, 5 * 96 * 8);
}

#[test]
fn a_cluster_reads_the_shared_memory_of_its_neighbour() {
    let text = module(
        ".shared .align 4 .u32 mine;",
        "mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %ctaid.x;
         add.u32 %r4, %r3, 100; st.shared.u32 [mine], %r4;
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
         mov.u32 %r5, mine; xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r5, %r6;
         ld.shared::cluster.u32 %r8, [%r7];
         mul.wide.u32 %rd5, %r3, 4; add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r8;
         barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    );
    let mut grid = Grid::new([6, 1, 1], [1, 1, 1]);
    grid.cluster = Some([2, 1, 1]);
    for seed in 0..20 {
        let found = run_under(&text, &grid, 6, seed).unwrap();
        assert_eq!(found, [101, 100, 103, 102, 105, 104]);
    }
}

#[test]
fn independent_ctas_give_the_same_on_any_number_of_cores() {
    // Each CTA writes words of its own; with `shared`, also one that the others write.
    let text = |shared: &str| {
        module(
            "",
            &format!(
                "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
                 mul.wide.u32 %rd5, %r4, 4; add.u64 %rd6, %rd2, %rd5; add.u64 %rd7, %rd1, %rd5;
                 ld.global.u32 %r5, [%rd7]; mul.lo.u32 %r5, %r5, 3; st.global.u32 [%rd6], %r5;
                 {shared}"
            ),
        )
    };
    let grid = Grid::new([20, 1, 1], [48, 1, 1]);
    let run = |text: &str, workers| {
        let program = Program::parse(text)?;
        let mut memory = Memory::new();
        let input: Vec<u8> = (0..1024u32).flat_map(u32::to_le_bytes).collect();
        let buffers = [memory.upload(&input), memory.uninitialised(4 * 960)];
        let arguments = buffers.map(|it| it.address().to_le_bytes().to_vec());
        let options = Options {
            workers,
            ..Options::default()
        };
        let stats = program.run("k", &grid, &arguments, &mut memory, &options)?;
        Ok::<_, anyhow::Error>((stats, memory.download(buffers[1]).to_vec()))
    };
    let expected: Vec<u8> = (0..960u32).flat_map(|n| (3 * n).to_le_bytes()).collect();
    let alone = run(&text(""), 1).unwrap();
    assert!(alone.1 == expected);
    for workers in [2, 3, 7, 64] {
        assert!(
            run(&text(""), workers).unwrap() == alone,
            "{workers} workers"
        );
    }
    // Those that are not independent run as on one core, and what is wrong is found.
    let racy = text("st.global.u32 [%rd2], %r4;");
    let error = |workers| run(&racy, workers).map(drop).unwrap_err().to_string();
    let [one, many] = [1, 5].map(error);
    assert!(one.contains("data race"), "{one}");
    assert_eq!(one, many);
    let counting = text("red.global.add.u32 [%rd2], 1;");
    let [one, many] = [1, 5].map(|workers| run(&counting, workers).unwrap());
    assert!(one == many, "counted otherwise on 5 cores");
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let text = module(
        ".shared .align 4 .u32 word;",
        "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [word], 1;
         ld.shared.u32 %r2, [word]; st.global.u32 [%rd4], %r2;",
    );
    let grid = Grid::new([1; 3], [96, 1, 1]);
    for seed in 0..10 {
        assert_eq!(violation(&text, &grid, seed), violation(&text, &grid, seed));
    }
}

#[test]
fn an_access_outside_every_buffer_says_by_how_much() {
    let text = module("", "ld.global.u32 %r2, [%rd2+1024];");
    let found = violation(&text, &Grid::new([1; 3], [32, 1, 1]), 0);
    assert_eq!(found.check, Check::OutOfBounds);
    assert!(
        found.message.contains("1024 bytes behind the start"),
        "{found}"
    );
}

#[test]
fn a_launch_that_the_kernel_does_not_take_is_refused() {
    let text = module("", "");
    let program = Program::parse(&text).unwrap();
    let mut memory = Memory::new();
    let grid = Grid::new([1; 3], [32, 1, 1]);
    let options = Options::default();
    let error = program
        .run("k", &grid, &[vec![0; 8]], &mut memory, &options)
        .unwrap_err();
    assert!(error.to_string().contains("[8, 8]"), "{error}");
    let error = program
        .run("absent", &grid, &[], &mut memory, &options)
        .unwrap_err();
    assert!(error.to_string().contains("it has k"), "{error}");
}

#[test]
fn packed_and_narrow_floats_are_converted_both_ways() {
    let body = "cvt.rn.f32.u32 %f1, %r1; neg.f32 %f2, %f1; cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; \
                cvt.rn.f16x2.e4m3x2 %r2, %h1; st.global.u32 [%rd4], %r2;";
    // 19 lies between 18 and 20, and the even one is 20.
    let numbers = run(body, 32);
    assert_eq!(numbers[1], 0x3c00_bc00);
    assert_eq!(numbers[19], 0x4d00_cd00);
    let body = "cvt.rn.f32.s32 %f1, %r1; mov.f32 %f2, 0f447A0000; sub.f32 %f1, %f1, 0f3F800000; \
                cvt.rn.relu.satfinite.bf16x2.f32 %r2, %f1, %f2; st.global.u32 [%rd4], %r2;";
    assert_eq!(run(body, 3), [0x0000_447a, 0x0000_447a, 0x3f80_447a]);
    let body = "mov.b32 %f1, 0x3f801000; cvt.rna.tf32.f32 %r2, %f1; cvt.rn.tf32.f32 %r3, %f1; sub.u32 %r2, %r2, %r3; \
                st.global.u32 [%rd4], %r2;";
    assert_eq!(run(body, 1), [0x2000]);
    let body = "sub.u32 %r2, %r1, 1; mov.u32 %r3, 300; mov.u32 %r4, 0x1234; \
                cvt.pack.sat.u8.s32.b32 %r5, %r2, %r3, %r4; cvt.pack.sat.s16.s32 %r6, %r3, %r2; \
                st.global.u32 [%rd4], %r5; st.global.u32 [%rd4+4], %r6;";
    assert_eq!(run_pair(body), [0x1234_00ff, 0x012c_ffff]);
}

/// What one thread stores in two words.
fn run_pair(body: &str) -> Vec<u32> {
    let grid = Grid::new([1; 3], [1, 1, 1]);
    run_under(&module("", body), &grid, 2, 0).unwrap()
}

/// A row of A is the unit vector of its number, so that D is B and C.
const UNIT: &str = "shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3; shl.b32 %r4, %r3, 1; \
    setp.eq.u32 %p1, %r2, %r4; selp.b32 %r5, 0x3f80, 0, %p1; add.u32 %r4, %r4, 1; \
    setp.eq.u32 %p1, %r2, %r4; selp.b32 %r6, 0x3f800000, 0, %p1; or.b32 %r5, %r5, %r6; mov.u32 %r6, 0; ";

#[test]
fn a_product_with_the_unit_matrix_is_the_other_matrix() {
    // B has 2^k in row k, so an element of D is 2^row, to which C adds a half.
    let body = format!(
        "{UNIT} shl.b32 %r7, %r3, 8; add.u32 %r8, %r7, 0x40003f80; shl.b32 %r7, %r7, 16; add.u32 %r7, %r7, %r8; \
         mov.f32 %f1, 0f3F000000; \
         mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {{%f2, %f3, %f4, %f5}}, {{%r5, %r6}}, {{%r7}}, \
         {{%f1, %f1, %f1, %f1}}; st.global.f32 [%rd4], %f2;"
    );
    let expected = Vec::from_iter((0..32).map(|lane| (2f32.powi(lane / 4) + 0.5).to_bits()));
    assert_eq!(run(&body, 32), expected);
}

#[test]
fn a_sparse_product_takes_the_columns_that_the_metadata_names() {
    // Each row of A is (0, 1, 0, 2) in its first four columns; B has 1, 2, 3, … in every column.
    let product = |kind: &str, metadata: u32| {
        format!(
            "and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0; selp.b32 %r5, 0x40003f80, 0, %p1; \
             setp.gt.u32 %p2, %r3, 0; mov.u32 %r7, 0x40003f80; @%p2 mov.u32 %r7, 0x40804040; mov.u32 %r6, 0; \
             mov.u32 %r8, {metadata}; mov.f32 %f1, 0f00000000; \
             mma.{kind}.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f2, %f3, %f4, %f5}}, {{%r5, %r6}}, \
             {{%r7, %r6}}, {{%f1, %f1, %f1, %f1}}, %r8, 0; st.global.f32 [%rd4], %f2;"
        )
    };
    // 0b1101: columns 1 and 3; 0b0111 says the same in the other order.
    assert_eq!(
        run(&product("sp::ordered_metadata", 0xdddd_dddd), 32),
        [(2f32 + 2.0 * 4.0).to_bits(); 32]
    );
    assert_eq!(
        run(&product("sp", 0x7777_7777), 32),
        [(4f32 + 2.0 * 2.0).to_bits(); 32]
    );
    let grid = Grid::new([1; 3], [32, 1, 1]);
    for (kind, metadata) in [("sp", 0xdddd_5ddd), ("sp::ordered_metadata", 0x7777_7777)] {
        let found = violation(&module("", &product(kind, metadata)), &grid, 0);
        assert_eq!(found.check, Check::Matrix, "{found}");
    }
}

#[test]
fn a_matrix_is_transposed_within_a_warp() {
    // Element (row, column) is 8 row + column.
    let body = "shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r2, %r2, %r3; \
                movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r2; st.global.u32 [%rd4], %r4;";
    let element = |row: u32, column: u32| 8 * column + row;
    let expected = (0..32).map(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        element(row, column) | element(row, column + 1) << 16
    });
    assert_eq!(run(body, 32), Vec::from_iter(expected));
}

#[test]
fn vectors_are_changed_by_elements_and_128_bits_as_one() {
    // Each thread adds to a vector, and swaps 128 bits if both halves are as expected.
    let found = run_under(
        &module(
            "",
            "mov.b32 %f1, 0f3F800000; mov.b32 %f2, 0f40000000;
             atom.relaxed.gpu.global.add.v2.f32 {%f3, %f4}, [%rd2], {%f1, %f2};
             red.relaxed.gpu.global.min.noftz.v2.f16x2 [%rd2+8], {0x3c003800, 0x40003c00};
             { .reg .b128 %q<4>; mov.b64 %rd5, 5; mov.b64 %rd6, 0; mov.b64 %rd7, 9;
               mov.b128 %q1, {%rd6, %rd6}; mov.b128 %q2, {%rd5, %rd7};
               atom.relaxed.gpu.global.cas.b128 %q3, [%rd2+16], %q1, %q2;
               mov.b128 {%rd8, %rd9}, %q3; }
             setp.eq.u64 %p1, %rd8, 0; selp.u32 %r2, 1, 0, %p1;
             red.relaxed.gpu.global.add.u32 [%rd2+32], %r2;",
        )
        .replace("[%rd2", "[%rd10")
        .replace("mov.b32 %f1", "mov.u64 %rd10, scratch; mov.b32 %f1")
        .replace(".visible", ".global .align 16 .b32 scratch[12] = {0, 0, 0x40003800, 0x38003c00, 0, 0, 0, 0, 0};\n.visible")
        .replace("\nret;", "\nbar.sync 0; setp.gt.u32 %p2, %r1, 8; @%p2 bra END; add.s64 %rd11, %rd10, %rd3; ld.global.u32 %r3, [%rd11]; st.global.u32 [%rd4], %r3; END: ret;"),
        &Grid::new([1; 3], [32, 1, 1]),
        9,
        3,
    )
    .unwrap();
    let expected = [
        32f32.to_bits(),
        64f32.to_bits(),
        0x3c00_3800,
        0x3800_3c00,
        5,
        0,
        9,
        0,
        1,
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_address_is_in_the_spaces_that_it_is_in() {
    let text = module(
        ".shared .align 4 .u32 mine;",
        "mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mov.u32 %r4, mine; cvt.u64.u32 %rd5, %r4;
         cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, %r3; barrier.cluster.arrive; barrier.cluster.wait;
         isspacep.global %p1, %rd2; isspacep.shared::cta %p2, %rd5; isspacep.shared::cta %p3, %rd6;
         isspacep.shared::cluster %p4, %rd6; isspacep.local %p5, %rd6;
         selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; selp.u32 %r7, 4, 0, %p3; selp.u32 %r8, 8, 0, %p4;
         selp.u32 %r9, 16, 0, %p5; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r8;
         add.u32 %r5, %r5, %r9; mul.wide.u32 %rd7, %r2, 4; add.s64 %rd7, %rd2, %rd7; st.global.u32 [%rd7], %r5;
         barrier.cluster.arrive; barrier.cluster.wait;",
    );
    let mut grid = Grid::new([2, 1, 1], [1, 1, 1]);
    grid.cluster = Some([2, 1, 1]);
    assert_eq!(run_under(&text, &grid, 2, 0).unwrap(), [11, 11]);
}
