//! Tests of flags that several subcommands of the command share, in Caffe's and in clap's spelling.

use crate::command::{Folder, NET, SOLVER};

/// Layer of an unknown type. A net includes the layer only at level 2 or higher, and only if both
/// stages `a` and `b` are set.
const UNKNOWN_LAYER: &str = "layer { name: \"deep\" type: \"Deep\" \
    include { min_level: 2 stage: \"a\" stage: \"b\" } }";

#[test]
fn level_and_stage_flags_select_the_layers_of_a_net() {
    let folder = Folder::new("stages");
    folder.run("train --solver solver.prototxt").succeeded();
    folder.write("net.prototxt", format!("{NET}{UNKNOWN_LAYER}"));
    for subcommand in [
        "train --solver solver.prototxt",
        "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 1",
        "time --model net.prototxt --iterations 1",
        "time --model net.prototxt --iterations 1 --phase TEST",
    ] {
        for flags in ["", "-level 2", "-stage=a,b", "-level=1 -stage a,b", "--level 2 --stage a"] {
            folder.run(&format!("{subcommand} {flags}")).succeeded();
        }
        for flags in ["-level=2 -stage=a,b", "--level 3 --stage b --stage a"] {
            folder.run(&format!("{subcommand} {flags}")).failed_with(&["layer `deep`", "`Deep`"]);
        }
    }
    let is_drawn = |flags: &str| {
        folder.run(&format!("draw net.prototxt -o net.svg {flags}"));
        String::from_utf8(folder.read("net.svg")).unwrap().contains(">deep<")
    };
    assert!(is_drawn("--level 2 --stage a,b") && !is_drawn("--level 2"));

    // `--stage` adds stages to those of the solver definition, and `--level` replaces the
    // definition's level.
    folder.write("solver.prototxt", format!("{SOLVER} train_state {{ level: 2 stage: \"a\" }}"));
    let train = |flags: &str| folder.run(&format!("train --solver solver.prototxt {flags}"));
    train("").succeeded();
    train("--stage b").failed_with(&["train net: net.prototxt:", "layer `deep`"]);
    train("--stage b --level 0").succeeded();
}

#[test]
fn a_missing_gpu_is_an_error_that_names_the_devices() {
    let folder = Folder::new("gpu");
    folder.run("train --solver solver.prototxt").succeeded();
    let parts = ["--gpu: no GPU found, only the device cpu", "omit --gpu"];
    for args in [
        "train -solver solver.prototxt -gpu 0",
        "train -solver solver.prototxt -gpu all",
        "train -solver solver.prototxt --gpu=0,1",
        "test -model net.prototxt -weights lenet_iter_8.caffemodel -gpu 0",
        "time -model net.prototxt -gpu=0",
        "device_query -gpu 0",
        "device-query --gpu all",
    ] {
        folder.run(args).failed_with(&parts);
    }
    let time = "time --model net.prototxt";
    folder.run(&format!("{time} --gpu first")).refused_with(&["'first'", "number"]);
    folder.run(&format!("{time} --gpu 0 --device cpu")).refused_with(&["cannot be used with"]);

    // Most of Caffe's solver definitions set `solver_mode` to GPU.
    folder.write("solver.prototxt", format!("{SOLVER} solver_mode: GPU"));
    let result = folder.run("train --solver solver.prototxt").succeeded();
    assert!(
        result.log.iter().any(|line| line.contains("solver_mode") && line.contains("--device"))
    );
}

#[test]
fn gemm_flags_with_the_cpu_are_an_error() {
    let folder = Folder::new("gemm-flags");
    folder.run("train --solver solver.prototxt").succeeded();
    for subcommand in [
        "train --solver solver.prototxt",
        "test --model net.prototxt --weights lenet_iter_8.caffemodel",
        "time --model net.prototxt --device cpu",
    ] {
        for flags in [
            "--gemm-backend cublas",
            "-gemm_backend=builtin",
            "--allow-tf32",
            "--products own -tf32",
            "--cuda-graphs",
        ] {
            let backend = flags.contains("backend") || flags.contains("products");
            let option = match flags {
                "--cuda-graphs" => "--cuda-graphs:",
                _ if backend => "--gemm-backend:",
                _ => "--allow-tf32:",
            };
            folder.run(&format!("{subcommand} {flags}")).failed_with(&[option, "cpu", "--gpu"]);
        }
    }
    let time = "time --model net.prototxt";
    folder.run(&format!("{time} --gemm-backend mkl")).refused_with(&["'mkl'", "--gemm-backend"]);
    folder
        .run(&format!("{time} --allow-tf32 --device abacus"))
        .failed_with(&["device `abacus`", "cpu"]);
    folder.run(&format!("{time} --allow-tf32 --gpu 0")).failed_with(&["no GPU found"]);
}

#[test]
fn device_query_lists_devices_with_properties() {
    let folder = Folder::new("devices");
    let [all, cpu] = ["device_query", "device-query --device cpu"];
    let out = folder.run(all).succeeded().out;
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("cpu"));
    let properties: Vec<_> = lines.map(|line| line.trim().split("  ").next().unwrap()).collect();
    for property in ["vector instructions", "address space", "host threads"] {
        assert!(properties.contains(&property), "{out}");
    }
    assert_eq!(folder.run(cpu).succeeded().out, out);
    folder.run("device-query --device abacus").failed_with(&["unknown device `abacus`", "cpu"]);
}

/// Returns the number of host threads that `cortado device-query` reports.
#[cfg(target_os = "linux")]
fn host_threads(command: &mut std::process::Command) -> usize {
    let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = out.lines().find(|line| line.trim().starts_with("host threads")).expect(&out);
    line.split_whitespace().last().unwrap().parse().unwrap()
}

/// `taskset` sets the affinity mask of the command.
#[cfg(target_os = "linux")]
#[test]
fn the_default_number_of_threads_respects_the_affinity_mask() {
    let folder = Folder::new("affinity");
    let query = folder.command("device-query --device cpu");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = list.trim().split(['-', ',']).next().unwrap();
    let mut bound = std::process::Command::new("taskset");
    bound.args(["-c", first]).arg(query.get_program()).args(query.get_args());
    assert_eq!(host_threads(&mut bound), 1);
    let all = host_threads(&mut folder.command("device-query --device cpu"));
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!((1..=processors).contains(&all), "{all} threads on {processors} processors");
}

/// Threads without work do not poll if there are more threads than processors. The processor time
/// of all threads of the command shows whether threads poll.
#[cfg(target_os = "linux")]
#[test]
fn more_threads_than_processors_do_not_increase_the_processor_time() {
    let folder = Folder::new("oversubscription");
    let net = "name: 'n' layer { name: 'data' type: 'DummyData' top: 'x' dummy_data_param { \
        shape { dim: 8 dim: 16 dim: 24 dim: 24 } } } layer { name: 'c' type: 'Convolution' \
        bottom: 'x' top: 'y' convolution_param { num_output: 32 kernel_size: 3 } } \
        layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'y' }";
    folder.write("net.prototxt", net);
    let seconds = |threads: usize| {
        let time = format!("time --model net.prototxt --iterations 60 --threads {threads}");
        let command = folder.command(&time);
        // `times` of the shell prints the processor time of the shell, then of its children.
        let script = "\"$@\" >/dev/null 2>&1 && times";
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", script, "bash"]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(command.get_current_dir().unwrap());
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let of_children = text.lines().nth(1).unwrap().split_whitespace();
        let parse = |time: &str| {
            let (minutes, seconds) = time.trim_end_matches('s').split_once('m').unwrap();
            60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
        };
        of_children.map(parse).sum::<f64>()
    };
    let (one, many) = (seconds(1), seconds(64));
    // If 63 threads polled for 100 µs after each of 180 kernels, polling would take a second.
    assert!(many < 1.5 * one + 0.3, "{one} s on one thread, {many} s on 64 threads");
}

#[test]
fn environment_variable_limits_the_instruction_set() {
    let folder = Folder::new("instruction-set");
    let query = |limit: &str| {
        folder.command("device-query --device cpu").env("CORTADO_SIMD", limit).output().unwrap()
    };
    let portable = String::from_utf8(query("portable").stdout).unwrap();
    assert!(portable.contains("vector instructions"), "{portable}");
    assert!(!portable.contains("AVX"), "{portable}");
    let avx2 = String::from_utf8(query("avx2").stdout).unwrap();
    assert!(!avx2.contains("AVX-512"), "{avx2}");
    let unknown = query("sse9");
    assert_eq!(unknown.status.code(), Some(1));
    let error = String::from_utf8(unknown.stderr).unwrap();
    for part in ["CORTADO_SIMD", "expected one of portable, avx2, avx512", "found `sse9`"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn quiet_and_verbose_set_the_log_level() {
    let folder = Folder::new("log-length");
    let quiet_run = folder.run("-q train --solver solver.prototxt").succeeded();
    assert_eq!((&quiet_run.log[..], &quiet_run.out[..]), (&[][..], ""));
    let test = "test --model net.prototxt --weights lenet_iter_8.caffemodel --iterations 2";
    let quiet_run = folder.run(&format!("{test} --quiet")).succeeded();
    assert!(quiet_run.log.is_empty() && quiet_run.out.starts_with("Loss: "), "{quiet_run:#?}");

    let default_run = folder.run(test).succeeded();
    let verbose_run = folder.run(&format!("{test} -v")).succeeded();
    assert!(default_run.log.iter().all(|line| verbose_run.log.contains(line)));
    for line in [
        "Creating Layer ip",
        "ip <- data",
        "ip -> ip",
        "Top shape: 8 10 (80)",
        "    with loss weight 1",
        "ip needs backward computation.",
        "data does not need backward computation.",
        "This network produces output accuracy",
        "Network initialization done.",
    ] {
        assert!(verbose_run.log.iter().any(|logged| logged == line), "{line}: {verbose_run:#?}");
        assert!(!default_run.log.iter().any(|logged| logged == line), "{line}: {default_run:#?}");
    }
    folder.run(&format!("{test} -q -v")).refused_with(&["cannot be used with"]);
    // The command logs errors and warnings even with --quiet.
    folder.run("--quiet train --solver gone").failed_with(&["cortado: gone: No such file"]);
    folder.write_replaced("solver.prototxt", SOLVER, "max_iter: 8", "max_iter: 0");
    let result = folder.run("--quiet train --solver solver.prototxt").succeeded();
    assert_eq!(result.log, ["solver.prototxt: max_iter is 0, so nothing is trained"]);
}

/// The simulated device has a separate memory, so training copies data and weights.
#[test]
fn training_on_the_simulated_device_copies_data_and_gives_the_weights_of_the_cpu() {
    let folder = Folder::new("simulated");
    let train = |device: &str| {
        let args = format!("train --solver solver.prototxt --ledger --device {device}");
        (folder.run(&args).succeeded().out, folder.read("lenet_iter_8.caffemodel"))
    };
    let (report, weights) = train("cpu");
    assert_eq!(report, "no copies between host and device, no fallbacks to the host\n");
    for device in ["simulated", "mirror"] {
        let (report, simulated_weights) = train(device);
        assert!(report.contains("(direct access)") && report.contains(" on simulated"), "{report}");
        assert!(simulated_weights == weights, "{device}");
    }
    let query = folder.run("device-query --device simulated").succeeded().out;
    assert!(query.starts_with("simulated\n") && query.contains("separate"), "{query}");
    let time = "time --model net.prototxt --device";
    folder.run(&format!("{time} simulatd")).failed_with(&["did you mean `simulated`?"]);
    let tf32 = format!("{time} simulated --allow-tf32");
    folder.run(&tf32).failed_with(&["device `simulated`", "TF32", "NVIDIA GPUs only"]);
    let graphs = format!("{time} simulated --cuda-graphs");
    folder.run(&graphs).failed_with(&["device `simulated`", "CUDA graphs", "NVIDIA GPUs only"]);
}
