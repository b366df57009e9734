//! The upgrade of NVIDIA's blobs, whose values are bytes, to Caffe's lists of numbers.

use super::change::Change;
use crate::{
    error::{Error, Result},
    proto::messages::{BlobProto, NetParameter, blob_proto::RawType},
};
use half::f16;

pub(super) fn upgrade(net: &mut NetParameter) -> Result<Vec<Change>> {
    let mut has_changed = false;
    for layer in &mut net.layer {
        let name = layer.name.as_deref().unwrap_or_default();
        for (index, blob) in layer.blobs.iter_mut().enumerate() {
            let expanded = expand(blob)
                .map_err(|error| error.context(format!("layer `{name}`, parameter {index}")))?;
            has_changed |= expanded;
        }
    }
    Ok(has_changed.then_some(Change::RawData).into_iter().collect())
}

/// Moves the values of the fields `raw_data` and `raw_diff` to `data` and `diff`, or to `double_data`
/// and `double_diff`, without rounding. Returns whether the blob had one of the fields.
pub(crate) fn expand(blob: &mut BlobProto) -> Result<bool> {
    let (data_type, diff_type) = (blob.raw_data_type(), blob.raw_diff_type());
    let (data, diff) = (blob.raw_data.take(), blob.raw_diff.take());
    let is_raw = data.is_some() || diff.is_some();
    if let Some(bytes) = data {
        blob.raw_data_type = None;
        expand_field("data", &bytes, data_type, &mut blob.data, &mut blob.double_data)?;
    }
    if let Some(bytes) = diff {
        blob.raw_diff_type = None;
        expand_field("diff", &bytes, diff_type, &mut blob.diff, &mut blob.double_diff)?;
    }
    Ok(is_raw)
}

/// Appends the values in `bytes` to `single` or `double`, which must be empty. `field` is the name
/// of the field without the prefix `raw_`.
fn expand_field(
    field: &str,
    bytes: &[u8],
    kind: RawType,
    single: &mut Vec<f32>,
    double: &mut Vec<f64>,
) -> Result<()> {
    if !single.is_empty() || !double.is_empty() {
        let reason = format!("both `raw_{field}` and `{field}` are set; expected one of them");
        return Err(Error::InvalidData(reason));
    }
    let rest = match kind {
        RawType::Double => {
            let (values, rest) = bytes.as_chunks();
            double.extend(values.iter().map(|bytes| f64::from_le_bytes(*bytes)));
            rest.len()
        }
        RawType::Float => {
            let (values, rest) = bytes.as_chunks();
            single.extend(values.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            rest.len()
        }
        RawType::Float16 => {
            let (values, rest) = bytes.as_chunks();
            single.extend(values.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()));
            rest.len()
        }
        RawType::Int | RawType::Uint => {
            let reason = format!("`raw_{field}` has integers; expected DOUBLE, FLOAT or FLOAT16");
            return Err(Error::InvalidData(reason));
        }
    };
    if rest > 0 {
        let len = bytes.len();
        let reason = format!("`raw_{field}` has {len} bytes, which end within a value");
        return Err(Error::InvalidData(reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::messages::LayerParameter;

    fn blob(kind: Option<RawType>, raw_data: &[u8]) -> BlobProto {
        let raw_data_type = kind.map(|kind| kind as i32);
        BlobProto { raw_data_type, raw_data: Some(raw_data.into()), ..Default::default() }
    }

    fn net(blobs: Vec<BlobProto>) -> NetParameter {
        let layer = LayerParameter { name: Some("conv".into()), blobs, ..Default::default() };
        NetParameter { layer: vec![layer], ..Default::default() }
    }

    /// The bytes are written by hand from the IEEE formats: sign, exponent and fraction.
    #[test]
    fn raw_values_become_numbers_without_rounding() {
        let mut net = net(vec![
            blob(Some(RawType::Float16), &[0x00, 0x3C, 0x01, 0x00, 0xFF, 0xFB]),
            blob(Some(RawType::Float), &[0, 0, 0x80, 0x3F, 1, 0, 0, 0]),
            blob(None, &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F]),
            BlobProto { data: vec![3.0], ..Default::default() },
        ]);
        assert_eq!(upgrade(&mut net).unwrap(), [Change::RawData]);
        let [half, single, double, plain] = &net.layer[0].blobs[..] else { unreachable!() };
        assert_eq!(half.data, [1.0, 2.0_f32.powi(-24), -65504.0]);
        assert_eq!(single.data, [1.0, f32::from_bits(1)]);
        assert_eq!((&double.data[..], &double.double_data[..]), (&[][..], &[1.0][..]));
        assert_eq!(plain.data, [3.0]);
        assert!(net.layer[0].blobs.iter().all(|blob| blob.raw_data.is_none()));
        assert_eq!(upgrade(&mut net).unwrap(), []);
    }

    #[test]
    fn raw_gradients_become_numbers_without_rounding() {
        let half = BlobProto {
            data: vec![5.0, 6.0],
            raw_diff_type: Some(RawType::Float16 as i32),
            raw_diff: Some(vec![0x00, 0xBC, 0x00, 0x38]),
            ..Default::default()
        };
        let double = BlobProto {
            raw_diff: Some(vec![0, 0, 0, 0, 0, 0, 0x10, 0x40]),
            ..blob(Some(RawType::Float), &[0, 0, 0x80, 0x3F])
        };
        let mut net = net(vec![half, double]);
        assert_eq!(upgrade(&mut net).unwrap(), [Change::RawData]);
        let [half, double] = &net.layer[0].blobs[..] else { unreachable!() };
        assert_eq!((&half.data[..], &half.diff[..]), (&[5.0, 6.0][..], &[-1.0, 0.5][..]));
        assert_eq!((&double.data[..], &double.double_diff[..]), (&[1.0][..], &[4.0][..]));
        assert_eq!(upgrade(&mut net).unwrap(), []);
    }

    #[test]
    fn raw_values_that_are_no_numbers_name_the_layer_and_the_parameter() {
        let both = BlobProto { data: vec![1.0], ..blob(Some(RawType::Float), &[0; 4]) };
        let both_diffs =
            BlobProto { diff: vec![1.0], raw_diff: Some(vec![0; 8]), ..Default::default() };
        for (blob, want) in [
            (blob(Some(RawType::Float16), &[0; 3]), "`raw_data` has 3 bytes, which end within a"),
            (blob(Some(RawType::Uint), &[0; 4]), "`raw_data` has integers; expected DOUBLE, "),
            (both, "both `raw_data` and `data` are set"),
            (both_diffs, "both `raw_diff` and `diff` are set"),
        ] {
            let mut net = net(vec![BlobProto::default(), blob]);
            let error = upgrade(&mut net).unwrap_err().to_string();
            let start = "layer `conv`, parameter 1: ";
            assert!(error.starts_with(start) && error.contains(want), "{error}");
        }
    }
}
