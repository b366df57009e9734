//! Interpolation of subsampled components, with the rounding of libjpeg's "fancy upsampling".

use super::{
    frame::{Component, Frame},
    plane::Plane,
};

/// The computation of the rows of a component at full resolution.
pub(super) struct Upsampling {
    method: Method,
    /// Weighted sums of two rows of samples, or the samples of one row, with the first and the last
    /// value repeated.
    sums: Vec<u16>,
    row: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Method {
    /// Repeats each sample by a factor along each axis.
    Repeat([usize; 2]),
    /// Interpolates linearly between the centers of the samples, along each axis whose flag is
    /// true.
    Linear([bool; 2]),
}

impl Upsampling {
    /// Selects the method like libjpeg: linear interpolation if one factor is 2 and the other is 1
    /// or 2, unless the component has half the image's width and at most two columns.
    pub(super) fn of(component: &Component, frame: &Frame) -> Self {
        let factors = [0, 1].map(|axis| frame.max_sampling[axis] / component.sampling[axis]);
        let method = match factors {
            [1 | 2, 2] if component.size[1] <= 2 => Method::Repeat(factors),
            [1, 2] | [2, 1] | [2, 2] => Method::Linear(factors.map(|factor| factor == 2)),
            _ => Method::Repeat(factors),
        };
        Self { method, sums: vec![0; component.size[1] + 2], row: vec![0; frame.width] }
    }

    /// Returns the row `y` of the image.
    #[inline(always)]
    pub(super) fn row<'a>(&'a mut self, plane: &'a Plane, y: usize) -> &'a [u8] {
        match self.method {
            Method::Repeat([1, 1]) => return plane.row(y),
            Method::Repeat([rows, columns]) => {
                for (to, from) in self.row.chunks_mut(columns).zip(plane.row(y / rows)) {
                    to.fill(*from);
                }
            }
            Method::Linear([false, _]) => {
                let sums = self.sums[1..].iter_mut().zip(plane.row(y));
                sums.for_each(|(sum, sample)| *sum = (*sample).into());
                self.double_columns([1, 2], 2);
            }
            Method::Linear([true, has_half_width]) => {
                // A row of the image lies between two rows of samples. The nearer row of samples
                // has three times the weight of the other row.
                let (near, is_lower) = (y / 2, y % 2 == 1);
                let far = if is_lower { near + 1 } else { near.saturating_sub(1) };
                let rows = plane.row(near).iter().zip(plane.row(far));
                let sum = |(near, far): (&u8, &u8)| 3 * u16::from(*near) + u16::from(*far);
                if has_half_width {
                    self.sums[1..].iter_mut().zip(rows).for_each(|(to, rows)| *to = sum(rows));
                    self.double_columns([8, 7], 4);
                } else {
                    let bias = 1 + u16::from(is_lower);
                    let row = self.row.iter_mut().zip(rows);
                    row.for_each(|(to, rows)| *to = ((sum(rows) + bias) >> 2) as u8);
                }
            }
        }
        &self.row
    }

    /// Computes two values of the row, a left and a right one, from each sum: three times the sum,
    /// plus the sum next to it on the value's side, plus `bias`, divided by `2^shift`.
    #[inline(always)]
    fn double_columns(&mut self, bias: [u16; 2], shift: u32) {
        let last = self.sums.len() - 1;
        self.sums[0] = self.sums[1];
        self.sums[last] = self.sums[last - 1];
        let mut sums =
            self.sums[1..last].iter().zip(self.sums[..last - 1].iter().zip(&self.sums[2..]));
        let pair = |(middle, (left, right)): (&u16, (&u16, &u16))| {
            [3 * middle + left + bias[0], 3 * middle + right + bias[1]]
                .map(|sum| (sum >> shift) as u8)
        };
        let (pairs, rest) = self.row.as_chunks_mut();
        pairs.iter_mut().zip(sums.clone()).for_each(|(to, sums)| *to = pair(sums));
        if let ([to], Some(sums)) = (rest, sums.next_back()) {
            *to = pair(sums)[0];
        }
    }
}
