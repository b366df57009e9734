//! Modules import only what `lib.rs` lists above them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The modules of the crate, bottom up.
fn modules() -> Vec<String> {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    let declared = lib.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")
    });
    declared.map(|rest| rest.split(';').next().unwrap().to_owned()).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file at or below `path`; unit tests, which may look anywhere, are left out.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries.flat_map(|entry| files(&entry.unwrap().path())).collect();
    }
    let code = path.extension().is_some_and(|extension| extension == "rs");
    let tests = path.file_name().is_some_and(|name| name == "tests.rs");
    if code && !tests { vec![path.to_owned()] } else { Vec::new() }
}

/// The modules that a file's code names after `crate::`, one by one or in a group.
fn imports(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let mut names = Vec::new();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    // Leaked: a test's few kilobytes, for names that outlive the joined text.
    let code: &'static str = Box::leak(code.into_boxed_str());
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => names.extend(group_heads(group)),
            None => names.extend(word(rest)),
        }
    }
    names
}

/// First words of the items of `{…}`, at its own depth.
fn group_heads(group: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut start = 0;
    let mut heads = Vec::new();
    for (at, byte) in group.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b',' | b'}' if depth == 0 => {
                heads.extend(word(group[start..at].trim_start()));
                start = at + 1;
                if byte == b'}' {
                    break;
                }
            }
            b'}' => depth -= 1,
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

#[test]
fn imports_are_found() {
    let text = "use crate::{a::{b, c}, d,\n e::F};\nlet x = crate::g::h();\n// crate::no\n";
    assert_eq!(imports(text), ["a", "d", "e", "g"]);
}

#[test]
fn every_file_belongs_to_a_module() {
    let modules = modules();
    for entry in fs::read_dir(source()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name).to_owned();
        assert!(["lib", "main"].contains(&&*module) || modules.contains(&module), "{name}");
    }
}

/// What talks to processors and drivers; kernels of a GPU are launched by safe calls.
#[test]
fn unsafe_code_stays_where_it_is_allowed() {
    for file in files(&source()) {
        let path = file.strip_prefix(source()).unwrap();
        let cuda = path.starts_with("device/cuda") && !path.starts_with("device/cuda/kernels");
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let allowed = code.filter(|line| line.contains("allow(unsafe_code)")).count();
        assert!(allowed == 0 || cuda || path.starts_with("host"), "{}", file.display());
        let block = text.contains("unsafe {") || text.contains("unsafe impl");
        assert!(!block || cuda || path.starts_with("host"), "{}", file.display());
    }
}

#[test]
fn imports_never_run_upward() {
    let modules = modules();
    assert!(modules.len() > 10, "{modules:?}");
    for (rank, module) in modules.iter().enumerate() {
        let folder = source().join(module);
        let file = source().join(format!("{module}.rs"));
        let own = [folder, file].into_iter().filter(|path| path.exists());
        for file in own.flat_map(|path| files(&path)) {
            let text = fs::read_to_string(&file).unwrap();
            for name in imports(&text) {
                let above = modules[rank + 1..].iter().any(|module| module == name);
                assert!(!above, "{}: `{module}` imports `{name}`", file.display());
            }
        }
    }
}
