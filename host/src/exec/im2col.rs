//! Im2col modes: the pixels that a copy of columns takes, one after the other.
//!
//! The dimensions of a tensor are channels, then those of an image (`W`, `H`, `D`), then images. The corners of a map bound
//! the pixels from which a copy goes on, as distances from those of the image; the offsets of an instruction are added to
//! each of them.

/// The pixels of one copy: what `cuTensorMapEncodeIm2col` says besides the tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The lower corner of the bounding box, from that of an image, along `W`, `H` and `D`.
    pub lower: Vec<i32>,
    /// The upper corner, from that of an image.
    pub upper: Vec<i32>,
    /// How many pixels a copy takes.
    pub pixels: u32,
}

impl Columns {
    /// The coordinates of a pixel of a copy, `W` first and the image last, before offsets. The copy begins at `start`, and
    /// `dims` and `steps` are of the same dimensions.
    pub fn pixel(&self, number: u32, start: &[i32], dims: &[u64], steps: &[u32]) -> Vec<i64> {
        let mut pixel = Vec::with_capacity(start.len());
        let mut left = i64::from(number);
        let image = start.len() - 1;
        for d in 0..image {
            let (first, step) = (i64::from(start[d]), i64::from(steps[d]));
            let (low, high) = self.bounds(d, dims);
            let in_first_row = (high - first) / step + 1;
            if left < in_first_row {
                pixel.push(first + left * step);
                left = 0;
                continue;
            }
            left -= in_first_row;
            let in_row = (high - low) / step + 1;
            pixel.push(low + left % in_row * step);
            left = left / in_row + 1;
        }
        pixel.push(i64::from(start[image]) + left);
        pixel
    }

    /// The first and the last pixel of the bounding box along a dimension of an image.
    fn bounds(&self, d: usize, dims: &[u64]) -> (i64, i64) {
        let last = dims[d] as i64 - 1;
        (i64::from(self.lower[d]), last + i64::from(self.upper[d]))
    }

    /// Whether a copy may begin at a pixel: it is in the bounding box. The error says what was expected.
    pub fn check_start(&self, start: &[i32], dims: &[u64]) -> Result<(), String> {
        for (d, first) in start[..start.len() - 1].iter().enumerate() {
            let (low, high) = self.bounds(d, dims);
            if !(low..=high).contains(&i64::from(*first)) {
                return Err(format!(
                    "a pixel in the bounding box, from {low} to {high} along dimension {}, found {first}",
                    d + 1
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Images of 9 by 14 pixels, with a border of one pixel for a filter of 3 by 3.
    fn padded() -> Columns {
        Columns {
            lower: vec![-1, -1],
            upper: vec![-1, -1],
            pixels: 64,
        }
    }

    #[test]
    fn rows_of_the_box_and_images_follow_each_other() {
        let pixel = |number| padded().pixel(number, &[7, 4, 0], &[9, 14, 64], &[1, 1, 1]);
        assert_eq!(pixel(0), [7, 4, 0]);
        // The box ends at 9 - 1 - 1.
        assert_eq!(pixel(1), [-1, 5, 0]);
        assert_eq!(pixel(9), [7, 5, 0]);
        assert_eq!(pixel(1 + 8 * 9 - 1), [7, 12, 0]);
        assert_eq!(pixel(1 + 8 * 9), [-1, -1, 1]);
    }

    #[test]
    fn steps_begin_anew_in_each_row() {
        let pixel = |number| padded().pixel(number, &[5, 4, 2], &[8, 14, 64], &[2, 2, 1]);
        assert_eq!([0, 1, 2].map(pixel), [[5, 4, 2], [-1, 6, 2], [1, 6, 2]]);
    }

    #[test]
    fn a_copy_begins_inside_the_box() {
        let check = |start: [i32; 3]| padded().check_start(&start, &[9, 14, 64]);
        assert_eq!(check([-1, 12, 70]), Ok(()));
        let error = check([8, 0, 0]).unwrap_err();
        assert!(
            error.contains("from -1 to 7 along dimension 1, found 8"),
            "{error}"
        );
    }
}
