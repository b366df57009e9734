//! Tests of `cortado convert`.

use crate::command::Folder;
use cortado::{
    proto::{
        self, BlobProto, BlobShape, LayerParameter, NetParameter, V0LayerParameter,
        V1LayerParameter, blob_proto::RawType,
    },
    tensor_io::{self, Tensor},
};
use std::{fs, path::Path};

/// Returns the names, shapes and bits of all parameters of a file.
fn parameters(path: &Path) -> Vec<(String, Vec<usize>, Vec<u64>)> {
    let tensors = match path.extension().unwrap().to_str().unwrap() {
        "npz" => tensor_io::read_npz(path).unwrap(),
        "safetensors" => tensor_io::read_safetensors(path).unwrap(),
        _ => {
            let net = proto::read_trained_net(path).unwrap();
            let blobs = net.layer.iter().flat_map(|layer| {
                let name = layer.name().to_owned();
                let named = move |(i, blob)| (format!("{name}.{i}"), blob);
                layer.blobs.iter().enumerate().map(named)
            });
            let parameter = |(name, blob): (String, &BlobProto)| {
                let dim = blob.shape.as_ref().map_or(&[][..], |shape| &shape.dim);
                let floats = blob.data.iter().map(|value| u64::from(value.to_bits()));
                let doubles = blob.double_data.iter().map(|value| value.to_bits());
                let shape = dim.iter().map(|&extent| extent as usize).collect();
                (name, shape, floats.chain(doubles).collect())
            };
            return blobs.map(parameter).collect();
        }
    };
    let parameter = |(name, tensor): (String, Tensor)| {
        let bits = tensor.bytes().chunks_exact(tensor.dtype().size()).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        });
        (name, tensor.shape().to_vec(), bits.collect())
    };
    tensors.into_iter().map(parameter).collect()
}

fn blob(dim: &[i64], data: &[f32], double_data: &[f64]) -> BlobProto {
    let shape = (!dim.is_empty()).then(|| BlobShape { dim: dim.to_vec() });
    let (data, double_data) = (data.to_vec(), double_data.to_vec());
    BlobProto { shape, data, double_data, ..Default::default() }
}

/// A net with all kinds of values: a NaN with a payload, a subnormal number, doubles, and a
/// parameter without axes.
fn net() -> NetParameter {
    let nan = f32::from_bits(0x7FC1_2345);
    let layer = |name: &str, blobs: &[BlobProto]| LayerParameter {
        name: Some(name.into()),
        r#type: Some("Convolution".into()),
        blobs: blobs.to_vec(),
        ..Default::default()
    };
    let conv = [blob(&[2, 1, 1, 2], &[1.5, nan, -0.0, 1e-45], &[]), blob(&[2], &[0.1, 0.2], &[])];
    let layer = vec![
        layer("conv1.branch", &conv),
        layer("relu", &[]),
        layer("a", &[blob(&[3], &[], &[0.1, f64::MIN_POSITIVE, f64::NEG_INFINITY])]),
        layer("scalar", &[blob(&[], &[7.0], &[])]),
    ];
    NetParameter { name: Some("net".into()), layer, ..Default::default() }
}

#[test]
fn conversions_and_conversions_back_keep_every_bit() {
    let folder = Folder::new("convert-formats");
    proto::write_trained_net(folder.path("a.caffemodel"), &net()).unwrap();
    let want = parameters(&folder.path("a.caffemodel"));
    assert_eq!(want.len(), 4);
    let by_name = |mut parameters: Vec<_>| {
        parameters.sort();
        parameters
    };
    let want = by_name(want);
    let formats: &[&str] = match cfg!(feature = "hdf5") {
        true => &["caffemodel", "npz", "safetensors", "caffemodel.h5"],
        false => &["caffemodel", "npz", "safetensors"],
    };
    for from in formats {
        if *from != "caffemodel" {
            let result = folder.run(&format!("convert a.caffemodel a.{from}")).succeeded();
            assert_eq!(result.out, format!("a.{from}: 4 arrays\n"));
        }
        for to in formats.iter().filter(|to| *to != from) {
            folder.run(&format!("convert a.{from} b.{to}")).succeeded();
            let got = by_name(parameters(&folder.path(&format!("b.{to}"))));
            // A parameter without axes also stays without axes in HDF5.
            assert_eq!(got, want, "{from} to {to}");
        }
    }
}

#[test]
fn weights_that_cannot_be_converted_are_refused_and_the_output_stays() {
    let folder = Folder::new("convert-refused");
    proto::write_trained_net(folder.path("a.caffemodel"), &net()).unwrap();
    let suffixes = "unknown suffix; expected .caffemodel, .h5, .safetensors or .npz";
    folder.run("convert a.caffemodel a.onnx").failed_with(&["a.onnx: ", suffixes]);
    folder.run("convert a a.npz").failed_with(&["a: ", suffixes]);
    folder.run("convert a.caffemodel b.caffemodel").failed_with(&["the same format"]);
    assert!(!folder.path("b.caffemodel").exists());

    folder.write("b.caffemodel", "old");
    let tensor = || Tensor::from_values(&[1], &[1.0_f32]).unwrap();
    for (names, want) in [
        (&["conv1.weight"][..], "tensor `conv1.weight`: expected a layer's name and an index"),
        (&["weight"], "tensor `weight`: expected a layer's name and an index"),
        (&["a.0", "b.1"], "tensor `b.0` is missing"),
        (&["a.99"], "tensor `a.0` is missing"),
        (&["a.0", "a.18446744073709551615"], "tensor `a.1` is missing"),
    ] {
        let tensors: Vec<_> = names.iter().map(|name| (name.to_string(), tensor())).collect();
        tensor_io::write_npz(folder.path("names.npz"), &tensors).unwrap();
        folder.run("convert names.npz b.caffemodel").failed_with(&["names.npz: ", want]);
    }
    assert_eq!(fs::read_to_string(folder.path("b.caffemodel")).unwrap(), "old");
}

/// Half-precision parameters of NVIDIA's fork, in layers of each of Caffe's formats. The layer of
/// the V1 format has a type number that Caffe does not declare.
#[test]
fn half_precision_parameters_of_old_and_new_layers_are_converted_and_inspected() {
    let folder = Folder::new("convert-half");
    // The `f16` values 1.5 and 2⁻²⁴, the smallest positive number.
    let half = BlobProto {
        shape: Some(BlobShape { dim: vec![2] }),
        raw_data_type: Some(RawType::Float16 as i32),
        raw_data: Some(vec![0x00, 0x3E, 0x01, 0x00]),
        ..Default::default()
    };
    let (name, blobs) = (Some("fork".to_owned()), vec![half]);
    let layer = LayerParameter {
        name: name.clone(),
        r#type: Some("Fork".into()),
        blobs: blobs.clone(),
        ..Default::default()
    };
    let new = NetParameter { layer: vec![layer], ..Default::default() };
    let layer = V1LayerParameter {
        name: name.clone(),
        r#type: Some(99),
        blobs: blobs.clone(),
        ..Default::default()
    };
    let v1 = NetParameter { layers: vec![layer], ..Default::default() };
    let layer = V0LayerParameter { name, r#type: Some("conv".into()), blobs, ..Default::default() };
    let layer = V1LayerParameter { layer: Some(layer), ..Default::default() };
    let v0 = NetParameter { layers: vec![layer], ..Default::default() };
    for (file, net) in [("new", new), ("v1", v1), ("v0", v0)] {
        proto::write_binary(folder.path(&format!("{file}.caffemodel")), &net).unwrap();
        folder.run(&format!("convert {file}.caffemodel {file}.npz")).succeeded();
        let tensors = tensor_io::read_npz(folder.path(&format!("{file}.npz"))).unwrap();
        let [(name, tensor)] = &tensors[..] else { panic!("{tensors:?}") };
        assert_eq!((&**name, &tensor.shape()[..]), ("fork.0", &[2][..]));
        assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.5, 2.0_f32.powi(-24)]);
        let report = folder.run(&format!("inspect {file}.caffemodel")).succeeded().out;
        assert!(report.contains("fork.0") && report.contains("1.5"), "{report}");
    }
}
