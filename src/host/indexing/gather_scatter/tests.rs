use super::*;
use crate::{
    host::indexing::permute::permute,
    host::testing::{for_each_element, integers, nan, operand, rounded, threads, wide},
    op::Permute,
    shape::Shape,
};

fn copy_2d_copies_the_block_only<T: Element>() {
    let sizes =
        [(3, 4, 7, 5), (1, 6, 0, 2), (5, 1, 1, 1), (200, 700, 701, 800), (2, GRAIN, GRAIN, GRAIN)];
    for (w, (rows, columns, ldx, ldy)) in threads().iter().flat_map(|w| sizes.map(|s| (w, s))) {
        let op = Copy2d { rows, columns, ldx, ldy };
        let x = integers::<T>(1, (rows - 1) * ldx + columns + 2);
        let y0 = integers::<T>(2, (rows - 1) * ldy + columns + 3);
        let mut y = y0.clone();
        copy_2d(w, &op, &x, &mut y).unwrap();
        let mut expected = y0;
        for r in 0..rows {
            for c in 0..columns {
                expected[r * ldy + c] = x[r * ldx + c];
            }
        }
        assert!(y == expected, "{op:?}");
    }
}

fn gather_and_scatter_add_match_the_definition<T: Element>() {
    let sizes = [(1, 1, 4), (5, 3, 9), (40, 700, 200), (70_000, 2, 90_000), (3, 0, 4), (0, 5, 0)];
    for (table, width, count) in sizes {
        let op = RowIndexing { table, width, count };
        let indices: Vec<u32> = (0..count).map(|i| (i * i * 7 % table.max(1)) as u32).collect();
        let values = integers::<T>(3, table * width);
        let dy = integers::<T>(4, count * width);
        let mut sums = wide(&values);
        for (i, &row) in indices.iter().enumerate() {
            for c in 0..width {
                let sum = &mut sums[row as usize * width + c];
                *sum = T::from_f64(*sum + dy[i * width + c].to_f64()).to_f64();
            }
        }
        for w in &threads() {
            let mut y = nan::<T>(count * width);
            gather(w, &op, &values, &indices, &mut y).unwrap();
            let expected = |i: usize| values[indices[i / width] as usize * width + i % width];
            assert!(y.iter().enumerate().all(|(i, &y)| y == expected(i)), "{op:?}");
            let mut got = values.clone();
            scatter_add(w, &op, &dy, &indices, &mut got).unwrap();
            assert!(wide(&got) == sums, "{op:?}");
        }
    }
}

fn permute_matches_the_definition<T: Element>() {
    let cases: [(&[usize], &[usize]); 12] = [
        (&[], &[]),
        (&[7], &[0]),
        (&[1, 1], &[1, 0]),
        (&[33, 47], &[1, 0]),
        (&[400, 300], &[1, 0]),
        (&[2, 3, 5, 7], &[0, 2, 3, 1]),
        (&[2, 40, 9, 50], &[0, 2, 3, 1]),
        (&[2, 3, 5, 7], &[3, 1, 0, 2]),
        (&[3, 18, 2, 20], &[3, 1, 2, 0]),
        (&[30, 20, 4, 50], &[1, 0, 2, 3]),
        (&[2, 1, 3, 4, 5], &[4, 3, 2, 1, 0]),
        (&[4, 0, 3], &[2, 0, 1]),
    ];
    for (extents, order) in cases {
        let shape = Shape::new(extents).unwrap();
        let op = Permute::new(shape.clone(), order).unwrap();
        let x = integers::<T>(5, shape.count());
        let output = op.output();
        let expected: Vec<T> = (0..shape.count())
            .map(|mut index| {
                let mut indices = vec![0; extents.len()];
                for axis in (0..output.len()).rev() {
                    indices[order[axis]] = index % output[axis];
                    index /= output[axis];
                }
                x[shape.offset(&indices).unwrap()]
            })
            .collect();
        for w in &threads() {
            let mut y = nan::<T>(x.len());
            permute(w, &op, &x, &mut y).unwrap();
            assert!(y == expected, "{op:?}");
        }
    }
}

fn tile_and_tile_backward_match_the_definition<T: Element>() {
    let sizes = [
        (1, 1, 1),
        (3, 4, 2),
        (2, 3000, 5),
        (900, 17, 6),
        (4000, 1, 30),
        (2, GRAIN + 9, 2),
        (2, 3, 0),
        (0, 3, 2),
        (2, 0, 4),
    ];
    for (outer, inner, tiles) in sizes {
        let op = Tile { outer, inner, tiles };
        let x = integers::<T>(6, outer * inner);
        let dy = integers::<T>(7, outer * tiles * inner);
        let mut sums = vec![0.0; outer * inner];
        for (i, dy) in dy.iter().enumerate() {
            sums[i / (tiles * inner) * inner + i % inner] += dy.to_f64();
        }
        for w in &threads() {
            let mut y = nan::<T>(dy.len());
            tile(w, &op, &x, &mut y).unwrap();
            let expected = |i: usize| x[i / (tiles * inner) * inner + i % inner];
            assert!(y.iter().enumerate().all(|(i, &y)| y == expected(i)), "{op:?}");
            let mut dx = nan::<T>(x.len());
            tile_backward(w, &op, &dy, &mut dx).unwrap();
            assert!(wide(&dx) == rounded::<T>(&sums), "{op:?}");
        }
    }
}

for_each_element!(
    copy_2d_copies_the_block_only,
    gather_and_scatter_add_match_the_definition,
    permute_matches_the_definition,
    tile_and_tile_backward_match_the_definition
);

#[test]
fn errors_name_the_operand() {
    let w = &Workers::sequential();
    let op = Copy2d { rows: 2, columns: 3, ldx: 3, ldy: 4 };
    assert_eq!(operand(copy_2d(w, &op, &[0.0f32; 5], &mut [0.0; 7])), ("copy_2d", "x"));
    assert_eq!(operand(copy_2d(w, &op, &[0.0f32; 6], &mut [0.0; 6])), ("copy_2d", "y"));

    let op = RowIndexing { table: 2, width: 3, count: 1 };
    let (table, row) = ([0.0f32; 6], [0.0f32; 3]);
    let name = "gather";
    assert_eq!(operand(gather(w, &op, &table[1..], &[0], &mut row.clone())), (name, "table"));
    assert_eq!(operand(gather(w, &op, &table, &[], &mut row.clone())), (name, "indices"));
    assert_eq!(operand(gather(w, &op, &table, &[0], &mut [0.0; 2])), (name, "y"));
    let name = "scatter_add";
    assert_eq!(operand(scatter_add(w, &op, &row[1..], &[0], &mut table.clone())), (name, "y"));
    assert_eq!(operand(scatter_add(w, &op, &row, &[], &mut table.clone())), (name, "indices"));
    assert_eq!(operand(scatter_add(w, &op, &row, &[0], &mut [0.0; 5])), (name, "table"));

    let op = Permute::new(Shape::new(&[2, 3]).unwrap(), &[1, 0]).unwrap();
    assert_eq!(operand(permute(w, &op, &row, &mut table.clone())), ("permute", "x"));
    assert_eq!(operand(permute(w, &op, &table, &mut row.clone())), ("permute", "y"));

    let op = Tile { outer: 1, inner: 3, tiles: 2 };
    assert_eq!(operand(tile(w, &op, &table, &mut table.clone())), ("tile", "x"));
    assert_eq!(operand(tile(w, &op, &row, &mut row.clone())), ("tile", "y"));
    let name = "tile_backward";
    assert_eq!(operand(tile_backward(w, &op, &row, &mut row.clone())), (name, "dy"));
    assert_eq!(operand(tile_backward(w, &op, &table, &mut table.clone())), (name, "dx"));
}

#[test]
fn an_index_beyond_the_table_is_an_error_and_nothing_is_written() {
    let w = &Workers::sequential();
    let op = RowIndexing { table: 2, width: 1, count: 3 };
    let (mut table, mut y) = ([1.0f32, 2.0], [3.0f32, 4.0, 5.0]);
    let indices = [1, 2, 0];
    let error = gather(w, &op, &table, &indices, &mut y).unwrap_err();
    assert!(error.to_string().contains("indices[1] is 2"), "{error}");
    let error = scatter_add(w, &op, &y, &[0, 1, u32::MAX], &mut table).unwrap_err();
    assert!(error.to_string().contains("indices[2] is 4294967295"), "{error}");
    assert_eq!((table, y), ([1.0, 2.0], [3.0, 4.0, 5.0]));
}
