//! Tests of tensor files. NumPy and safetensors wrote the files in `tests/tensor_io`.

use cortado::{
    Blob, CpuDevice, DType, Element, Error, bf16, f16,
    tensor_io::{
        Tensor, read_npy, read_npz, read_safetensors, write_npy, write_npz, write_safetensors,
    },
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Values of the 2 × 3 tensor in most test files, which every element type represents exactly.
const GRID: [f64; 6] = [1.0, -2.0, 3.5, 0.25, 0.0, -480.0];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor_io").join(name)
}

/// Returns a path at which no file exists.
fn unused_path(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tensor_io");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    let _ = fs::remove_file(&path);
    path
}

fn grid<T: Element>() -> Tensor {
    Tensor::from_values(&[2, 3], &GRID.map(T::from_f64)).unwrap()
}

fn assert_error<T: std::fmt::Debug>(result: cortado::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "error does not contain `{part}`: {error}");
    }
}

#[test]
fn npy_files_written_by_numpy_are_read() {
    let read = |name| read_npy(fixture(name)).unwrap();
    assert_eq!(read("f2.npy"), grid::<f16>());
    for name in ["f4.npy", "f4_big.npy", "version_2.npy"] {
        assert_eq!(read(name), grid::<f32>(), "{name}");
    }
    for name in ["f8.npy", "f8_fortran.npy"] {
        assert_eq!(read(name), grid::<f64>(), "{name}");
    }
    let numbers: Vec<f32> = (0u8..24).map(f32::from).collect();
    let three_axes = Tensor::from_values(&[2, 3, 4], &numbers).unwrap();
    assert_eq!(read("three_axes_fortran.npy"), three_axes);
    assert_eq!(read("scalar.npy"), Tensor::from_values(&[], &[1.5f32]).unwrap());
    assert_eq!(read("empty.npy"), Tensor::from_values::<f32>(&[0, 3], &[]).unwrap());
}

#[test]
fn written_npy_files_equal_those_of_numpy() {
    for name in ["f2.npy", "f4.npy", "f8.npy", "scalar.npy", "line.npy", "empty.npy"] {
        let path = unused_path(name);
        write_npy(&path, &read_npy(fixture(name)).unwrap()).unwrap();
        assert!(fs::read(path).unwrap() == fs::read(fixture(name)).unwrap(), "{name}");
    }
    let path = unused_path("bf16.npy");
    let values = [1.0, -2.0, 3.5].map(bf16::from_f64);
    write_npy(&path, &Tensor::from_values(&[3], &values).unwrap()).unwrap();
    let widened_tensor = Tensor::from_values(&[3], &[1.0f32, -2.0, 3.5]).unwrap();
    assert_eq!(read_npy(path).unwrap(), widened_tensor);
}

#[test]
fn tensor_files_with_unsupported_element_types_are_rejected() {
    let check_rejected =
        |name, parts: &[&str]| assert_error(read_npy(fixture(name)), &[&[name], parts].concat());
    check_rejected("integers.npy", &["`<i8`", "float16, float32 and float64"]);
    check_rejected("complex.npy", &["`<c8`"]);
    check_rejected("records.npy", &["records"]);
    check_rejected("stored.npz", &["not a .npy file"]);
    assert_error(read_npz(fixture("integers.npz")), &["integers.npz: `counts.npy`: ", "`<i8`"]);
    assert_error(read_npz(fixture("f4.npy")), &["f4.npy: "]);
    assert_error(read_npy(fixture("none.npy")), &["none.npy: No such file"]);
    let result = read_safetensors(fixture("integers.safetensors"));
    assert_error(result, &["integers.safetensors: tensor `ip.0`: ", "I64"]);
}

#[test]
fn npz_archives_are_read_and_written() {
    let stored_tensors = read_npz(fixture("stored.npz")).unwrap();
    let want = [("grid".to_owned(), grid::<f32>()), ("half".to_owned(), grid::<f16>())];
    assert_eq!(stored_tensors, want);
    let zeros = Tensor::new(DType::F64, &[20, 50], vec![0; 8000]).unwrap();
    let packed_tensors = [("grid".to_owned(), grid::<f32>()), ("zeros".to_owned(), zeros)];
    assert_eq!(read_npz(fixture("packed.npz")).unwrap(), packed_tensors);

    let path = unused_path("written.npz");
    write_npz(&path, &packed_tensors).unwrap();
    assert_eq!(read_npz(&path).unwrap(), packed_tensors);
    let old_bytes = fs::read(&path).unwrap();
    let duplicates = [packed_tensors[0].clone(), packed_tensors[0].clone()];
    assert_error(write_npz(&path, &duplicates), &["written.npz: ", "two tensors", "`grid`"]);
    assert!(fs::read(&path).unwrap() == old_bytes);
}

#[test]
fn safetensors_files_are_read_and_written() {
    let bf16_values = [1.0, -2.0, 3.5].map(bf16::from_f64);
    let want = [("b".to_owned(), Tensor::from_values(&[3], &bf16_values).unwrap())];
    assert_eq!(read_safetensors(fixture("bf16.safetensors")).unwrap(), want);

    let read_sorted = |path: &Path| {
        let mut tensors = read_safetensors(path).unwrap();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        tensors
    };
    let mut tensors = read_sorted(&fixture("weights.safetensors"));
    let names: Vec<_> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ip.0", "ip.1", "other.0", "remark"]);
    assert_eq!(tensors[0].1, grid::<f32>());
    assert_eq!(tensors[1].1, Tensor::from_values(&[2], &[0.5f64, -0.5]).unwrap());

    tensors.insert(0, want[0].clone());
    let path = unused_path("written.safetensors");
    write_safetensors(&path, &tensors).unwrap();
    assert_eq!(read_sorted(&path), tensors);
    let duplicates = write_safetensors(&path, &[want[0].clone(), want[0].clone()]);
    assert_error(duplicates, &["written.safetensors: ", "two tensors", "`b`"]);
    let reserved_tensors = [("__metadata__".to_owned(), grid::<f32>())];
    assert_error(write_safetensors(&path, &reserved_tensors), &["`__metadata__`"]);
    assert_error(write_safetensors("no/such", &tensors), &["no/such: No such file"]);
}

#[test]
fn damaged_tensor_files_are_rejected_or_read_without_a_panic() {
    let names = ["f4.npy", "stored.npz", "packed.npz", "weights.safetensors", "bf16.safetensors"];
    for name in names {
        let file_bytes = fs::read(fixture(name)).unwrap();
        let path = unused_path(&format!("damaged-{name}"));
        let read = |bytes: &[u8]| {
            // Removing the old file first is faster on file systems that flush a file when its
            // content is replaced.
            let _ = fs::remove_file(&path);
            fs::write(&path, bytes).unwrap();
            match name.rsplit_once('.').unwrap().1 {
                "npy" => read_npy(&path).map(|_| ()),
                "npz" => read_npz(&path).map(|_| ()),
                _ => read_safetensors(&path).map(|_| ()),
            }
        };
        read(&file_bytes).unwrap();
        for end in 0..file_bytes.len() {
            assert_error(read(&file_bytes[..end]), &[name]);
        }
        if !name.ends_with("npz") {
            assert_error(read(&[&file_bytes[..], &[0]].concat()), &[name]);
        }
        for i in 0..file_bytes.len() {
            for value in [0, b'9', 0x7f, 0xff] {
                let mut changed_bytes = file_bytes.clone();
                changed_bytes[i] = value;
                if let Err(error) = read(&changed_bytes) {
                    assert!(error.to_string().contains(name), "{i} {value}: {error}");
                }
            }
        }
    }
}

#[test]
fn tensor_files_that_claim_huge_sizes_are_rejected_without_allocation() {
    let path = unused_path("huge.npy");
    for shape in ["(1099511627776,)", "(9223372036854775807,)", "(99999999999999999999,)"] {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        fs::write(&path, [b"\x93NUMPY\x01\0", &length[..], text.as_bytes()].concat()).unwrap();
        assert_error(read_npy(&path), &["huge.npy: "]);
    }
    fs::write(&path, b"\x93NUMPY\x02\0\xff\xff\xff\xff{").unwrap();
    assert_error(read_npy(&path), &["huge.npy: ", "4294967295"]);

    let path = unused_path("huge.safetensors");
    let file = |header: &str| {
        let length = (header.len() as u64).to_le_bytes();
        fs::write(&path, [&length[..], header.as_bytes()].concat()).unwrap();
        read_safetensors(&path)
    };
    fs::write(&path, [0xff; 16]).unwrap();
    assert_error(read_safetensors(&path), &["huge.safetensors: "]);
    let end = 1u64 << 42;
    let header =
        format!(r#"{{"a":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{end}]}}}}"#, end / 4);
    assert_error(file(&header), &["huge.safetensors: ", "0 bytes of values"]);
    // The lengths in bytes of the file's nine tensors sum to `u64::MAX`.
    let length = u64::MAX / 8;
    let mut start = 0;
    let mut fields = Vec::new();
    for index in 0..9 {
        let (end, shape) = if index < 8 { (start + length, length) } else { (u64::MAX, 7) };
        let offsets = format!("[{start},{end}]");
        fields.push(format!(
            r#""{index}":{{"dtype":"U8","shape":[{shape}],"data_offsets":{offsets}}}"#
        ));
        start = end;
    }
    assert_error(file(&format!("{{{}}}", fields.join(","))), &["huge.safetensors: "]);

    // The zip64 fields of this empty archive claim 2³² members.
    let path = unused_path("huge.npz");
    let members = (1u64 << 32).to_le_bytes();
    let (size, start) = ((1u64 << 45).to_le_bytes(), (1u64 << 46).to_le_bytes());
    let end64 = [
        b"PK\x06\x06",
        &44u64.to_le_bytes()[..],
        &[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &members,
        &members,
        &size,
        &start,
    ];
    let locator = [b"PK\x06\x07", &[0; 4][..], &0u64.to_le_bytes(), &[1, 0, 0, 0]];
    let end = [b"PK\x05\x06", &[0, 0, 0, 0][..], &[0xff; 12], &[0, 0]];
    fs::write(&path, [end64.concat(), locator.concat(), end.concat()].concat()).unwrap();
    assert_error(read_npz(&path), &["huge.npz: "]);
}

#[test]
fn a_blob_converts_tensors_of_any_element_type() {
    let device = CpuDevice::new();
    let mut blob = Blob::<f32, _>::new(&device, &[3, 2]).unwrap();
    let error = blob.from_tensor(&grid::<f64>(), false).unwrap_err();
    assert!(matches!(error, Error::Shape(_)), "{error}");
    for tensor in [grid::<f16>(), grid::<bf16>(), grid::<f32>(), grid::<f64>()] {
        blob.from_tensor(&tensor, true).unwrap();
        let want = GRID.map(|value| value as f32);
        assert_eq!(blob.shape()[..], [2, 3]);
        assert_eq!(blob.data().unwrap().host().unwrap(), want);
    }
    assert_eq!(blob.to_tensor().unwrap(), grid::<f32>());
    // `to_vec` must round each value only once. Rounding from `f64` through `f32` to `f16` would
    // give the even neighbour, 1.
    let near_tie = Tensor::from_values(&[1], &[1.0 + 2f64.powi(-11) + 2f64.powi(-40)]).unwrap();
    assert_eq!(near_tie.to_vec::<f16>().unwrap(), [f16::from_f64(1.0 + 2f64.powi(-10))]);
}

#[cfg(feature = "net")]
mod nets {
    use super::*;
    use cortado::{Net, net::CopyOptions, proto};

    const NET: &str = r#"
        layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 2 } }
        layer { name: "block.1/ip" type: "InnerProduct" bottom: "ip" top: "out"
          inner_product_param { num_output: 1 bias_term: false } }"#;

    fn net<T: Element>() -> Net<T> {
        let definition = proto::parse_text(NET, "").unwrap();
        Net::builder(&CpuDevice::new()).build(&definition).unwrap()
    }

    fn values<T: Element>(net: &Net<T>, param: usize) -> Vec<f64> {
        let blob = net.params()[param].blob();
        blob.data().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
    }

    fn check_copied<T: Element>() {
        let mut net = net::<T>();
        net.params()[2].blob().data_mut().unwrap().host_mut().unwrap().fill(T::from_f64(7.0));
        let tensors = read_safetensors(fixture("weights.safetensors")).unwrap();
        assert_eq!(net.copy_tensors_from(&tensors).unwrap(), ["ip"]);
        assert_eq!(values(&net, 0), GRID.map(|value| T::from_f64(value).to_f64()));
        assert_eq!(values(&net, 1), [0.5, -0.5]);
        assert_eq!(values(&net, 2), [7.0; 2]);
    }

    #[test]
    fn tensors_are_copied_to_parameters_by_name_and_rounded() {
        check_copied::<f32>();
        check_copied::<f64>();
        check_copied::<f16>();
        check_copied::<bf16>();
    }

    #[test]
    fn tensors_written_by_one_net_are_read_by_another_net() {
        let source = net::<bf16>();
        for (index, param) in source.params().iter().enumerate() {
            let mut data = param.blob().data_mut().unwrap();
            data.host_mut().unwrap().fill(bf16::from_f64(1.5 + index as f64));
        }
        let tensors = source.to_tensors().unwrap();
        let names: Vec<_> = tensors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ip.0", "ip.1", "block.1/ip.0"]);
        let path = unused_path("net.safetensors");
        write_safetensors(&path, &tensors).unwrap();
        let mut target = net::<bf16>();
        let copied_layers = target.copy_tensors_from(&read_safetensors(&path).unwrap()).unwrap();
        assert_eq!(copied_layers, ["ip", "block.1/ip"]);
        assert_eq!(target.to_tensors().unwrap(), tensors);
    }

    #[test]
    fn tensors_that_do_not_match_the_parameters_change_no_weights() {
        let mut net = net::<f32>();
        let old_tensors = net.to_tensors().unwrap();
        let tensor = |name: &str, shape: &[usize]| {
            let count: usize = shape.iter().product();
            (name.to_owned(), Tensor::from_values(shape, &vec![9.0f32; count]).unwrap())
        };
        let matching_tensor = tensor("block.1/ip.0", &[1, 2]);
        let (weights, bias) = (tensor("ip.0", &[2, 3]), tensor("ip.1", &[2]));
        let mut check_rejected = |tensors: &[&(String, Tensor)], parts: &[&str]| {
            let tensors: Vec<_> = tensors.iter().copied().cloned().collect();
            let parts = [&["layer `ip`"], parts].concat();
            assert_error(net.copy_tensors_from(&tensors), &parts);
            assert_eq!(net.to_tensors().unwrap(), old_tensors);
        };
        check_rejected(&[&matching_tensor, &weights], &["missing tensor `ip.1`", "2 parameters"]);
        let transposed_weights = tensor("ip.0", &[3, 2]);
        check_rejected(
            &[&transposed_weights, &bias, &matching_tensor],
            &["`ip.0`", "[3, 2]", "[2, 3]"],
        );
        check_rejected(&[&weights, &bias, &tensor("ip.2", &[1])], &["unexpected tensor `ip.2`"]);
        check_rejected(&[&weights, &bias, &bias], &["`ip.1`", "twice"]);

        // Names of tensors that match no layer of the net, or do not have the form
        // `<layer>.<index>`.
        let unmatched_tensors =
            ["ip.01", "ip.+1", "ip", "other.0", "ip.", ".0"].map(|name| tensor(name, &[1]));
        let error = net.copy_tensors_from(&unmatched_tensors).unwrap_err().to_string();
        assert!(error.contains("the weights have `ip.01`, `ip.+1`"), "{error}");
        let options = CopyOptions { allow_no_match: true };
        let copied_layers = net.copy_tensors_from_with(&unmatched_tensors, options);
        assert_eq!(copied_layers.unwrap(), [""; 0]);
    }
}

/// A program that extracts the archive would write the file outside the target folder.
#[test]
fn an_npz_name_outside_the_folder_is_not_written() {
    let path = unused_path("escape.npz");
    for name in ["../x", "a/../../x", "/x", "..\\x", "a\\..\\..\\x", "C:x", "\\\\host\\x"] {
        let written = write_npz(&path, &[(name.into(), grid::<f32>())]);
        assert_error(written, &["escape.npz: the name `", "outside the folder", "rename"]);
        assert!(!path.exists());
    }
    write_npz(&path, &[("conv1/3x3.0".into(), grid::<f32>()), ("a..b".into(), grid::<f32>())])
        .unwrap();
    assert_eq!(read_npz(&path).unwrap().len(), 2);
}
