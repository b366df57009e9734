//! Small data sets for tests that train on every type of data source.

#[cfg(feature = "hdf5")]
use cortado::{CpuDevice, Net, proto::parse_text};
use cortado::{
    data::LmdbWriter,
    proto::{Datum, Message},
};
use std::{fs, path::Path};

/// Writes the data sets to `folder`: the LMDB database `lmdb`, the IDX files with the prefix `idx`,
/// the image list `images.txt`, the window file `windows.txt` and, with the feature `hdf5`, the
/// list `rows.txt` of HDF5 files. All labels are below 4. `images` is the folder `tests/images`.
pub(crate) fn write_data_sets(folder: &Path, images: &Path) {
    write_lmdb(&folder.join("lmdb"));
    write_idx(&folder.join("idx"));
    write_images(folder, images);
    #[cfg(feature = "hdf5")]
    write_hdf5(folder);
}

/// Returns pixel `j` of image number `i`.
fn pixel(i: usize, j: usize) -> u8 {
    ((i * 37 + j * j * 11 + j) % 251) as u8
}

/// Writes an LMDB database of 23 images of 8 × 8 pixels.
fn write_lmdb(path: &Path) {
    let mut writer = LmdbWriter::create(path, false).unwrap();
    for i in 0..23 {
        let data = (0..64).map(|j| pixel(i, j)).collect();
        let (channels, side, label) = (Some(1), Some(8), Some(i as i32 % 4));
        let datum = Datum {
            channels,
            height: side,
            width: side,
            data: Some(data),
            label,
            ..Default::default()
        };
        writer.put(format!("{i:08}").as_bytes(), &datum.encode_to_vec()).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a pair of IDX files with 17 images of 8 × 8 pixels and their labels.
fn write_idx(prefix: &Path) {
    let header = |magic: u32, extents: &[u32]| -> Vec<u8> {
        [magic].iter().chain(extents).flat_map(|value| value.to_be_bytes()).collect()
    };
    let mut images = header(0x803, &[17, 8, 8]);
    images.extend((0..17).flat_map(|i| (0..64).map(move |j| pixel(i + 3, j))));
    let mut labels = header(0x801, &[17]);
    labels.extend((0..17).map(|i| i as u8 % 4));
    let name = |suffix: &str| format!("{}{suffix}", prefix.display());
    fs::write(name("-images-idx3-ubyte"), images).unwrap();
    fs::write(name("-labels-idx1-ubyte"), labels).unwrap();
}

/// Writes `images.txt` with seven entries, and `windows.txt` with the windows of two images.
fn write_images(folder: &Path, images: &Path) {
    let files = ["color.png", "gray.png", "palette.png", "alpha.png"];
    let line = |i: usize| format!("{} {}\n", images.join(files[i % 4]).display(), i % 4);
    fs::write(folder.join("images.txt"), (0..7).map(line).collect::<String>()).unwrap();
    let windows = |i: usize, file: &str| {
        let boxes = "1 0.9 0 0 7 5\n2 0.8 1 0 6 5\n0 0.1 2 1 6 5\n0 0.2 0 0 5 4";
        format!("# {i}\n{}\n3\n9\n11\n4\n{boxes}\n", images.join(file).display())
    };
    let windows = windows(0, "color.png") + &windows(1, "palette.png");
    fs::write(folder.join("windows.txt"), windows).unwrap();
}

/// Writes two HDF5 files with 5 and 6 rows of 64 values, with an HDF5Output layer, and `rows.txt`
/// with the paths of the two files.
#[cfg(feature = "hdf5")]
fn write_hdf5(folder: &Path) {
    let mut list = String::new();
    for (file, rows) in [("a.h5", 5), ("b.h5", 6)] {
        let path = folder.join(file);
        let text = format!(
            r#"layer {{ type: "Input" top: "x" top: "t"
                 input_param {{ shape {{ dim: {rows} dim: 64 dim: 1 dim: 1 }} shape {{ dim: {rows} }} }} }}
               layer {{ type: "HDF5Output" bottom: "x" bottom: "t"
                 hdf5_output_param {{ file_name: "{}" }} }}"#,
            path.display()
        );
        let net = parse_text(text, "net").unwrap();
        let mut net = Net::<f32>::builder(&CpuDevice::new()).build(&net).unwrap();
        let fill = |name: &str, value: fn(usize) -> f32| {
            let mut data = net.blob(name).unwrap().data_mut().unwrap();
            let values = data.host_mut().unwrap();
            values.iter_mut().enumerate().for_each(|(i, v)| *v = value(i));
        };
        fill("x", |i| f32::from(pixel(i / 64 + 40, i % 64)) / 256.0);
        fill("t", |i| (i % 4) as f32);
        net.forward().unwrap();
        list += &format!("{}\n", path.display());
    }
    fs::write(folder.join("rows.txt"), list).unwrap();
}
