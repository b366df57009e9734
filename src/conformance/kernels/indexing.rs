//! [`Indexing`](crate::kernel::Indexing).

use super::harness::{CaseSetup, call, fails_in_time, ones, refused, refuses_lengths, tries};
use crate::{
    conformance::{
        runner::CheckRunner,
        check::{Check, checks},
        compare::{exact, same},
        failure::{Verdict, flaw},
        operand::{Operand, Placement, UNSET, unset},
        oracle::indexing as oracle,
        values::wide,
    },
    device::Device,
    element::Element,
    error::Result,
    op::{Copy2d, Permute, RowIndexing, Tile},
    shape::Shape,
};
use proptest::prelude::*;

pub(super) fn checks<D: Device>() -> Vec<Check<D>> {
    checks! {
        "copy_2d" of "copy_2d": copy_2d();
        "gather" of "gather": gather();
        "scatter_add" of "scatter_add": scatter_add();
        "permute" of "permute": permute();
        "tile" of "tile": tile();
        "tile_backward" of "tile_backward": tile_backward();
        "to_indices" of "to_indices": to_indices();
    }
}

fn copy_2d<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    // Elements of an operand: those of the block and what lies between its rows, and some more.
    let span = |op: &Copy2d, ld| match (op.rows, op.columns) {
        (0, _) | (_, 0) => 0,
        (rows, columns) => (rows - 1) * ld + columns,
    };
    tries(bench, blocks(), any_block(), |op, how| {
        let mut draw = how.draw();
        let x = draw.take::<T>(span(op, op.ldx) + how.seed as usize % 3);
        let before = draw.take::<T>(span(op, op.ldy) + how.seed as usize % 2);
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[1]));
        let [got] = call(bench, [given], [y], |[x], [y]| device.copy_2d(op, x, y))?;
        same("y", &got, &oracle::copy_2d(op, &x, &before))
    })?;
    let block = |rows, columns, ldx, ldy| Copy2d { rows, columns, ldx, ldy };
    let refusals = [
        (block(3, 4, 5, 6), 13, 16),
        (block(3, 4, 5, 6), 14, 15),
        (block(1, 4, 0, 0), 4, 3),
        (block(2, 4, 3, 4), 20, 20),
        (block(2, 4, 4, 3), 20, 20),
        (block(3, 1, usize::MAX, 1), 9, 9),
        (block(2, 2, usize::MAX, 2), 9, 9),
        (block(usize::MAX, 1, 2, 2), 9, 9),
    ];
    bench.all(refusals, |(op, xs, ys)| {
        let (x, y) = (ones::<T>(*xs), ones::<T>(*ys));
        let (x, y) = (("x", &x[..], Placement::WHOLE), ("y", &y[..], Placement::CORNERS[1]));
        refused(bench, [x], [y], |[x], [y]| device.copy_2d(op, x, y))
    })
}

/// The rows of a case.
fn indices(op: &RowIndexing, how: &CaseSetup) -> Vec<u32> {
    // Several of the same row even where the table is large.
    let rows = how.draw().below(op.table.clamp(1, 40), op.count);
    rows.into_iter().map(|row| (op.table - 1 - row) as u32).collect()
}

fn gather<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, tables(), any_table(), |op, how| {
        let (table, rows) = (how.draw().take::<T>(op.table * op.width), indices(op, how));
        let indices = Operand::input(device, &rows, how.at[1])?;
        let before = unset(op.count * op.width);
        let (given, y) = (("table", &table[..], how.at[0]), ("y", &before[..], how.at[2]));
        let [got] =
            call(bench, [given], [y], |[table], [y]| device.gather(op, table, indices.view()?, y))?;
        indices.unchanged("indices")?;
        same("y", &got, &oracle::gather(&table, op.width, &rows))
    })?;
    let op = RowIndexing { table: 4, width: 3, count: 2 };
    let rows = |rows: &[u32]| Operand::input(device, rows, Placement::CORNERS[3]);
    refuses_lengths::<T, D, _, _>(bench, [("table", 12)], [("y", 6)], |[table], [y]| {
        device.gather(&op, table, rows(&[3, 0])?.view()?, y)
    })?;
    let (table, y) = (ones::<T>(12), ones::<T>(6));
    let (table, y) =
        (("table", &table[..], Placement::WHOLE), ("y", &y[..], Placement::CORNERS[1]));
    bench.all([&[1][..], &[1, 1, 1]], |wrong| {
        refused(bench, [table], [y], |[table], [y]| {
            device.gather(&op, table, rows(wrong)?.view()?, y)
        })
    })?;
    bench.all([[4, 0], [0, 4], [u32::MAX, 1]], |bad| {
        fails_in_time(bench, [table], y, |[table], [y]| {
            device.gather(&op, table, rows(bad)?.view()?, y)
        })?;
        let good = rows(&[3, 0])?;
        call(bench, [table], [y], |[table], [y]| device.gather(&op, table, good.view()?, y))
            .map(drop)
    })
}

fn scatter_add<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, tables(), any_table(), |op, how| {
        let mut draw = how.draw();
        let (y, before) = (draw.take::<T>(op.count * op.width), draw.take(op.table * op.width));
        let rows = indices(op, how);
        let indices = Operand::input(device, &rows, how.at[1])?;
        let (given, table) = (("y", &y[..], how.at[0]), ("table", &before[..], how.at[2]));
        let [got] = call(bench, [given], [table], |[y], [table]| {
            device.scatter_add(op, y, indices.view()?, table)
        })?;
        indices.unchanged("indices")?;
        // In order, and each sum the nearest: there is one result.
        let round = |sum| T::from_f64(sum).to_f64();
        let want = oracle::scatter_add(&wide(&before), op.width, &rows, &wide(&y), round);
        exact("table", &got, &want)
    })?;
    let op = RowIndexing { table: 4, width: 3, count: 2 };
    let rows = |rows: &[u32]| Operand::input(device, rows, Placement::CORNERS[3]);
    refuses_lengths::<T, D, _, _>(bench, [("y", 6)], [("table", 12)], |[y], [table]| {
        device.scatter_add(&op, y, rows(&[3, 0])?.view()?, table)
    })?;
    let (y, table) = (ones::<T>(6), ones::<T>(12));
    let (y, table) =
        (("y", &y[..], Placement::WHOLE), ("table", &table[..], Placement::CORNERS[1]));
    bench.all([&[1][..], &[1, 1, 1]], |wrong| {
        refused(bench, [y], [table], |[y], [table]| {
            device.scatter_add(&op, y, rows(wrong)?.view()?, table)
        })
    })?;
    bench.all([[4, 0], [0, 4], [u32::MAX, 1]], |bad| {
        fails_in_time(bench, [y], table, |[y], [table]| {
            device.scatter_add(&op, y, rows(bad)?.view()?, table)
        })?;
        let good = rows(&[3, 0])?;
        call(bench, [y], [table], |[y], [table]| device.scatter_add(&op, y, good.view()?, table))
            .map(drop)
    })
}

fn permute<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, permutations()?, any_permutation(), |op, how| {
        let x = how.draw().take::<T>(op.shape().count());
        let before = unset(x.len());
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[1]));
        let [got] = call(bench, [given], [y], |[x], [y]| bench.device.permute(op, x, y))?;
        same("y", &got, &oracle::permute(op, &x))
    })?;
    let op = permutation(&[2, 3, 2], &[2, 0, 1])?;
    refuses_lengths::<T, D, _, _>(bench, [("x", 12)], [("y", 12)], |[x], [y]| {
        bench.device.permute(&op, x, y)
    })
}

fn tile<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    tries(bench, tiles(), any_tile(), |op, how| {
        let x = how.draw().take::<T>(op.outer * op.inner);
        let before = unset(x.len() * op.tiles);
        let (given, y) = (("x", &x[..], how.at[0]), ("y", &before[..], how.at[1]));
        let [got] = call(bench, [given], [y], |[x], [y]| bench.device.tile(op, x, y))?;
        same("y", &got, &oracle::tile(op, &x))
    })?;
    let op = Tile { outer: 2, inner: 3, tiles: 2 };
    refuses_lengths::<T, D, _, _>(bench, [("x", 6)], [("y", 12)], |[x], [y]| {
        bench.device.tile(&op, x, y)
    })
}

fn tile_backward<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    tries(bench, tiles(), any_tile(), |op, how| {
        let dy = how.draw().take::<T>(op.outer * op.tiles * op.inner);
        let before = unset(op.outer * op.inner);
        let (given, dx) = (("dy", &dy[..], how.at[0]), ("dx", &before[..], how.at[1]));
        let [got] = call(bench, [given], [dx], |[dy], [dx]| device.tile_backward(op, dy, dx))?;
        how.values.judge("dx", &got, &oracle::tile_backward(op, &wide(&dy)))
    })?;
    let op = Tile { outer: 2, inner: 3, tiles: 2 };
    refuses_lengths::<T, D, _, _>(bench, [("dy", 12)], [("dx", 6)], |[dy], [dx]| {
        device.tile_backward(&op, dy, dx)
    })
}

fn to_indices<T: Element, D: Device>(bench: &CheckRunner<'_, D>) -> Verdict {
    let device = bench.device;
    let bounds = [(1, 0), (1, 1), (9, 40), (200, 1025), (u32::MAX, 3)];
    tries(bench, bounds.into(), (1..200u32, 0..99usize), |&(bound, count), how| {
        // Below 257 every integer is one of every element type.
        let want = how.draw().below(bound.min(200) as usize, count);
        let want: Vec<u32> = want.into_iter().map(|index| index as u32).collect();
        let given: Vec<_> = want.iter().map(|&index| T::from_f64(index.into())).collect();
        let x = Operand::input(device, &given, how.at[0])?;
        let mut y = Operand::output(device, &vec![UNSET; count], how.at[1])?;
        device.to_indices(bound, x.view()?, y.view_mut()?)?;
        x.unchanged("x")?;
        same("y", &y.finish()?, &want)
    })?;
    bench.all([(3, 4), (5, 4), (4, 3), (4, 5)], |&(xs, ys)| {
        let x = Operand::input(device, &ones::<T>(xs), Placement::WHOLE)?;
        let mut y = Operand::output(device, &vec![UNSET; ys], Placement::CORNERS[1])?;
        if device.to_indices(4, x.view()?, y.view_mut()?).is_ok() {
            return Err(flaw!("was not refused"));
        }
        y.unchanged("y")
    })?;
    bench.all([-1.0, 4.0, 0.5, 60_000.0, f64::NAN, f64::INFINITY], |&bad| {
        let run = |given: [f64; 4]| {
            let x = Operand::input(device, &given.map(T::from_f64), Placement::CORNERS[1])?;
            let mut y = Operand::output(device, &[UNSET; 4], Placement::WHOLE)?;
            let called = device.to_indices(4, x.view()?, y.view_mut()?);
            called.and_then(|()| y.view()?.host().map(|_| ()))
        };
        if run([0.0, 3.0, bad, 1.0]).is_ok() {
            return Err(flaw!("no error by the next download"));
        }
        Ok(run([0.0, 3.0, 2.0, 1.0])?)
    })
}

/// No block, one element, one row whatever the leading dimensions, gaps, and more than a block.
fn blocks() -> Vec<Copy2d> {
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
        [4, 5, 8, 7],
    ];
    blocks.map(|[rows, columns, ldx, ldy]| Copy2d { rows, columns, ldx, ldy }).into()
}

fn any_block() -> impl Strategy<Value = Copy2d> {
    (0..=40usize, 0..=40usize, 0..=5usize, 0..=5usize).prop_map(|(rows, columns, x, y)| Copy2d {
        rows,
        columns,
        ldx: columns + x,
        ldy: columns + y,
    })
}

/// No indices, no elements, one of each, wide and narrow rows.
fn tables() -> Vec<RowIndexing> {
    let tables = [
        [5, 3, 0],
        [0, 3, 0],
        [5, 0, 4],
        [1, 1, 1],
        [1, 9, 5],
        [1025, 2, 70],
        [6, 1025, 9],
        [9, 1, 1025],
        [7, 5, 20],
    ];
    tables.map(|[table, width, count]| RowIndexing { table, width, count }).into()
}

fn any_table() -> impl Strategy<Value = RowIndexing> {
    (1..=60usize, 0..=70usize, 0..=40usize).prop_map(|(table, width, count)| RowIndexing {
        table,
        width,
        count,
    })
}

fn permutation(shape: &[usize], order: &[usize]) -> Result<Permute> {
    Permute::new(Shape::new(shape)?, order)
}

/// No axes, no elements, nothing moved, transposes about the sizes of tiles, channels to the end
/// and back.
fn permutations() -> Result<Vec<Permute>> {
    Ok(vec![
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
    ])
}

fn any_permutation() -> impl Strategy<Value = Permute> {
    let shape = prop::collection::vec(0..=7usize, 0..=5);
    let shape = shape.prop_flat_map(|shape| {
        let order: Vec<_> = (0..shape.len()).collect();
        (Just(shape), Just(order).prop_shuffle())
    });
    shape.prop_filter_map("no permutation", |(shape, order)| permutation(&shape, &order).ok())
}

/// Nothing, no tiles, one element, and more than a block of each.
fn tiles() -> Vec<Tile> {
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
    tiles.map(|[outer, inner, tiles]| Tile { outer, inner, tiles }).into()
}

fn any_tile() -> impl Strategy<Value = Tile> {
    (0..=6usize, 0..=70usize, 0..=7usize).prop_map(|(outer, inner, tiles)| Tile {
        outer,
        inner,
        tiles,
    })
}
