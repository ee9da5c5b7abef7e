//! Vector clocks: what happens before what.
//!
//! A thread's clock counts its releases. Threads that have just left the same barrier share one
//! vector, so a barrier of a thousand threads costs one vector and not a thousand.

use std::rc::Rc;

/// What is known of the other threads and copies of a cluster, by their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Up to which of its own ticks each is known to have got.
    pub happened: Vec<u32>,
    /// Up to which of them a proxy fence has followed its writes.
    pub fenced: Vec<u32>,
}

impl Clock {
    /// Nothing is known of any of `len`.
    pub fn new(len: usize) -> Self {
        Self {
            happened: vec![0; len],
            fenced: vec![0; len],
        }
    }

    /// The same, with the knowledge that a copy or multiplication has got to `tick`.
    pub fn with(&self, number: u32, tick: u32) -> Rc<Self> {
        let mut clock = self.clone();
        let known = &mut clock.happened[number as usize];
        *known = (*known).max(tick);
        Rc::new(clock)
    }

    pub fn join(&mut self, other: &Self) {
        let raise = |mine: &mut Vec<u32>, theirs: &[u32]| {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = (*mine).max(*theirs);
            }
        };
        raise(&mut self.happened, &other.happened);
        raise(&mut self.fenced, &other.fenced);
    }
}

/// One thread's clock.
#[derive(Clone, Debug)]
pub struct ThreadClock {
    pub base: Rc<Clock>,
    /// Its own tick; the first is 1.
    pub own: u32,
    /// Its own tick at its last proxy fence.
    pub fenced: u32,
    /// What it knew at its last fence: a relaxed arrival behind that releases it.
    before_fence: Option<(Rc<Clock>, u32)>,
    /// What its relaxed waits have seen: a fence behind them acquires it.
    seen: Option<Rc<Clock>>,
}

impl ThreadClock {
    pub fn new(base: &Rc<Clock>) -> Self {
        Self {
            base: Rc::clone(base),
            own: 1,
            fenced: 0,
            before_fence: None,
            seen: None,
        }
    }

    /// Everything it knows, itself included, for a copy that it issues.
    pub fn snapshot(&self, number: u32) -> Rc<Clock> {
        let mut clock = (*self.base).clone();
        clock.happened[number as usize] = self.own;
        clock.fenced[number as usize] = self.fenced;
        Rc::new(clock)
    }
}

/// What arrives at a barrier in one phase.
#[derive(Clone, Debug)]
pub struct Arrivals {
    clock: Clock,
    last: Option<Rc<Clock>>,
}

impl Arrivals {
    pub fn new(len: usize) -> Self {
        Self {
            clock: Clock::new(len),
            last: None,
        }
    }

    /// A thread releases what it has done.
    pub fn release(&mut self, number: u32, thread: &mut ThreadClock) {
        let known = self
            .last
            .as_ref()
            .is_some_and(|last| Rc::ptr_eq(last, &thread.base));
        if !known {
            self.clock.join(&thread.base);
            self.last = Some(Rc::clone(&thread.base));
        }
        let number = number as usize;
        self.clock.happened[number] = self.clock.happened[number].max(thread.own);
        self.clock.fenced[number] = self.clock.fenced[number].max(thread.fenced);
        thread.own += 1;
    }

    /// A relaxed arrival releases what its thread's last fence covers. It also tells which copies and multiplications
    /// are over that the thread has waited for, since they were before it arrived; their numbers are from `agents`.
    pub fn release_relaxed(&mut self, number: u32, thread: &ThreadClock, agents: u32) {
        let over = &thread.base.happened[agents as usize..];
        let known = &mut self.clock.happened[agents as usize..];
        for (known, over) in known.iter_mut().zip(over) {
            *known = (*known).max(*over);
        }
        if let Some((known, own)) = &thread.before_fence {
            self.clock.join(known);
            let happened = &mut self.clock.happened[number as usize];
            *happened = (*happened).max(*own);
        }
    }

    /// A copy that is complete.
    pub fn complete(&mut self, agent: u32, tick: u32) {
        let known = &mut self.clock.happened[agent as usize];
        *known = (*known).max(tick);
    }

    /// What whoever waits for the phase gets to know; the next phase starts with nothing.
    pub fn finish(&mut self) -> Rc<Clock> {
        let empty = Self::new(self.clock.happened.len());
        Rc::new(std::mem::replace(self, empty).clock)
    }
}

/// The joins made last: many threads make the same one.
#[derive(Debug, Default)]
pub struct Joins {
    joins: Vec<[Rc<Clock>; 3]>,
    fences: Vec<[Rc<Clock>; 2]>,
}

/// How many joins are remembered.
const REMEMBERED: usize = 16;

impl Joins {
    /// A thread learns of `other`.
    pub fn acquire(&mut self, thread: &mut ThreadClock, other: &Rc<Clock>) {
        if Rc::ptr_eq(&thread.base, other) {
            return;
        }
        let known = self
            .joins
            .iter()
            .find(|[a, b, _]| Rc::ptr_eq(a, &thread.base) && Rc::ptr_eq(b, other));
        if let Some([_, _, joined]) = known {
            thread.base = Rc::clone(joined);
            return;
        }
        let mut joined = (*thread.base).clone();
        joined.join(other);
        let joined = if joined == **other {
            Rc::clone(other)
        } else {
            Rc::new(joined)
        };
        remember(
            &mut self.joins,
            [
                Rc::clone(&thread.base),
                Rc::clone(other),
                Rc::clone(&joined),
            ],
        );
        thread.base = joined;
    }

    /// A relaxed wait learns nothing before a fence.
    pub fn see(&mut self, thread: &mut ThreadClock, other: &Rc<Clock>) {
        thread.seen = Some(match thread.seen.take() {
            Some(seen) if !Rc::ptr_eq(&seen, other) => {
                let mut joined = (*seen).clone();
                joined.join(other);
                Rc::new(joined)
            }
            _ => Rc::clone(other),
        });
    }

    /// `fence`: relaxed waits before it acquire, and relaxed arrivals behind it release.
    pub fn order(&mut self, thread: &mut ThreadClock) {
        if let Some(seen) = thread.seen.take() {
            self.acquire(thread, &seen);
        }
        thread.before_fence = Some((Rc::clone(&thread.base), thread.own));
        thread.own += 1;
    }

    /// `fence.proxy.async`: all that the thread knows of is fenced.
    pub fn fence(&mut self, thread: &mut ThreadClock) {
        thread.fenced = thread.own;
        thread.own += 1;
        let known = self
            .fences
            .iter()
            .find(|[base, _]| Rc::ptr_eq(base, &thread.base));
        if let Some([_, fenced]) = known {
            thread.base = Rc::clone(fenced);
            return;
        }
        let fenced = Rc::new(Clock {
            happened: thread.base.happened.clone(),
            fenced: thread.base.happened.clone(),
        });
        remember(
            &mut self.fences,
            [Rc::clone(&thread.base), Rc::clone(&fenced)],
        );
        thread.base = fenced;
    }
}

fn remember<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == REMEMBERED {
        list.remove(0);
    }
    list.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_knows_what_was_done_before_the_arrivals_and_no_more() {
        let start = Rc::new(Clock::new(3));
        let [mut a, mut b] = [ThreadClock::new(&start), ThreadClock::new(&start)];
        let mut phase = Arrivals::new(3);
        phase.release(0, &mut a);
        assert_eq!(a.own, 2);
        let done = phase.finish();
        Joins::default().acquire(&mut b, &done);
        assert_eq!(b.base.happened, [1, 0, 0]);
        assert_eq!(phase.finish().happened, [0, 0, 0]);
    }

    #[test]
    fn relaxed_arrivals_and_waits_order_what_fences_stand_between() {
        let start = Rc::new(Clock::new(2));
        let [mut a, mut b] = [ThreadClock::new(&start), ThreadClock::new(&start)];
        let (mut phase, mut joins) = (Arrivals::new(2), Joins::default());
        phase.release_relaxed(0, &a, 2);
        assert_eq!(phase.finish().happened, [0, 0]);
        joins.order(&mut a);
        phase.release_relaxed(0, &a, 2);
        joins.see(&mut b, &phase.finish());
        assert_eq!(b.base.happened, [0, 0]);
        joins.order(&mut b);
        assert_eq!(b.base.happened, [1, 0]);
    }

    #[test]
    fn a_proxy_fence_covers_what_its_thread_knows_of() {
        let start = Rc::new(Clock::new(2));
        let [mut a, mut b] = [ThreadClock::new(&start), ThreadClock::new(&start)];
        let mut phase = Arrivals::new(2);
        phase.release(0, &mut a);
        let (done, mut joins) = (phase.finish(), Joins::default());
        joins.acquire(&mut b, &done);
        assert_eq!(b.base.fenced, [0, 0]);
        joins.fence(&mut b);
        assert_eq!((b.base.fenced[0], b.fenced, b.own), (1, 1, 2));
    }

    #[test]
    fn equal_joins_share_one_vector() {
        let start = Rc::new(Clock::new(2));
        let [mut a, mut b, mut c] = [0; 3].map(|_| ThreadClock::new(&start));
        let mut phase = Arrivals::new(2);
        phase.release(0, &mut a);
        let (done, mut joins) = (phase.finish(), Joins::default());
        joins.acquire(&mut b, &done);
        joins.acquire(&mut c, &done);
        assert!(Rc::ptr_eq(&b.base, &c.base));
    }
}
