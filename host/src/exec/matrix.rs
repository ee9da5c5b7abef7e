//! `ldmatrix` and `stmatrix`: matrices of 8 by 8 elements of 16 bits, a register for each in every lane.

use super::alu::Lanes;
use super::check::{AtLane, Step};
use super::machine::Machine;
use super::op::*;
use super::state::*;
use super::step::{Flow, aligned_here};

/// The bytes of a row.
const ROW: u32 = 16;

/// The row, and the byte in it, of a half of a lane's register.
fn element(lane: u32, half: u32, transposed: bool) -> (u32, u32) {
    let (row, column) = (lane / 4, lane % 4 * 2 + half);
    if transposed {
        (column, 2 * row)
    } else {
        (row, 2 * column)
    }
}

impl<'a> Machine<'a> {
    /// Executes `ldmatrix` or `stmatrix`. Lane `8 m + r` has the address of row `r` of matrix `m`; what
    /// touches the row is that lane's access.
    pub fn matrix(
        &mut self,
        inst: &'a Inst,
        warp: &mut Warp,
        current: usize,
        active: u32,
    ) -> Step<Flow> {
        if !aligned_here(warp, current, active)? {
            return Ok(Flow::Wait);
        }
        match &inst.op {
            Op::LdMatrix {
                transposed,
                dsts,
                addr,
            } => {
                let addresses = self.addresses(warp, current, addr);
                for (matrix, dst) in dsts.iter().enumerate() {
                    let mut rows = [[0u8; ROW as usize]; 8];
                    for (row, bytes) in rows.iter_mut().enumerate() {
                        let lane = 8 * matrix as u32 + row as u32;
                        *bytes = self
                            .load_row(warp, lane, addresses[lane as usize], inst.line)
                            .at(lane)?;
                    }
                    let half = |lane: u32, half: u32| {
                        let (row, at) = element(lane, half, *transposed);
                        let (row, at) = (&rows[row as usize], at as usize);
                        u64::from(u16::from_le_bytes([row[at], row[at + 1]]))
                    };
                    let values: Lanes = std::array::from_fn(|lane| {
                        half(lane as u32, 0) | half(lane as u32, 1) << 16
                    });
                    self.put(warp, current, *dst, active, &values);
                }
            }
            Op::StMatrix {
                transposed,
                srcs,
                addr,
            } => {
                let addresses = self.addresses(warp, current, addr);
                for (matrix, src) in srcs.iter().enumerate() {
                    let values = self.operand(warp, current, *src);
                    let mut rows = [[0u8; ROW as usize]; 8];
                    for (lane, half) in (0..32).flat_map(|lane| [(lane, 0), (lane, 1)]) {
                        let (row, at) = element(lane, half, *transposed);
                        let value = (values[lane as usize] >> (16 * half)) as u16;
                        rows[row as usize][at as usize..at as usize + 2]
                            .copy_from_slice(&value.to_le_bytes());
                    }
                    for (row, bytes) in rows.iter().enumerate() {
                        let lane = 8 * matrix as u32 + row as u32;
                        let address = addresses[lane as usize];
                        let place = self.resolve(Space::Shared, address, ROW, ROW).at(lane)?;
                        self.store_bytes(warp, lane, place, bytes, inst.line)
                            .at(lane)?;
                    }
                }
            }
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn load_row(
        &mut self,
        warp: &Warp,
        lane: u32,
        address: u64,
        line: u32,
    ) -> Step<[u8; ROW as usize]> {
        let place = self.resolve(Space::Shared, address, ROW, ROW)?;
        self.note(warp, lane, place, ROW, line, (false, false, false))?;
        let mut row = [0; ROW as usize];
        row.copy_from_slice(self.bytes(place, ROW));
        Ok(row)
    }
}
