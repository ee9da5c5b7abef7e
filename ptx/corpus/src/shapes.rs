//! Shapes of control flow around one operation.

use crate::thread::Thread;

/// Between two ifs, in a helper that takes the operation as a closure.
#[inline(always)]
pub unsafe fn between(thread: &Thread, odd: bool, x: u32, operation: impl Fn(u32) -> u32) -> u32 {
    if odd {
        thread.note(0, x);
    }
    let x = operation(x);
    if odd {
        thread.note(1, x);
    }
    x
}

/// Repeats the operation, in a helper that takes it as a closure.
#[inline(never)]
pub unsafe fn repeat(n: u32, mut x: u32, operation: impl Fn(u32) -> u32) -> u32 {
    for i in 0..n {
        x = operation(x) ^ i;
    }
    x
}

/// The shapes that an optimiser changes in different ways, around one operation: it clones into arms, merges tails and
/// heads, sinks, hoists, unrolls, unswitches and splits. Whether a thread's word is odd is a condition on which the
/// threads of a warp diverge; `n` is the same in all threads.
macro_rules! hard_shapes {
    ($op:ident $(#[$($attribute:tt)*])*) => {
        const _: () = {
            use self::operations::$op as op;
            use crate::shapes::between;
            use crate::thread::Thread;

            cuda_ptx::kernel! {
                /// Threading the jump from the first `if` to the second would clone what is between.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(between_ifs_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    let odd = x & 1 != 0;
                    if odd {
                        thread.note(0, x);
                    }
                    x = op(x);
                    if odd {
                        thread.note(1, x);
                    }
                    thread.set(x);
                }

                /// Equal ends of two arms look like one tail.
                // expect: either, either
                $(#[$($attribute)*])*
                pub fn ${concat(arms_end_alike_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    if x & 1 != 0 {
                        thread.note(0, x);
                        x = op(x);
                    } else {
                        thread.note(1, x);
                        x = op(x);
                    }
                    thread.set(x);
                }

                /// Equal beginnings of two arms look as if they belonged in front of the branch.
                // expect: either, either
                $(#[$($attribute)*])*
                pub fn ${concat(arms_begin_alike_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    if x & 1 != 0 {
                        x = op(x);
                        thread.note(0, x);
                    } else {
                        x = op(x);
                        thread.note(1, x);
                    }
                    thread.set(x);
                }

                /// Three arms that differ in one store.
                // expect: either, either, either
                $(#[$($attribute)*])*
                pub fn ${concat(match_arms_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    match x & 3 {
                        0 => {
                            thread.note(0, x);
                            x = op(x);
                        }
                        1 => {
                            thread.note(1, x);
                            x = op(x);
                        }
                        _ => {
                            thread.note(2, x);
                            x = op(x);
                        }
                    }
                    thread.set(x);
                }

                /// Only one side uses the result, but all threads must take part.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(result_on_one_side_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let y = op(x);
                    if x & 1 != 0 {
                        thread.set(y);
                    }
                }

                /// The operation looks the same in every iteration, as if once were enough.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(invariant_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let mut sum = 0u32;
                    for _ in 0..n {
                        sum = sum.wrapping_add(op(x));
                    }
                    thread.set(sum);
                }

                /// A condition that no iteration changes: unswitching makes two loops of one, and
                /// threads of a warp would be in different ones.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(unswitchable_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    let odd = x & 1 != 0;
                    for i in 0..n {
                        if odd {
                            thread.note(i, x);
                        }
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// The condition changes once, at a thread's own iteration: one loop would become two.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(splittable_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    let own = x;
                    for i in 0..n {
                        if i < own {
                            thread.note(i, x);
                        }
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// A generic helper that takes the operation as a closure.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(generic_between_ifs_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    thread.set(between(&thread, x & 1 != 0, x, |x| op(x)));
                }
            }
        };
    };
}

/// Every shape around one operation.
macro_rules! shapes {
    ($op:ident $(#[$($attribute:tt)*])*) => {
        hard_shapes!($op $(#[$($attribute)*])*);
        const _: () = {
            use self::operations::$op as op;
            use crate::shapes::repeat;
            use crate::thread::Thread;

            #[inline(never)]
            unsafe fn helper(x: u32) -> u32 {
                op(x).wrapping_mul(5)
            }

            cuda_ptx::kernel! {
                /// A short arm could be executed by all and its result selected.
                // expect: arm
                $(#[$($attribute)*])*
                pub fn ${concat(one_arm_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    if x & 1 != 0 {
                        x = op(x);
                    }
                    thread.set(x);
                }

                /// The right side of `&&` is an arm as well.
                // expect: arm
                $(#[$($attribute)*])*
                pub fn ${concat(short_circuit_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    thread.set((x & 1 != 0 && op(x) > n) as u32);
                }

                /// Some threads leave before the operation; it must not move in front of the branch.
                // expect: arm
                $(#[$($attribute)*])*
                pub fn ${concat(after_return_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    if x & 1 != 0 {
                        thread.note(0, x);
                        return;
                    }
                    thread.set(op(x));
                }

                /// Some threads leave behind the operation; it must not sink below the branch.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(before_return_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let y = op(x);
                    if x & 1 != 0 {
                        thread.note(0, x);
                        return;
                    }
                    thread.set(y);
                }

                /// Nobody uses the result.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(result_unused_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let _ = op(x);
                    thread.set(x + 1);
                }

                /// The second looks redundant after the first.
                // expect: always, always
                $(#[$($attribute)*])*
                pub fn ${concat(repeated_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let y = op(x);
                    thread.set(op(x) ^ y);
                }

                /// Threads leave the loop at different times; its body must not be merged with what
                /// follows, nor unrolled with a remainder.
                // expect: loop
                $(#[$($attribute)*])*
                pub fn ${concat(divergent_trip_count_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    for i in 0..x {
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// Small enough to unroll with a remainder.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(unrollable_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    for i in 0..n {
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// The first iteration differs: peeling would give it an operation of its own.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(peelable_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    for i in 0..n {
                        if i == 0 {
                            thread.note(0, x);
                        }
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// `continue` on a divergent condition makes a second back edge, and of that a second loop.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(continue_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    let mut i = 0;
                    while i < n {
                        i += 1;
                        thread.note(i, x);
                        if (x ^ i) & 1 != 0 {
                            continue;
                        }
                        x = op(x) ^ i;
                    }
                    thread.set(x);
                }

                /// The way out lies behind the operation.
                // expect: loop
                $(#[$($attribute)*])*
                pub fn ${concat(break_behind_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    loop {
                        x = op(x).wrapping_add(1);
                        if x > n {
                            break;
                        }
                        thread.note(0, x);
                    }
                    thread.set(x);
                }

                /// The operation decides whether the loop goes on.
                // expect: loop
                $(#[$($attribute)*])*
                pub fn ${concat(in_loop_condition_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    while op(x) < n {
                        thread.note(x, x);
                        x = x.wrapping_mul(2).wrapping_add(1);
                    }
                    thread.set(x);
                }

                /// A call of a function that stays one, between two ifs.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(call_between_ifs_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    let odd = x & 1 != 0;
                    if odd {
                        thread.note(0, x);
                    }
                    x = helper(x);
                    if odd {
                        thread.note(1, x);
                    }
                    thread.set(x);
                }

                /// A call of a function that stays one, at the end of both arms.
                // expect: either, either
                $(#[$($attribute)*])*
                pub fn ${concat(call_in_arms_, $op)}(data: *mut u32, notes: *mut u32, _n: u32) {
                    let thread = Thread::new(data, notes);
                    let mut x = thread.get();
                    if x & 1 != 0 {
                        thread.note(0, x);
                        x = helper(x);
                    } else {
                        thread.note(1, x);
                        x = helper(x);
                    }
                    thread.set(x);
                }

                /// A generic function that stays one and takes the operation as a closure.
                // expect: uniform loop
                $(#[$($attribute)*])*
                pub fn ${concat(generic_loop_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    thread.set(repeat(n, x, |x| op(x)));
                }

                /// One closure, called in both arms.
                // expect: either, either
                $(#[$($attribute)*])*
                pub fn ${concat(closure_in_arms_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    let operation = |y: u32| op(x.wrapping_add(y));
                    let y = if x & 1 != 0 {
                        thread.note(0, x);
                        operation(n)
                    } else {
                        thread.note(1, x);
                        operation(n)
                    };
                    thread.set(y);
                }

                /// Two assertions of one condition, with the operation between them.
                // expect: always
                $(#[$($attribute)*])*
                pub fn ${concat(between_assertions_, $op)}(data: *mut u32, notes: *mut u32, n: u32) {
                    let thread = Thread::new(data, notes);
                    let x = thread.get();
                    assert!(x < n);
                    let y = op(x);
                    thread.note(0, y);
                    assert!(x < n);
                    thread.set(y);
                }
            }
        };
    };
}
