//! Addresses, loads, stores, atomics.

use super::super::alu::{self, Lanes};
use super::super::bulk::number_of;
use super::super::check::{AtLane, Check, Fault, Step};
use super::super::machine::Machine;
use super::super::op::*;
use super::super::state::*;
use super::*;

impl<'a> Machine<'a> {
    /// Finds `bytes` bytes at an address.
    pub fn resolve(&self, space: Space, address: u64, bytes: u32, align: u32) -> Step<Place> {
        if !address.is_multiple_of(u64::from(align)) {
            return Err(Fault::new(
                Check::Alignment,
                format!(
                    "expected an address aligned to {align} bytes, found {address:#x}, which is {} \
                     past a multiple",
                    address % u64::from(align)
                ),
            ));
        }
        let space = if space == Space::Generic {
            space_of(address)
        } else {
            return self.resolve_in(space, address, bytes);
        };
        self.resolve_in(space, address.wrapping_sub(window(space)), bytes)
    }

    pub(super) fn resolve_in(&self, space: Space, address: u64, bytes: u32) -> Step<Place> {
        match space {
            Space::Shared => self.resolve_shared(address as u32, bytes),
            Space::Local => Ok(Place::Local(address)),
            Space::Frame => Ok(Place::Frame(address)),
            Space::Param => {
                let end = address.checked_add(u64::from(bytes));
                if end.is_none_or(|end| end > self.params.len() as u64) {
                    return Err(Fault::new(
                        Check::OutOfBounds,
                        format!(
                            "expected an address within the {} bytes of parameters, found {address}",
                            self.params.len()
                        ),
                    ));
                }
                Ok(Place::Param(address))
            }
            _ => match self.memory.find(address, u64::from(bytes)) {
                Some((allocation, offset)) => Ok(Place::Global { allocation, offset }),
                None => Err(Fault::new(
                    Check::OutOfBounds,
                    format!(
                        "expected {bytes} bytes of global memory at {address:#x}: {}",
                        self.memory.nearest(address)
                    ),
                )),
            },
        }
    }

    pub(super) fn resolve_shared(&self, address: u32, bytes: u32) -> Step<Place> {
        let (window, offset) = (address >> 24, address & 0xff_ffff);
        let rank = window.checked_sub(1).unwrap_or(self.at.1 as u32);
        let end = u64::from(offset) + u64::from(bytes);
        let function = &self.program.functions[self.kernel as usize];
        let dynamic = u64::from(self.program.dynamic_start);
        let inside = offset >= SHARED_START && end <= u64::from(function.shared_end)
            || u64::from(offset) >= dynamic && end <= dynamic + u64::from(self.grid.shared_bytes);
        if !inside || rank >= self.cluster_size() {
            return Err(Fault::new(
                Check::OutOfBounds,
                format!(
                    "expected {bytes} bytes within the {} bytes of static and {} bytes of dynamic \
                     shared memory, found shared address {address:#x}",
                    function.shared_end - SHARED_START,
                    self.grid.shared_bytes
                ),
            ));
        }
        let owner = &self.clusters[self.at.0].ctas[rank as usize];
        if rank != self.at.1 as u32 && owner.live_threads == 0 {
            return Err(Fault::new(
                Check::ExitedCta,
                format!(
                    "expected the CTA of rank {rank} to be alive, found that all its threads have \
                     exited: they must wait until nobody needs their shared memory"
                ),
            ));
        }
        Ok(Place::Shared { rank, offset })
    }

    /// Notes an access of a thread, and finds what it conflicts with.
    pub fn note(
        &mut self,
        warp: &Warp,
        lane: u32,
        place: Place,
        bytes: u32,
        line: u32,
        (write, strong, same): (bool, bool, bool),
    ) -> Step<()> {
        let number = self.number(warp, lane);
        let thread = &warp.threads[lane as usize];
        let access = Access {
            who: self.who(warp, lane),
            tick: thread.own,
            line,
            write,
            strong,
            asynchronous: false,
            same,
        };
        let order = self.knowledge(number, thread);
        self.touch(place, bytes, access, &order)
    }

    /// Notes an access in the shadow of its place.
    pub fn touch(
        &mut self,
        place: Place,
        bytes: u32,
        access: Access,
        order: &Knowledge,
    ) -> Step<()> {
        if !self.options.races {
            return Ok(());
        }
        match place {
            Place::Global { allocation, offset } => {
                let allocation = &mut self.memory.allocations[allocation];
                if allocation.constant {
                    return Ok(());
                }
                let initialised = allocation.uninitialised;
                allocation
                    .shadow
                    .access(offset, bytes as usize, access, order, initialised)
            }
            Place::Shared { rank, offset } => {
                let cta = &mut self.clusters[self.at.0].ctas[rank as usize];
                cta.shadow
                    .access(offset as usize, bytes as usize, access, order, true)
            }
            _ => Ok(()),
        }
    }

    /// The bytes of a place in global or shared memory.
    pub fn bytes(&mut self, place: Place, len: u32) -> &mut [u8] {
        let len = len as usize;
        match place {
            Place::Global { allocation, offset } => {
                &mut self.memory.allocations[allocation].data[offset..offset + len]
            }
            Place::Shared { rank, offset } => {
                let data = &mut self.clusters[self.at.0].ctas[rank as usize].data;
                &mut data[offset as usize..offset as usize + len]
            }
            Place::Param(offset) => &mut self.params[offset as usize..offset as usize + len],
            Place::Local(_) | Place::Frame(_) => &mut [],
        }
    }

    pub(super) fn load(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        at: Window,
        active: u32,
    ) -> Step<()> {
        let Op::Ld {
            space,
            ty,
            dsts,
            addr,
            strength,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let size = ty.bytes();
        let total = size * dsts.len() as u32;
        let strong = *strength == Strength::Strong;
        let mut values = vec![[0u64; 32]; dsts.len()];
        for lane in lanes(active) {
            let address = addresses[lane as usize].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, total, total).at(lane)?;
            let mut buffer = [0u8; 64];
            let buffer = &mut buffer[..total as usize];
            match place {
                Place::Local(_) | Place::Frame(_) => {
                    let start = local_place(warp, at, place, total).at(lane)?;
                    for (offset, byte) in buffer.iter_mut().enumerate() {
                        *byte = warp.local[start + offset][lane as usize];
                    }
                }
                place => {
                    if strong {
                        self.acquire_location(warp, lane, place);
                    }
                    self.note(warp, lane, place, total, inst.line, (false, strong, false))
                        .at(lane)?;
                    buffer.copy_from_slice(self.bytes(place, total));
                }
            }
            for (value, chunk) in values.iter_mut().zip(buffer.chunks(size as usize)) {
                value[lane as usize] = number_of(chunk);
            }
        }
        for (dst, values) in dsts.iter().zip(&mut values) {
            if let Some(dst) = dst {
                if ty.signed() {
                    *values = values.map(|value| alu::extend(*ty, value, dst.bits));
                }
                warp.write(at, *dst, active, values);
            }
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        at: Window,
        active: u32,
    ) -> Step<()> {
        let Op::St {
            space,
            ty,
            srcs,
            addr,
            strength,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let size = ty.bytes() as usize;
        let total = (size * srcs.len()) as u32;
        let strong = *strength == Strength::Strong;
        let values: Vec<Lanes> = srcs.iter().map(|src| warp.read(at, *src)).collect();
        for lane in lanes(active) {
            let mut buffer = [0u8; 128];
            for (values, chunk) in values.iter().zip(buffer.chunks_mut(size)) {
                chunk.copy_from_slice(&values[lane as usize].to_le_bytes()[..size]);
            }
            let buffer = &buffer[..total as usize];
            let address = addresses[lane as usize].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, total, total).at(lane)?;
            match place {
                Place::Local(_) | Place::Frame(_) => {
                    let start = local_place(warp, at, place, total).at(lane)?;
                    for (offset, byte) in buffer.iter().enumerate() {
                        warp.local[start + offset][lane as usize] = *byte;
                    }
                }
                Place::Param(_) => {
                    return Err(Fault::new(
                        Check::OutOfBounds,
                        "expected memory that may be written, found a parameter of the kernel",
                    ))
                    .at(lane);
                }
                place => {
                    self.writable(place).at(lane)?;
                    let same = self.bytes(place, total) == buffer;
                    self.note(warp, lane, place, total, inst.line, (true, strong, same))
                        .at(lane)?;
                    if strong {
                        self.release_location(warp, lane, place);
                    }
                    self.bytes(place, total).copy_from_slice(buffer);
                    self.progress += u64::from(!same);
                }
            }
        }
        Ok(())
    }

    /// Fails for constant memory.
    pub fn writable(&self, place: Place) -> Step<()> {
        match place {
            Place::Global { allocation, .. } if self.memory.allocations[allocation].constant => {
                Err(Fault::new(
                    Check::OutOfBounds,
                    format!(
                        "expected memory that may be written, found the constant `{}`",
                        self.memory.allocations[allocation].name
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// A strong access orders what comes after it behind what earlier ones of the address released.
    /// Only within a cluster; across clusters, races are no longer claimed.
    pub(super) fn acquire_location(&mut self, warp: &mut Warp, lane: u32, place: Place) {
        let key = self.location(place);
        let cluster = &mut self.clusters[self.at.0];
        if let Some(known) = cluster.locations.get(&key) {
            cluster
                .joins
                .acquire(&mut warp.threads[lane as usize], known);
        }
    }

    pub(super) fn release_location(&mut self, warp: &mut Warp, lane: u32, place: Place) {
        let key = self.location(place);
        let (domain, number) = (self.domain() as usize, self.number(warp, lane));
        let cluster = &mut self.clusters[self.at.0];
        let thread = &mut warp.threads[lane as usize];
        let mut arrivals = Arrivals::new(domain);
        if let Some(known) = cluster.locations.get(&key) {
            let mut before = thread.clone();
            cluster.joins.acquire(&mut before, known);
            arrivals.release(number, &mut before);
            thread.own += 1;
        } else {
            arrivals.release(number, thread);
        }
        cluster.locations.insert(key, arrivals.finish());
    }

    pub(super) fn location(&mut self, place: Place) -> (u32, u64) {
        match place {
            Place::Global { allocation, offset } => {
                self.strong_global = true;
                (
                    u32::MAX,
                    self.memory.allocations[allocation].address + offset as u64,
                )
            }
            Place::Shared { rank, offset } => (rank, u64::from(offset)),
            _ => (0, 0),
        }
    }

    pub(super) fn atom(
        &mut self,
        inst: &Inst,
        warp: &mut Warp,
        at: Window,
        active: u32,
    ) -> Step<()> {
        let Op::Atom {
            space,
            f,
            ty,
            dsts,
            addr,
            b,
            c,
        } = &inst.op
        else {
            return Ok(());
        };
        let addresses = warp.read(at, addr.base);
        let read = |sources: &[Src]| -> Vec<Lanes> {
            sources.iter().map(|src| warp.read(at, *src)).collect()
        };
        let (b, c) = (read(b), read(c));
        let size = ty.bytes();
        let total = size * b.len() as u32;
        let mut old = vec![[0; 32]; b.len()];
        for lane in lanes(active) {
            let this = lane as usize;
            let address = addresses[this].wrapping_add_signed(addr.offset);
            let place = self.resolve(*space, address, total, total).at(lane)?;
            if !matches!(place, Place::Global { .. } | Place::Shared { .. }) {
                return Err(Fault::new(
                    Check::OutOfBounds,
                    "expected global or shared memory",
                ))
                .at(lane);
            }
            self.writable(place).at(lane)?;
            self.acquire_location(warp, lane, place);
            self.note(warp, lane, place, total, inst.line, (false, true, false))
                .at(lane)?;
            self.note(warp, lane, place, total, inst.line, (true, true, false))
                .at(lane)?;
            self.release_location(warp, lane, place);
            let bytes = self.bytes(place, total);
            let parts = Vec::from_iter(bytes.chunks(size as usize).map(number_of));
            // 128 bits are compared as a whole.
            let differs = *f == AtomOp::Cas
                && (parts.iter().zip(&b)).any(|(part, b)| *part != b[this] & mask(ty.bits()));
            let mut changed = false;
            for (index, chunk) in bytes.chunks_mut(size as usize).enumerate() {
                let before = parts[index];
                let after = match differs {
                    true => before,
                    false => alu::atomic(*f, *ty, before, b[index][this], c[index][this]),
                };
                chunk.copy_from_slice(&after.to_le_bytes()[..size as usize]);
                old[index][this] = before;
                changed |= before != after;
            }
            self.progress += u64::from(changed);
        }
        for (dst, old) in dsts.iter().zip(&old) {
            if let Some(dst) = dst {
                warp.write(at, *dst, active, old);
            }
        }
        Ok(())
    }

    /// Whether a generic address is in the shared memory of the executing CTA.
    pub(super) fn is_own_shared(&self, address: u64) -> bool {
        let rank = (address.wrapping_sub(SHARED_WINDOW) as u32 >> 24).checked_sub(1);
        rank.is_none_or(|rank| rank == self.at.1 as u32)
    }
}

/// Where the addresses of a state space start among the generic ones.
pub(super) fn window(space: Space) -> u64 {
    match space {
        Space::Shared => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Param => PARAM_WINDOW,
        _ => 0,
    }
}

/// The state space of a generic address.
pub fn space_of(address: u64) -> Space {
    if address >= PARAM_WINDOW {
        Space::Param
    } else if address >= LOCAL_WINDOW {
        Space::Local
    } else if address >= SHARED_WINDOW {
        Space::Shared
    } else {
        Space::Global
    }
}

fn local_place(warp: &Warp, at: Window, place: Place, bytes: u32) -> Step<usize> {
    let address = match place {
        Place::Frame(offset) => at.local.wrapping_add(offset),
        Place::Local(address) => address,
        _ => 0,
    };
    let end = address.checked_add(u64::from(bytes));
    if address < 16 || end.is_none_or(|end| end > warp.local.len() as u64) {
        return Err(Fault::new(
            Check::OutOfBounds,
            format!(
                "expected {bytes} bytes of local memory, which has {}, found address {address:#x}",
                warp.local.len()
            ),
        ));
    }
    Ok(address as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_space_has_its_window() {
        for space in [Space::Shared, Space::Local, Space::Param, Space::Global] {
            assert_eq!(space_of(window(space) + 1024), space);
        }
    }
}
