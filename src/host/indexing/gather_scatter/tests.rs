use super::*;
use crate::{
    host::indexing::permute::permute,
    host::testing::{for_each_element, integers, nan, operand, threads},
    op::Permute,
    shape::Shape,
};

/// The operands are large enough to be split into several tasks. This test does not check the
/// values, because the conformance kit compares them with oracles.
fn gather_and_scatter_are_bit_identical_on_any_number_of_threads<T: Element>() {
    let rows = RowIndexing { table: 70_000, width: 2, count: 90_000 };
    let wide_rows = RowIndexing { table: 40, width: 700, count: 200 };
    let copies = [[200, 700, 701, 800], [2, GRAIN, GRAIN, GRAIN]];
    let tiles = [[900, 17, 6], [4000, 1, 30], [2, GRAIN + 9, 2]];
    let axis_orders: [(&[usize], &[usize]); 4] = [
        (&[400, 300], &[1, 0]),
        (&[2, 40, 9, 50], &[0, 2, 3, 1]),
        (&[3, 18, 20, 20], &[3, 1, 2, 0]),
        (&[30, 20, 4, 50], &[1, 0, 2, 3]),
    ];
    let run = |w: &Workers| {
        let mut results = Vec::new();
        for [rows, columns, ldx, ldy] in copies {
            let mut y = integers::<T>(1, rows * ldy);
            copy_2d(w, &Copy2d { rows, columns, ldx, ldy }, &integers(2, rows * ldx), &mut y)
                .unwrap();
            results.push(y);
        }
        for op in [rows, wide_rows] {
            let table = op.table as u64;
            let indices: Vec<u32> =
                (0..op.count as u64).map(|i| (i * i * 7 % table) as u32).collect();
            let (mut table, mut y) = (integers(3, op.table * op.width), nan(op.count * op.width));
            gather(w, &op, &table, &indices, &mut y).unwrap();
            scatter_add(w, &op, &y, &indices, &mut table).unwrap();
            results.extend([y, table]);
        }
        for (extents, order) in axis_orders {
            let op = Permute::new(Shape::new(extents).unwrap(), order).unwrap();
            let x = integers(5, extents.iter().product());
            let mut y = nan(x.len());
            permute(w, &op, &x, &mut y).unwrap();
            results.push(y);
        }
        for [outer, inner, tiles] in tiles {
            let (op, len) = (Tile { outer, inner, tiles }, outer * inner);
            let (mut y, mut dx) = (nan(tiles * len), nan(len));
            tile(w, &op, &integers(6, len), &mut y).unwrap();
            tile_backward(w, &op, &y, &mut dx).unwrap();
            results.extend([y, dx]);
        }
        results
    };
    let [one, two, three] = threads().map(|workers| run(&workers));
    assert!(one == two && one == three);
}

for_each_element!(gather_and_scatter_are_bit_identical_on_any_number_of_threads);

#[test]
fn gather_and_scatter_errors_name_the_operand() {
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
fn an_index_beyond_the_table_is_an_error_and_leaves_the_output_unchanged() {
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
