//! Conformance checks of the kernel family [`Indexing`](crate::kernel::Indexing).

use super::{copied_bits::expect_copied_bits, prelude::*};
use crate::{
    conformance::{oracle::indexing as oracle, values::repeated},
    op::{Copy2d, Permute, RowIndexing, Tile},
    shape::Shape,
};

checks! {
    "copy_2d" of "copy_2d": copy_2d();
    "gather" of "gather": gather();
    "scatter_add" of "scatter_add": scatter_add();
    "permute" of "permute": permute();
    "tile" of "tile": tile();
    "tile_backward" of "tile_backward": tile_backward();
    "to_indices" of "to_indices": to_indices();
}

fn copy_2d<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let device = runner.device;
    // Number of elements from the first to the last element of a block, including the gaps between
    // rows.
    let span = |op: &Copy2d, ld| match (op.rows, op.columns) {
        (0, _) | (_, 0) => 0,
        (rows, columns) => (rows - 1) * ld + columns,
    };
    runner.try_all(&block_cases(), |op, setup| {
        let mut stream = setup.stream();
        let x = stream.take::<T>(span(op, op.ldx) + setup.seed as usize % 3);
        let y = stream.take::<T>(span(op, op.ldy) + setup.seed as usize % 2);
        let [got] =
            runner.call(setup, [("x", &x)], [("y", &y)], |[x], [y]| device.copy_2d(op, x, y))?;
        expect_bits("y", &got, &oracle::copy_2d(op, &x, &y))
    })?;
    let block = |rows, columns, ldx, ldy| Copy2d { rows, columns, ldx, ldy };
    expect_copied_bits::<T>(runner, |[x], [y]| device.copy_2d(&block(2, 4, 4, 4), x, y))?;
    let (small_op, large_op) = (block(PERIOD, 2, 3, 4), block(PERIOD * ROW_COPIES, 2, 3, 4));
    let mut stream = Values::Integers.stream(1);
    let [x, y] = [small_op.ldx, small_op.ldy].map(|ld| stream.take::<T>(small_op.rows * ld));
    let want = [ExpectedOutput::Bits(wide(&oracle::copy_2d(&small_op, &x, &y)))];
    let (x, y) = ([(("x", &x[..]), ROW_COPIES)], [(("y", &y[..]), ROW_COPIES)]);
    runner.try_large(x, y, |[x], [y]| device.copy_2d(&large_op, x, y), want)?;
    let invalid = [
        (block(3, 4, 5, 6), 13, 16, "`x` of 13 elements instead of at least 14"),
        (block(3, 4, 5, 6), 14, 15, "`y` of 15 elements instead of at least 16"),
        (block(1, 4, 0, 0), 4, 3, "`y` of 3 elements instead of at least 4"),
        (block(2, 4, 3, 4), 20, 20, "ldx 3 for rows of 4 elements"),
        (block(2, 4, 4, 3), 20, 20, "ldy 3 for rows of 4 elements"),
        (block(3, 1, usize::MAX, 1), 9, 9, "`x` of 9 elements for an ldx of 2⁶⁴ − 1"),
        (block(2, 2, usize::MAX, 2), 9, 9, "`x` of 9 elements for an ldx of 2⁶⁴ − 1"),
        (block(usize::MAX, 1, 2, 2), 9, 9, "`x` of 9 elements for 2⁶⁴ − 1 rows"),
    ];
    runner.try_cases(invalid, |(op, x, y, invalid)| {
        runner.check_refused::<T, T, 1, 1>(invalid, [("x", *x)], [("y", *y)], |[x], [y]| {
            device.copy_2d(op, x, y)
        })
    })
}

/// Returns the row indices of a case, some of which are equal even if the table is large.
fn indices(op: &RowIndexing, setup: &CaseSetup) -> Vec<u32> {
    let rows = setup.stream().indices(op.table.clamp(1, 40), op.count);
    rows.into_iter().map(|row| (op.table - 1 - row) as u32).collect()
}

fn gather<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    try_indexed::<T>(
        runner,
        |op, setup| {
            let (table, y) = (("table", op.table * op.width), ("y", op.count * op.width));
            let ([table], [y]) = setup.inputs_and_outputs([table], [y]);
            [table, y]
        },
        |op, table, rows, y| runner.device.gather(op, table, rows, y),
        |op, rows, [table, _]| ExpectedOutput::Bits(oracle::gather(table, op.width, rows)),
    )?;
    let rows = Operand::new(runner.device, &[0, 1], Placement::WHOLE)?;
    let op = RowIndexing { table: 2, width: 4, count: 2 };
    expect_copied_bits::<T>(runner, |[x], [y]| runner.device.gather(&op, x, rows.view()?, y))?;
    // Gather more than 65,535 rows.
    let mut stream = Values::Integers.stream(1);
    let (table, indices) = (stream.take::<T>(30), stream.indices(10, PERIOD));
    let indices: Vec<_> = indices.into_iter().map(|index| index as u32).collect();
    let want = [ExpectedOutput::Bits(wide(&oracle::gather(&table, 3, &indices)))];
    let rows = Operand::new(runner.device, &repeated(&indices, ROW_COPIES), Placement::WHOLE)?;
    let op = RowIndexing { table: 10, width: 3, count: PERIOD * ROW_COPIES };
    let y = [(("y", &unset::<T>(3 * PERIOD)[..]), ROW_COPIES)];
    let kernel = |[table]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, T, AnyDevice>; 1]| {
        runner.device.gather(&op, table, rows.view()?, y)
    };
    runner.try_large([(("table", &table[..]), 1)], y, kernel, want)
}

fn scatter_add<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    // `scatter_add` adds rows in order and rounds each sum to the element type, so only one result
    // is correct.
    let round = |sum| T::from_f64(sum).to_f64();
    try_indexed::<T>(
        runner,
        |op, setup| setup.operands([("y", op.count * op.width), ("table", op.table * op.width)]),
        |op, y, rows, table| runner.device.scatter_add(op, y, rows, table),
        |op, rows, [y, table]| {
            ExpectedOutput::Nearest(oracle::scatter_add(table, op.width, rows, y, round))
        },
    )?;
    // The case adds more than 65,535 rows, which are too many for 16-bit indices and for some axes
    // of a GPU grid. The sums are exact in `f32`, the only element type of large cases.
    let rows = vec![[1, 0, 1]; PERIOD * ROW_COPIES / 3].concat();
    let op = RowIndexing { table: 2, width: 1, count: rows.len() };
    let y = vec![T::from_f64(1.0); rows.len()];
    let want = [ExpectedOutput::Nearest(vec![rows.len() as f64 / 3.0, rows.len() as f64 / 1.5])];
    let rows = Operand::new(runner.device, &rows, Placement::WHOLE)?;
    let table = [(("table", &[T::default(); 2][..]), 1)];
    let kernel = |[y]: [View<'_, T, AnyDevice>; 1], [table]: [ViewMut<'_, T, AnyDevice>; 1]| {
        runner.device.scatter_add(&op, y, rows.view()?, table)
    };
    runner.try_large([(("y", &y[..]), 1)], table, kernel, want)
}

/// Checks a kernel with an input, row indices and an output. The kernel must refuse wrong lengths
/// of each operand and indices outside the table, and then accept a valid call.
fn try_indexed<T: Element>(
    runner: &CheckRunner<'_>,
    operands: impl Fn(&RowIndexing, &CaseSetup) -> [NamedValues<T>; 2],
    call: impl Fn(
        &RowIndexing,
        View<'_, T, AnyDevice>,
        View<'_, u32, AnyDevice>,
        ViewMut<'_, T, AnyDevice>,
    ) -> Result<()>,
    want: impl Fn(&RowIndexing, &[u32], [&[f64]; 2]) -> ExpectedOutput,
) -> Verdict {
    runner.try_all(&table_cases(), |op, setup| {
        let [(input, x), (output, y)] = operands(op, setup);
        let indices = indices(op, setup);
        let rows = Operand::new(runner.device, &indices, setup.places[2])?;
        let [got] = runner
            .call(setup, [(input, &x)], [(output, &y)], |[x], [y]| call(op, x, rows.view()?, y))?;
        rows.unchanged("indices")?;
        want(op, &indices, [&wide(&x), &wide(&y)]).compare(output, &got, setup.values)
    })?;
    let op = RowIndexing { table: 4, width: 3, count: 2 };
    let kernel = |rows: &[u32], x: View<'_, T, AnyDevice>, y: ViewMut<'_, T, AnyDevice>| {
        let rows = Operand::new(runner.device, rows, Placement::CORNERS[3])?;
        call(&op, x, rows.view()?, y)
    };
    let [(input, x), (output, y)] = operands(&op, &CaseSetup::WHOLE);
    let (x, y) = ([(input, &x[..])], (output, &y[..]));
    let lengths = ([(input, x[0].1.len())], [(output, y.1.len())]);
    runner.check_lengths(lengths.0, lengths.1, |[x], [y]| kernel(&[3, 0], x, y))?;
    runner.try_cases([&[1][..], &[1, 1, 1]], |rows| {
        let invalid = format!("`indices` of {} elements instead of 2", rows.len());
        runner.check_refused(&invalid, lengths.0, lengths.1, |[x], [y]| kernel(rows, x, y))
    })?;
    runner.try_cases([[4, 0], [0, 4], [u32::MAX, 1]], |rows| {
        let invalid = "an index outside a table of 4 rows";
        runner.check_late_error(invalid, x, y, |[x], [y]| kernel(rows, x, y))?;
        runner.call(&CaseSetup::WHOLE, x, [y], |[x], [y]| kernel(&[3, 0], x, y)).map(drop)
    })
}

fn permute<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let images = |batch| permutation(&[batch, 2, 3], &[0, 2, 1]);
    let copies = COPIES.div_ceil(6);
    let images = [images(PERIOD)?, images(PERIOD * copies)?];
    runner.try_kernel(
        &permutation_cases()?.and_large(images, copies, &[]),
        |op, setup| {
            let len = op.shape().count();
            setup.inputs_and_outputs::<T, 1, 1>([("x", len)], [("y", len)])
        },
        |op, [x], [y]| runner.device.permute(op, x, y),
        |op, [x], _| [ExpectedOutput::Bits(oracle::permute(op, x))],
    )?;
    let identity = permutation(&[2, 4], &[0, 1])?;
    expect_copied_bits::<T>(runner, |[x], [y]| runner.device.permute(&identity, x, y))
}

fn tile<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let blocks = |outer| Tile { outer, inner: 1, tiles: 2 };
    let copies = COPIES.div_ceil(2);
    let blocks = [blocks(PERIOD), blocks(PERIOD * copies)];
    runner.try_kernel(
        &tile_cases().and_large(blocks, copies, &[]),
        |op, setup| {
            let len = op.outer * op.inner;
            setup.inputs_and_outputs::<T, 1, 1>([("x", len)], [("y", len * op.tiles)])
        },
        |op, [x], [y]| runner.device.tile(op, x, y),
        |op, [x], _| [ExpectedOutput::Bits(oracle::tile(op, x))],
    )?;
    let one_tile = Tile { outer: 2, inner: 4, tiles: 1 };
    expect_copied_bits::<T>(runner, |[x], [y]| runner.device.tile(&one_tile, x, y))
}

fn tile_backward<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    runner.try_kernel(
        &tile_cases(),
        |op, setup| {
            let len = op.outer * op.inner;
            setup.inputs_and_outputs::<T, 1, 1>([("dy", len * op.tiles)], [("dx", len)])
        },
        |op, [dy], [dx]| runner.device.tile_backward(op, dy, dx),
        |op, [dy], _| [ExpectedOutput::Sums(oracle::tile_backward(op, dy))],
    )
}

fn to_indices<T: Element>(runner: &CheckRunner<'_>) -> Verdict {
    let kernel = |bound| {
        move |[x]: [View<'_, T, AnyDevice>; 1], [y]: [ViewMut<'_, u32, AnyDevice>; 1]| {
            runner.device.to_indices(bound, x, y)
        }
    };
    let corner_cases = vec![(1, 0), (1, 1), (9, 40), (200, 1025), (u32::MAX, 3)];
    let cases = Cases::new(corner_cases, (1..200u32, 0..99usize), (4, 4));
    runner.try_all(&cases, |&(bound, count), setup| {
        // All element types represent the integers up to 256 exactly.
        let want = setup.stream().indices(bound.min(200) as usize, count);
        let want: Vec<u32> = want.into_iter().map(|index| index as u32).collect();
        let x: Vec<_> = want.iter().map(|&index| T::from_f64(index.into())).collect();
        let y = ("y", &vec![UNSET; count][..]);
        let [got] = runner.call(setup, [("x", &x)], [y], kernel(bound))?;
        expect_bits("y", &got, &want)
    })?;
    runner.check_lengths([("x", 4)], [("y", 4)], kernel(4))?;
    runner.try_cases([-1.0, 4.0, 0.5, 60_000.0, f64::NAN, f64::INFINITY], |&invalid| {
        let y = ("y", &[UNSET; 4][..]);
        let x = [0.0, 3.0, invalid, 1.0].map(T::from_f64);
        let invalid = format!("{invalid} as an index below 4");
        runner.check_late_error(&invalid, [("x", &x)], y, kernel(4))?;
        let x = [0.0, 3.0, 2.0, 1.0].map(T::from_f64);
        runner.call(&CaseSetup::WHOLE, [("x", &x)], [y], kernel(4)).map(drop)
    })
}

/// Returns cases of copies of blocks: empty blocks, one element, one row with any leading
/// dimension, gaps between rows, and large blocks.
fn block_cases() -> Cases<Copy2d> {
    let blocks = [
        [0, 3, 3, 3],
        [3, 0, 3, 3],
        [1, 1, 1, 1],
        [1, 37, 0, 0],
        [7, 1, 3, 2],
        [5, 6, 6, 6],
        [1, 4099, 0, 1],
        [1025, 3, 4, 3],
        [33, 65, 65, 130],
        // A copy of whole rows would overwrite the gaps between the rows of `y`.
        [4, 5, 8, 8],
        [3, 1, 2, 2],
        [4, 5, 8, 7],
    ];
    let block = |[rows, columns, ldx, ldy]: [usize; 4]| Copy2d { rows, columns, ldx, ldy };
    let random_cases = (0..=40usize, 0..=40usize, 0..=5usize, 0..=5usize)
        .prop_map(move |(rows, columns, x, y)| block([rows, columns, columns + x, columns + y]));
    Cases::new(blocks.map(block).into(), random_cases, block([4, 5, 8, 7]))
}

/// Returns cases of gather and scatter: no indices, empty rows, one row of one element, wide rows
/// and narrow rows.
fn table_cases() -> Cases<RowIndexing> {
    let tables = [
        [5, 3, 0],
        [0, 3, 0],
        [5, 0, 4],
        [1, 1, 1],
        [1, 9, 5],
        [1025, 2, 70],
        [6, 1025, 9],
        [9, 1, 1025],
        [70_001, 1, 9],
        [7, 5, 20],
    ];
    let rows = |[table, width, count]: [usize; 3]| RowIndexing { table, width, count };
    let random_cases = [1..=60usize, 0..=70, 0..=40].prop_map(rows);
    Cases::new(tables.map(rows).into(), random_cases, rows([4, 3, 2]))
}

fn permutation(shape: &[usize], order: &[usize]) -> Result<Permute> {
    Permute::new(Shape::new(shape)?, order)
}

/// Returns cases of permutations: no axes, no elements, the identity, transposes with extents near
/// the sizes of tiles, and channels moved to the end and back.
fn permutation_cases() -> Result<Cases<Permute>> {
    let corner_cases = vec![
        permutation(&[], &[])?,
        permutation(&[3, 0, 2], &[1, 2, 0])?,
        permutation(&[5], &[0])?,
        permutation(&[3, 4, 5], &[0, 1, 2])?,
        permutation(&[33, 65], &[1, 0])?,
        permutation(&[64, 64], &[1, 0])?,
        permutation(&[1, 1025, 3], &[2, 1, 0])?,
        permutation(&[2, 3, 17, 19], &[0, 2, 3, 1])?,
        permutation(&[2, 17, 19, 3], &[0, 3, 1, 2])?,
        permutation(&[2, 3, 1, 4, 2, 3], &[5, 0, 3, 2, 4, 1])?,
        permutation(&[4, 3, 5], &[2, 0, 1])?,
    ];
    let shape = prop::collection::vec(0..=7usize, 0..=5);
    let shape = shape.prop_flat_map(|shape| {
        let order: Vec<_> = (0..shape.len()).collect();
        (Just(shape), Just(order).prop_shuffle())
    });
    let random_cases =
        shape.prop_filter_map("too large", |(shape, order)| permutation(&shape, &order).ok());
    Ok(Cases::new(corner_cases, random_cases, permutation(&[2, 3, 2], &[2, 0, 1])?))
}

/// Returns cases of tiling: empty operands, no tiles, one element, and long runs of elements.
fn tile_cases() -> Cases<Tile> {
    let tiles = [
        [0, 3, 2],
        [3, 0, 2],
        [3, 4, 0],
        [1, 1, 1],
        [5, 4, 1],
        [2, 1, 1025],
        [2, 1025, 3],
        [1025, 1, 2],
        [3, 17, 70],
        [3, 7, 4],
    ];
    let tile = |[outer, inner, tiles]: [usize; 3]| Tile { outer, inner, tiles };
    let random_cases = [0..=6usize, 0..=70, 0..=7].prop_map(tile);
    Cases::new(tiles.map(tile).into(), random_cases, tile([2, 3, 2]))
}
