//! Time on the device, for waits that end.

use core::ops::Add;
use core::time::Duration;

use crate::get_sreg_globaltimer;

/// A moment of the device's global timer, `%globaltimer`, which counts nanoseconds. How often it
/// changes depends on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// This moment.
    #[inline(always)]
    #[must_use]
    pub fn now() -> Self {
        Self(get_sreg_globaltimer())
    }

    /// How much later this is than `earlier`, or zero.
    #[inline(always)]
    #[must_use]
    pub fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration that is too long for the timer leads to its end, in 584 years.
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline(always)]
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(duration)))
    }
}

#[inline(always)]
fn nanoseconds(duration: Duration) -> u64 {
    // `Duration::as_nanos` is a multiplication of 128 bits.
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

/// Calls `poll` with the nanoseconds that are left until it returns `true` or `duration` has passed,
/// but at least once.
#[inline(always)]
pub(super) fn poll_for(duration: Duration, poll: impl FnMut(u32) -> bool) -> bool {
    let deadline = Instant::now() + duration;
    poll_by_clock(nanoseconds(duration), deadline, Instant::now, poll)
}

/// As [`poll_for`], until a moment.
#[inline(always)]
pub(super) fn poll_until(deadline: Instant, poll: impl FnMut(u32) -> bool) -> bool {
    let left = deadline.0.saturating_sub(Instant::now().0);
    poll_by_clock(left, deadline, Instant::now, poll)
}

#[inline(always)]
fn poll_by_clock(
    mut left: u64,
    deadline: Instant,
    mut clock: impl FnMut() -> Instant,
    mut poll: impl FnMut(u32) -> bool,
) -> bool {
    loop {
        // The instruction takes 32 bits; a longer wait is several.
        if poll(left.min(u32::MAX.into()) as u32) {
            return true;
        }
        left = deadline.0.saturating_sub(clock().0);
        if left == 0 {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// Polls that take `step` nanoseconds each until one succeeds.
    fn poll(deadline: u64, step: u64, succeeds_at: Option<u32>) -> (bool, u32, Option<u32>) {
        let (time, polls, longest) = (Cell::new(0), Cell::new(0), Cell::new(None));
        let complete = poll_by_clock(
            deadline,
            Instant(deadline),
            || Instant(time.get()),
            |left| {
                polls.set(polls.get() + 1);
                longest.set(longest.get().max(Some(left)));
                time.set(time.get() + step);
                succeeds_at == Some(polls.get())
            },
        );
        (complete, polls.get(), longest.get())
    }

    #[test]
    fn a_wait_ends_when_the_phase_completes() {
        assert_eq!(poll(1000, 100, Some(3)), (true, 3, Some(1000)));
    }

    #[test]
    fn a_wait_ends_at_the_deadline() {
        assert_eq!(poll(1000, 100, None), (false, 10, Some(1000)));
        assert_eq!(poll(1050, 100, None), (false, 11, Some(1050)));
    }

    #[test]
    fn a_wait_for_no_time_looks_once() {
        assert_eq!(poll(0, 100, None), (false, 1, Some(0)));
        assert_eq!(poll(0, 100, Some(1)), (true, 1, Some(0)));
    }

    #[test]
    fn a_wait_of_hours_does_not_wrap() {
        let hour = 3_600_000_000_000;
        assert_eq!(poll(hour, hour / 2, None), (false, 2, Some(u32::MAX)));
    }

    #[test]
    fn durations_add_up_and_saturate() {
        let start = Instant(5);
        let later = start + Duration::new(2, 7);
        assert_eq!(later, Instant(2_000_000_012));
        assert_eq!(later.duration_since(start), Duration::new(2, 7));
        assert_eq!(start.duration_since(later), Duration::ZERO);
        assert_eq!(start + Duration::MAX, Instant(u64::MAX));
    }
}
