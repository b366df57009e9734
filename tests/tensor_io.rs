//! NumPy's and safetensors' files: those in `tests/tensor_io` are theirs.
#![cfg(feature = "tensor-io")]

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

/// What most of the files hold, 2 × 3: exact in every type.
const GRID: [f64; 6] = [1.0, -2.0, 3.5, 0.25, 0.0, -480.0];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensor_io").join(name)
}

/// A path to write to, of no file yet.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tensor_io");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let _ = fs::remove_file(&path);
    path
}

fn grid<T: Element>() -> Tensor {
    Tensor::from_values(&[2, 3], &GRID.map(T::from_f64)).unwrap()
}

/// Asserts that all of `parts` are in what an error says.
fn says<T: std::fmt::Debug>(result: cortado::Result<T>, parts: &[&str]) {
    let error = result.unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "no `{part}` in: {error}");
    }
}

#[test]
fn numpys_arrays_are_read() {
    let read = |name| read_npy(fixture(name)).unwrap();
    assert_eq!(read("f2.npy"), grid::<f16>());
    for name in ["f4.npy", "f4_big.npy", "version_2.npy"] {
        assert_eq!(read(name), grid::<f32>(), "{name}");
    }
    for name in ["f8.npy", "f8_fortran.npy"] {
        assert_eq!(read(name), grid::<f64>(), "{name}");
    }
    let count: Vec<f32> = (0u8..24).map(f32::from).collect();
    let three_axes = Tensor::from_values(&[2, 3, 4], &count).unwrap();
    assert_eq!(read("three_axes_fortran.npy"), three_axes);
    assert_eq!(read("scalar.npy"), Tensor::from_values(&[], &[1.5f32]).unwrap());
    assert_eq!(read("empty.npy"), Tensor::from_values::<f32>(&[0, 3], &[]).unwrap());
}

#[test]
fn arrays_are_written_as_numpy_writes_them() {
    for name in ["f2.npy", "f4.npy", "f8.npy", "scalar.npy", "line.npy", "empty.npy"] {
        let path = fresh(name);
        write_npy(&path, &read_npy(fixture(name)).unwrap()).unwrap();
        assert!(fs::read(path).unwrap() == fs::read(fixture(name)).unwrap(), "{name}");
    }
    let path = fresh("bf16.npy");
    let values = [1.0, -2.0, 3.5].map(bf16::from_f64);
    write_npy(&path, &Tensor::from_values(&[3], &values).unwrap()).unwrap();
    let widened = Tensor::from_values(&[3], &[1.0f32, -2.0, 3.5]).unwrap();
    assert_eq!(read_npy(path).unwrap(), widened);
}

#[test]
fn arrays_of_other_types_are_refused() {
    let refused = |name, parts: &[&str]| says(read_npy(fixture(name)), &[&[name], parts].concat());
    refused("integers.npy", &["`<i8`", "float16, float32 and float64"]);
    refused("complex.npy", &["`<c8`"]);
    refused("records.npy", &["records"]);
    refused("stored.npz", &["does not start as a .npy file"]);
    says(read_npz(fixture("integers.npz")), &["integers.npz: `counts.npy`: ", "`<i8`"]);
    says(read_npz(fixture("f4.npy")), &["f4.npy: "]);
    says(read_npy(fixture("none.npy")), &["none.npy: No such file"]);
    let integers = read_safetensors(fixture("integers.safetensors"));
    says(integers, &["integers.safetensors: tensor `ip.0`: ", "I64"]);
}

#[test]
fn archives_of_arrays_are_read_and_written() {
    let stored = read_npz(fixture("stored.npz")).unwrap();
    let want = [("grid".to_owned(), grid::<f32>()), ("half".to_owned(), grid::<f16>())];
    assert_eq!(stored, want);
    let zeros = Tensor::new(DType::F64, &[20, 50], vec![0; 8000]).unwrap();
    let packed = [("grid".to_owned(), grid::<f32>()), ("zeros".to_owned(), zeros)];
    assert_eq!(read_npz(fixture("packed.npz")).unwrap(), packed);

    let path = fresh("ours.npz");
    write_npz(&path, &packed).unwrap();
    assert_eq!(read_npz(&path).unwrap(), packed);
    let before = fs::read(&path).unwrap();
    let twice = [packed[0].clone(), packed[0].clone()];
    says(write_npz(&path, &twice), &["ours.npz: ", "two tensors", "`grid`"]);
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn safetensors_are_read_and_written() {
    let bf16s = [1.0, -2.0, 3.5].map(bf16::from_f64);
    let want = [("b".to_owned(), Tensor::from_values(&[3], &bf16s).unwrap())];
    assert_eq!(read_safetensors(fixture("bf16.safetensors")).unwrap(), want);

    let mut tensors: Vec<_> = read_safetensors(fixture("weights.safetensors")).unwrap();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let names: Vec<_> = tensors.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ip.0", "ip.1", "other.0", "remark"]);
    assert_eq!(tensors[0].1, grid::<f32>());
    assert_eq!(tensors[1].1, Tensor::from_values(&[2], &[0.5f64, -0.5]).unwrap());

    tensors.push(want[0].clone());
    let path = fresh("ours.safetensors");
    write_safetensors(&path, &tensors).unwrap();
    let mut read = read_safetensors(&path).unwrap();
    read.sort_by(|a, b| {
        tensors.iter().position(|t| t == a).cmp(&tensors.iter().position(|t| t == b))
    });
    assert_eq!(read, tensors);
    let twice = [want[0].clone(), want[0].clone()];
    says(write_safetensors(&path, &twice), &["ours.safetensors: ", "two tensors", "`b`"]);
    let reserved = [("__metadata__".to_owned(), grid::<f32>())];
    says(write_safetensors(&path, &reserved), &["`__metadata__`"]);
    says(write_safetensors("no/such", &tensors), &["no/such: No such file"]);
}

/// One cut or changed byte is read as something or refused, with the file's name.
#[test]
fn damaged_files_are_refused() {
    let names = ["f4.npy", "stored.npz", "packed.npz", "weights.safetensors", "bf16.safetensors"];
    for name in names {
        let whole = fs::read(fixture(name)).unwrap();
        let path = fresh(&format!("damaged-{name}"));
        let read = |bytes: &[u8]| {
            // Some file systems wait for the disk where a file's content is replaced.
            let _ = fs::remove_file(&path);
            fs::write(&path, bytes).unwrap();
            match name.rsplit_once('.').unwrap().1 {
                "npy" => read_npy(&path).map(|_| ()),
                "npz" => read_npz(&path).map(|_| ()),
                _ => read_safetensors(&path).map(|_| ()),
            }
        };
        read(&whole).unwrap();
        for end in 0..whole.len() {
            says(read(&whole[..end]), &[name]);
        }
        if !name.ends_with("npz") {
            says(read(&[&whole[..], &[0]].concat()), &[name]);
        }
        for at in 0..whole.len() {
            for value in [0, b'9', 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Err(error) = read(&changed) {
                    assert!(error.to_string().contains(name), "{at} {value}: {error}");
                }
            }
        }
    }
}

/// A file of a hundred bytes that claims to be as large as addresses go.
#[test]
fn absurd_sizes_are_refused_before_memory_is_asked_for() {
    let path = fresh("absurd.npy");
    for shape in ["(1099511627776,)", "(9223372036854775807,)", "(99999999999999999999,)"] {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        let length = u16::try_from(text.len()).unwrap().to_le_bytes();
        fs::write(&path, [b"\x93NUMPY\x01\0", &length[..], text.as_bytes()].concat()).unwrap();
        says(read_npy(&path), &["absurd.npy: "]);
    }
    fs::write(&path, b"\x93NUMPY\x02\0\xff\xff\xff\xff{").unwrap();
    says(read_npy(&path), &["absurd.npy: ", "4294967295"]);

    let path = fresh("absurd.safetensors");
    let file = |header: &str| {
        let length = (header.len() as u64).to_le_bytes();
        fs::write(&path, [&length[..], header.as_bytes()].concat()).unwrap();
        read_safetensors(&path)
    };
    fs::write(&path, [0xff; 16]).unwrap();
    says(read_safetensors(&path), &["absurd.safetensors: "]);
    let end = 1u64 << 42;
    let header =
        format!(r#"{{"a":{{"dtype":"F32","shape":[{}],"data_offsets":[0,{end}]}}}}"#, end / 4);
    says(file(&header), &["absurd.safetensors: ", "0 bytes of values"]);
    // Nine tensors whose lengths add up to the largest number there is.
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
    says(file(&format!("{{{}}}", fields.join(","))), &["absurd.safetensors: "]);

    // An empty archive whose end tells of a directory of 2³² members, with zip64's fields.
    let path = fresh("absurd.npz");
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
    says(read_npz(&path), &["absurd.npz: "]);
}

#[test]
fn blobs_take_tensors_of_any_type() {
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
    // Rounded once: by way of f32 it would be the even neighbour, 1.
    let tie = Tensor::from_values(&[1], &[1.0 + 2f64.powi(-11) + 2f64.powi(-40)]).unwrap();
    assert_eq!(tie.to_vec::<f16>().unwrap(), [f16::from_f64(1.0 + 2f64.powi(-10))]);
}

#[cfg(feature = "net")]
mod nets {
    use super::*;
    use cortado::{Net, proto};

    const NET: &str = r#"
        layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 } } }
        layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
          inner_product_param { num_output: 2 } }
        layer { name: "block.1/ip" type: "InnerProduct" bottom: "ip" top: "out"
          inner_product_param { num_output: 1 bias_term: false } }"#;

    fn net<T: Element>() -> Net<T, CpuDevice> {
        let definition = proto::parse_text(NET, "").unwrap();
        Net::builder(&CpuDevice::new()).build(&definition).unwrap()
    }

    fn values<T: Element>(net: &Net<T, CpuDevice>, param: usize) -> Vec<f64> {
        let blob = net.params()[param].blob();
        blob.data().unwrap().host().unwrap().iter().map(|value| value.to_f64()).collect()
    }

    fn copies<T: Element>() {
        let mut net = net::<T>();
        net.params()[2].blob().data_mut().unwrap().host_mut().unwrap().fill(T::from_f64(7.0));
        let tensors = read_safetensors(fixture("weights.safetensors")).unwrap();
        assert_eq!(net.copy_tensors_from(&tensors).unwrap(), ["ip"]);
        assert_eq!(values(&net, 0), GRID.map(|value| T::from_f64(value).to_f64()));
        assert_eq!(values(&net, 1), [0.5, -0.5]);
        assert_eq!(values(&net, 2), [7.0; 2]);
    }

    #[test]
    fn weights_are_copied_by_name_and_rounded() {
        copies::<f32>();
        copies::<f64>();
        copies::<f16>();
        copies::<bf16>();
    }

    #[test]
    fn weights_go_out_and_in() {
        let from = net::<bf16>();
        for (index, param) in from.params().iter().enumerate() {
            let mut data = param.blob().data_mut().unwrap();
            data.host_mut().unwrap().fill(bf16::from_f64(1.5 + index as f64));
        }
        let tensors = from.to_tensors().unwrap();
        let names: Vec<_> = tensors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ip.0", "ip.1", "block.1/ip.0"]);
        let path = fresh("net.safetensors");
        write_safetensors(&path, &tensors).unwrap();
        let mut to = net::<bf16>();
        let copied = to.copy_tensors_from(&read_safetensors(&path).unwrap()).unwrap();
        assert_eq!(copied, ["ip", "block.1/ip"]);
        assert_eq!(to.to_tensors().unwrap(), tensors);
    }

    #[test]
    fn weights_that_do_not_fit_change_nothing() {
        let mut net = net::<f32>();
        let before = net.to_tensors().unwrap();
        let named = |name: &str, shape: &[usize]| {
            let count: usize = shape.iter().product();
            (name.to_owned(), Tensor::from_values(shape, &vec![9.0f32; count]).unwrap())
        };
        let fits = named("block.1/ip.0", &[1, 2]);
        let (weights, bias) = (named("ip.0", &[2, 3]), named("ip.1", &[2]));
        let mut refused = |tensors: &[&(String, Tensor)], parts: &[&str]| {
            let tensors: Vec<_> = tensors.iter().copied().cloned().collect();
            let at_layer = [&["layer `ip`"], parts].concat();
            says(net.copy_tensors_from(&tensors), &at_layer);
            assert_eq!(net.to_tensors().unwrap(), before);
        };
        refused(&[&fits, &weights], &["`ip.1` is missing", "2 parameters"]);
        let turned = named("ip.0", &[3, 2]);
        refused(&[&turned, &bias, &fits], &["`ip.0`", "3 2 (6)", "2 3 (6)"]);
        refused(&[&weights, &bias, &named("ip.2", &[1])], &["`ip.2`", "too many"]);
        refused(&[&weights, &bias, &bias], &["`ip.1`", "twice"]);

        // Of no layer, or of no form that a parameter's name has.
        let others = ["ip.01", "ip.+1", "ip", "other.0", "ip.", ".0"].map(|name| named(name, &[1]));
        assert_eq!(net.copy_tensors_from(&others).unwrap(), [""; 0]);
    }
}
