//! Results of `cortado time` as JSON.

use super::{
    measurements::{Measurements, Row, median},
    roofline::Roofline,
};
use cortado::{
    ledger::{Diagnosis, Finding, Place, TransferCause},
    memory::MemoryUsage,
    net::MemoryUse,
};
use serde_json::{Map, Value, json};

/// Returns the measured times in seconds, the memory in bytes, and the results of `--roofline` and
/// `--doctor`, if any.
pub(super) fn document(
    times: &Measurements,
    memory: &MemoryUse,
    usage: Option<MemoryUsage>,
    roofline: Option<&Roofline>,
    diagnosis: Option<&Diagnosis>,
) -> Value {
    let Measurements { rows, passes, data_wait, kernels, gradient_sums } = times;
    let passes_count = passes[0].len().max(1) as f64;
    let mut object = Map::new();
    let mut add = |name: &str, value: Value| object.insert(name.to_owned(), value);
    add("layers", rows.iter().map(layer).collect());
    add("forward_seconds", json!(median(&passes[0])));
    add("backward_seconds", json!(median(&passes[1])));
    let wait = data_wait.map(|wait| wait.as_secs_f64() / passes_count);
    add("data_wait_seconds", json!(wait));
    let MemoryUse { activations, gradients, params, param_gradients } = *memory;
    add(
        "memory_bytes",
        json!({
            "activations": activations, "gradients": gradients, "parameters": params,
            "parameter_gradients": param_gradients,
        }),
    );
    if let Some(pool) = usage.and_then(|usage| usage.pool) {
        let peaks = json!({ "used": pool.peak_used, "reserved": pool.peak_reserved });
        add("peak_device_memory_bytes", peaks);
    }
    if let Some(kernels) = kernels {
        add("kernels", kernels.to_json());
    }
    if let Some((processes, seconds)) = gradient_sums {
        let sums = json!({ "processes": processes, "seconds": median(seconds) });
        add("gradient_sums", sums);
    }
    if let Some(roofline) = roofline {
        add("roofline", roofline.records().iter().map(|record| record.to_json()).collect());
    }
    if let Some(diagnosis) = diagnosis {
        add(
            "doctor",
            json!({
                "findings": diagnosis.findings().iter().map(finding).collect::<Value>(),
                "transfers": diagnosis.transfers().iter().map(transfer).collect::<Value>(),
            }),
        );
    }
    Value::Object(object)
}

fn layer(row: &Row) -> Value {
    let [forward_on_device, backward_on_device] = row.device.each_ref().map(|times| median(times));
    json!({
        "name": row.name, "type": row.kind, "tops": row.tops, "parameters": row.parameters,
        "fused_into_preceding_layer": row.forward.is_empty(),
        "forward_seconds": median(&row.forward), "backward_seconds": median(&row.backward),
        "forward_device_seconds": forward_on_device, "backward_device_seconds": backward_on_device,
        "forward_flops": row.forward_flops, "backward_flops": row.backward_flops,
    })
}

fn finding(finding: &Finding) -> Value {
    let Finding { waste, device, memory, place: at, other, count, copies, bytes, time } = finding;
    json!({
        "kind": waste.to_string(), "remedy": waste.remedy(), "device": device,
        "memory": memory.as_deref(), "place": place(at), "other_place": other.as_ref().map(place),
        "count": count, "copies": copies, "bytes": bytes, "seconds": time.as_secs_f64(),
    })
}

fn transfer(transfer: &TransferCause) -> Value {
    let TransferCause { kind, device, memory, reader, writer, count, bytes, time } = transfer;
    json!({
        "kind": kind.to_string(), "device": device, "memory": memory.as_deref(),
        "reader": place(reader), "writer": writer.as_ref().map(place),
        "count": count, "bytes": bytes, "seconds": time.as_secs_f64(),
    })
}

/// Returns a place in the program as JSON: a kernel call, or an access outside kernels, which has
/// neither a kernel nor an element type.
fn place(place: &Place) -> Value {
    let Place { call, is_fallback, layer } = place;
    let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    json!({
        "kernel": text(call.name), "element": text(call.element), "fallback": is_fallback,
        "layer": layer.as_ref().map(|layer| &*layer.name),
        "pass": layer.as_ref().map(|layer| layer.pass.to_string()),
        "file": call.site.file(), "line": call.site.line(), "column": call.site.column(),
    })
}
