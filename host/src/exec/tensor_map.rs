//! `tensormap.replace` and `tensormap.cp_fenceproxy`.

use super::check::{AtLane, Step};
use super::machine::Machine;
use super::op::*;
use super::state::*;
use super::step::{Flow, aligned_here};
use super::tensor::MAP_BYTES;

impl<'a> Machine<'a> {
    /// Executes an instruction that changes or copies a tensor map.
    pub fn tensor_map(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        match &inst.op {
            Op::TensormapReplace {
                space,
                map,
                field,
                value,
            } => {
                let addresses = self.addresses(warp, current, map);
                let values = self.operand(warp, current, *value);
                let bytes = field.bytes();
                for lane in lanes(active) {
                    let address = addresses[lane as usize];
                    let map = self.resolve(*space, address, MAP_BYTES, 64).at(lane)?;
                    let (place, len) = (map.plus(bytes.start as u32), bytes.len() as u32);
                    let value = field.encode(values[lane as usize]).to_le_bytes();
                    self.store_bytes(warp, lane, place, &value[..len as usize], inst.line)
                        .at(lane)?;
                }
            }
            Op::TensormapCopy { dst, src } => {
                if !aligned_here(warp, current, active)? {
                    return Ok(Flow::Wait);
                }
                // The warp copies one map together; it is its first lane's access.
                let lane = active.trailing_zeros();
                let from = self.addresses(warp, current, src)[lane as usize];
                let to = self.addresses(warp, current, dst)[lane as usize];
                let from = self.resolve(Space::Shared, from, MAP_BYTES, 128).at(lane)?;
                let to = self.resolve(Space::Global, to, MAP_BYTES, 128).at(lane)?;
                self.note(
                    warp,
                    lane,
                    from,
                    MAP_BYTES,
                    inst.line,
                    (false, false, false),
                )
                .at(lane)?;
                let bytes = self.bytes(from, MAP_BYTES).to_vec();
                self.store_bytes(warp, lane, to, &bytes, inst.line)
                    .at(lane)?;
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    /// An ordinary store of a thread.
    pub fn store_bytes(
        &mut self,
        warp: &Warp,
        lane: u32,
        place: Place,
        bytes: &[u8],
        line: u32,
    ) -> Step<()> {
        let len = bytes.len() as u32;
        self.writable(place)?;
        let same = self.bytes(place, len) == bytes;
        self.note(warp, lane, place, len, line, (true, false, same))?;
        self.bytes(place, len).copy_from_slice(bytes);
        self.progress += u64::from(!same);
        Ok(())
    }
}
