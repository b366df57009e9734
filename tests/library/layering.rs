//! Tests of the layering of modules. A module must import only modules of lower layers, and only
//! the permitted modules may contain unsafe code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, iter,
    path::{Path, PathBuf},
};

/// Segments of a path such as `crate::memory::View`.
type ModulePath = Vec<String>;

/// Source files of a crate, except unit tests, keyed by module path.
struct Sources {
    files: BTreeMap<ModulePath, File>,
}

struct File {
    path: PathBuf,
    /// Text of the source file without comments, literals and items under `#[cfg(test)]`.
    code: String,
    /// Absolute paths of the items that the file imports or names, without re-exports.
    imports: BTreeSet<ModulePath>,
    /// Absolute paths of re-exported items, keyed by their names in this module.
    reexports: BTreeMap<String, ModulePath>,
}

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

impl Sources {
    fn read() -> Self {
        Self::read_folder(&source_folder())
    }

    fn read_folder(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        for path in rust_files(folder) {
            let relative_path = path.strip_prefix(folder).unwrap().with_extension("");
            let mut module = vec![String::from("crate")];
            module.extend(relative_path.iter().map(|part| part.to_str().unwrap().to_owned()));
            if ["mod", "lib", "main"].contains(&&**module.last().unwrap()) {
                module.pop();
            }
            let code = code(&fs::read_to_string(&path).unwrap());
            let (imports, reexports) = (BTreeSet::new(), BTreeMap::new());
            files.insert(module, File { path, code, imports, reexports });
        }
        let modules: BTreeSet<ModulePath> = files.keys().cloned().collect();
        for (module, file) in &mut files {
            (file.imports, file.reexports) = named_paths(&file.code, module, &modules);
        }
        Self { files }
    }

    /// Returns the module whose file defines the item `path`, even if `path` names a re-export of
    /// the item.
    fn defining_module(&self, path: &[String]) -> Option<&ModulePath> {
        let mut path = path.to_vec();
        // No chain of re-exports is longer than eight steps.
        for _ in 0..8 {
            let module_len =
                (1..=path.len()).rev().find(|&len| self.files.contains_key(&path[..len]))?;
            let (module, file) = self.files.get_key_value(&path[..module_len])?;
            match path.get(module_len).and_then(|item| file.reexports.get(item)) {
                Some(target) => path = [target, &path[module_len + 1..]].concat(),
                None => return Some(module),
            }
        }
        None
    }

    fn dependencies(&self) -> BTreeMap<&ModulePath, BTreeSet<&ModulePath>> {
        let targets_of = |(module, file): (&'_ ModulePath, &'_ File)| {
            let targets = file.imports.iter().filter_map(|path| self.defining_module(path));
            targets.filter(|target| *target != module).cloned().collect::<BTreeSet<_>>()
        };
        self.files
            .iter()
            .map(|(module, file)| {
                let targets = targets_of((module, file));
                let modules =
                    targets.iter().map(|target| self.files.get_key_value(target).unwrap().0);
                (module, modules.collect())
            })
            .collect()
    }
}

/// Returns every Rust file at or below `path`, without unit tests, which may import any module.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        return entries.flat_map(|entry| rust_files(&entry.unwrap().path())).collect();
    }
    let is_code = path.extension().is_some_and(|extension| extension == "rs");
    let is_test = path.file_name().is_some_and(|name| name == "tests.rs" || name == "testing.rs");
    if is_code && !is_test { vec![path.to_owned()] } else { Vec::new() }
}

/// Removes comments, string literals and items under `#[cfg(test)]` from Rust source code.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap().replace("pub(in ", "("));
    let mut code = without_strings(&lines.collect::<Vec<_>>().join("\n"));
    while let Some(start) = code.find("#[cfg(test)]").or_else(|| code.find("#[cfg(all(test")) {
        let item = &code[start..];
        let end = match (item.find(';'), item.find('{')) {
            (Some(end), brace) if brace.is_none_or(|brace| end < brace) => end + 1,
            (_, Some(brace)) if item[..brace].contains("use ") => item.find(';').unwrap() + 1,
            (_, Some(brace)) => brace + 1 + closing_brace(&item[brace + 1..]) + 1,
            (_, None) => item.len(),
        };
        code.replace_range(start..start + end, "");
    }
    without_inline_modules(code)
}

/// Replaces `super` in inline modules by `self`, because `super` in an inline module names the
/// module of the file.
fn without_inline_modules(code: String) -> String {
    let Some(start) = code.match_indices("mod ").find_map(|(start, keyword)| {
        let name = &code[start + keyword.len()..];
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        name[end..].starts_with(" {").then_some(start + keyword.len() + end + 2)
    }) else {
        return code;
    };
    let end = start + closing_brace(&code[start..]);
    let block = code[start..end].replace("super::", "self::");
    let rest = without_inline_modules(code[end..].to_owned());
    format!("{}{block}{rest}", &code[..start])
}

fn without_strings(text: &str) -> String {
    // A quote as a character literal does not start a string.
    let text = text.replace("'\"'", "").replace("b'\\\"'", "");
    let mut pieces = text.split('"');
    let mut code = String::from(pieces.next().unwrap_or_default());
    while let Some(mut literal) = pieces.next() {
        while literal.ends_with('\\') && !literal.ends_with("\\\\") {
            literal = pieces.next().unwrap_or_default();
        }
        code.push_str(pieces.next().unwrap_or_default());
    }
    code.replace("'{'", "").replace("'}'", "").replace("';'", "")
}

/// Returns the offset of the brace that closes the block whose opening brace precedes `text`.
fn closing_brace(text: &str) -> usize {
    let mut depth = 0;
    for (offset, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => return offset,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the absolute paths that the source code of `module` imports or names, and the re-exports
/// of `module`.
fn named_paths(
    code: &str,
    module: &ModulePath,
    modules: &BTreeSet<ModulePath>,
) -> (BTreeSet<ModulePath>, BTreeMap<String, ModulePath>) {
    let (mut imports, mut reexports) = (BTreeSet::new(), BTreeMap::new());
    let mut rest = String::new();
    let mut statements = code;
    while let Some((before, is_reexport, tree, after)) = next_use(statements) {
        rest.push_str(before);
        for (path, name) in flatten(tree) {
            let Some(path) = absolute_path(&path, module, modules) else { continue };
            if is_reexport {
                reexports.insert(name, path);
            } else {
                imports.insert(path);
            }
        }
        statements = after;
    }
    rest.push_str(statements);
    let is_separator = |c: char| !(c.is_alphanumeric() || "_:$".contains(c));
    for word in rest.split(is_separator).filter(|word| word.contains("::")) {
        let path: ModulePath = word.trim_matches(':').split("::").map(str::to_owned).collect();
        imports.extend(absolute_path(&path, module, modules));
    }
    (imports, reexports)
}

/// Finds the next `use` declaration in `code`. Returns the text before the declaration, whether the
/// declaration is a re-export, its import tree, and the text after the declaration.
fn next_use(code: &str) -> Option<(&str, bool, &str, &str)> {
    let starts = code.match_indices("use ").map(|(start, _)| start);
    let start = starts.into_iter().find(|&start| {
        let before = code[..start].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with(['\n', ';', '{', '}', ')']) || before.ends_with("pub")
    })?;
    let end = start + code[start..].find(';')?;
    let line = &code[code[..start].rfind('\n').map_or(0, |at| at + 1)..start];
    let is_reexport = line.trim_start().starts_with("pub");
    Some((&code[..start], is_reexport, &code[start + 4..end], &code[end + 1..]))
}

/// Returns the paths in an import tree such as `a::{b, c as d}`, each with its name in the
/// importing module.
fn flatten(tree: &str) -> Vec<(ModulePath, String)> {
    let tree = tree.trim();
    if let Some((prefix, group)) = tree.split_once('{') {
        let group = &group[..closing_brace(group)];
        let inner = split_group(group).into_iter().flat_map(flatten);
        let prefix = segments(prefix.trim_end_matches("::"));
        return inner
            .map(|(path, name)| {
                let is_self = path == ["self"];
                let name = if is_self { prefix.last().cloned().unwrap_or_default() } else { name };
                let path = if is_self { prefix.clone() } else { [prefix.clone(), path].concat() };
                (path, name)
            })
            .collect();
    }
    let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree));
    let name = name.rsplit("::").next().unwrap_or_default().trim().to_owned();
    vec![(segments(path), name)]
}

fn segments(path: &str) -> ModulePath {
    let parts = path.split("::").map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Splits the content of a `{…}` group in a `use` declaration at the commas outside nested groups.
fn split_group(group: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0, 0);
    let mut items = Vec::new();
    for (offset, byte) in group.bytes().chain(iter::once(b',')).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                items.push(group[start..offset].trim());
                start = offset + 1;
            }
            _ => {}
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

/// Resolves `super`, `self` and names of child modules to an absolute path. Returns `None` if the
/// path belongs to another crate.
fn absolute_path(
    path: &[String],
    module: &ModulePath,
    modules: &BTreeSet<ModulePath>,
) -> Option<ModulePath> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path.to_vec());
    }
    let super_count = path.iter().take_while(|segment| *segment == "super").count();
    if super_count > 0 {
        let ancestor = module.len().checked_sub(super_count)?;
        return Some([&module[..ancestor], &path[super_count..]].concat());
    }
    let rest = if first == "self" { &path[1..] } else { path };
    let child = [module, rest.get(..1).unwrap_or_default()].concat();
    (first == "self" || modules.contains(&child)).then(|| [module, rest].concat())
}

/// Returns the modules that a source file declares, in the order of the declarations.
fn declared_modules(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let names = text.lines().filter_map(|line| {
        let line = line.split("mod ").collect::<Vec<_>>();
        let [visibility, name] = line[..] else { return None };
        let is_declaration = visibility.is_empty() || visibility.starts_with("pub");
        is_declaration.then(|| name.split_once(';').map(|(name, _)| name.to_owned()))?
    });
    names.collect()
}

/// Returns a cycle of dependencies among modules, if there is one.
fn cycle<'a>(
    dependencies: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
) -> Option<Vec<&'a ModulePath>> {
    fn visit<'a>(
        node: &'a ModulePath,
        dependencies: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>,
        path: &mut Vec<&'a ModulePath>,
        done_nodes: &mut BTreeSet<&'a ModulePath>,
    ) -> Option<Vec<&'a ModulePath>> {
        if let Some(start) = path.iter().position(|visited| *visited == node) {
            return Some(path[start..].to_vec());
        }
        if !done_nodes.insert(node) {
            return None;
        }
        path.push(node);
        for target in dependencies.get(node).into_iter().flatten() {
            if let Some(found) = visit(target, dependencies, path, done_nodes) {
                return Some(found);
            }
        }
        path.pop();
        None
    }
    let mut done_nodes = BTreeSet::new();
    dependencies.keys().find_map(|node| visit(node, dependencies, &mut Vec::new(), &mut done_nodes))
}

/// Asserts that no child module of `parent` imports a module that `order` lists later. `order`
/// lists the child modules of `parent` from the lowest layer to the highest.
fn assert_no_upward_import(sources: &Sources, parent: &[String], order: &[String]) {
    let rank = |module: &ModulePath| {
        let name = module.strip_prefix(parent)?.first()?;
        order.iter().position(|module| module == name)
    };
    for (module, targets) in sources.dependencies() {
        let Some(own_rank) = rank(module) else { continue };
        for target in targets {
            // Child modules may import the parent module itself, because the parent contains
            // re-exports and items that all child modules use.
            let is_upward = rank(target).is_some_and(|target| target > own_rank);
            let path = sources.files[module].path.display();
            assert!(!is_upward, "{path} imports {}, which is listed after it", target.join("::"));
        }
    }
}

#[test]
fn named_paths_resolves_groups_supers_children_and_reexports() {
    let module = segments("crate::a::b");
    let modules = BTreeSet::from([module.clone(), segments("crate::a::b::child")]);
    let text = "use crate::{c::{d, self}, e};\nuse super::f::G as H;\nuse child::I;\nuse std::fs;\n\
        pub use child::J;\n// use crate::no;\nlet x = self::k() + super::super::l::m() + child::n() + std::o();\n\
        #[cfg(test)]\nmod tests { use crate::no; }\nlet s = \"crate::no\";";
    let (imports, reexports) = named_paths(&code(text), &module, &modules);
    let want = ["a::b::child::I", "a::b::child::n", "a::b::k", "a::f::G", "c", "c::d", "e", "l::m"];
    let want = want.map(|path| segments(&format!("crate::{path}")));
    assert_eq!(imports, BTreeSet::from(want));
    assert_eq!(reexports, BTreeMap::from([("J".into(), segments("crate::a::b::child::J"))]));
}

#[test]
fn cycle_search_finds_a_cycle_of_three_modules_and_none_in_a_tree() {
    let [a, b, c] = ["a", "b", "c"].map(segments);
    let tree = BTreeMap::from([(&a, BTreeSet::from([&b, &c])), (&b, BTreeSet::from([&c]))]);
    assert_eq!(cycle(&tree), None);
    let mut cyclic_graph = tree;
    cyclic_graph.insert(&c, BTreeSet::from([&a]));
    assert_eq!(cycle(&cyclic_graph).unwrap().len(), 3);
}

#[test]
fn every_source_file_belongs_to_a_declared_module() {
    let modules = declared_modules(&source_folder().join("lib.rs"));
    for entry in fs::read_dir(source_folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").unwrap_or(&name).to_owned();
        assert!(module == "lib" || modules.contains(&module), "{name}");
    }
}

#[test]
fn modules_import_only_modules_listed_above_them() {
    let sources = Sources::read();
    let crate_modules = declared_modules(&source_folder().join("lib.rs"));
    assert!(crate_modules.len() > 10, "{crate_modules:?}");
    assert_no_upward_import(&sources, &segments("crate"), &crate_modules);
    let host_folders = declared_modules(&source_folder().join("host/mod.rs"));
    assert!(host_folders.len() > 5, "{host_folders:?}");
    assert_no_upward_import(&sources, &segments("crate::host"), &host_folders);
}

#[test]
fn imports_between_files_have_no_cycles() {
    for folder in [source_folder(), Path::new(env!("CARGO_MANIFEST_DIR")).join("cli/src")] {
        let sources = Sources::read_folder(&folder);
        let mut dependencies = sources.dependencies();
        let mut cycles = Vec::new();
        // Remove one import of each cycle found, so that the search finds further cycles.
        while let Some(found) = cycle(&dependencies) {
            let next = found.get(1).unwrap_or(&found[0]);
            dependencies.get_mut(found[0]).unwrap().remove(next);
            let names: Vec<_> = found.iter().map(|module| module.join("::")).collect();
            cycles.push(names.join(" -> "));
        }
        let count = cycles.len();
        assert!(cycles.is_empty(), "{count} dependency cycles:\n{}", cycles.join("\n"));
    }
}

/// Modules that may contain unsafe code, because they use vector instructions, raw pointers or GPU
/// drivers.
const UNSAFE_MODULES: [&str; 8] = [
    "host/cache",
    "host/simd",
    "host/threads",
    "host/math",
    "host/reduction",
    "host/blas",
    "host/nn/col2im",
    "device/cuda",
];

#[test]
fn only_permitted_modules_contain_unsafe_code() {
    let mut permissions = 0;
    for file in Sources::read().files.values() {
        let path = file.path.strip_prefix(source_folder()).unwrap();
        for (start, attribute) in file.code.match_indices("allow(unsafe_code)") {
            let item = file.code[start + attribute.len()..].trim_start_matches(")]").trim_start();
            let module = item.split_once("mod ").and_then(|(_, rest)| rest.split_once(';'));
            let module = module.map(|(name, _)| path.with_file_name(name));
            let module = module.unwrap_or_else(|| path.to_owned());
            let is_allowed = UNSAFE_MODULES.iter().any(|allowed| module == Path::new(allowed));
            assert!(
                is_allowed,
                "{}: `allow(unsafe_code)` for {}, which is not a permitted module",
                path.display(),
                module.display()
            );
            permissions += 1;
        }
        let is_unsafe = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe trait"]
            .iter()
            .any(|block| file.code.contains(block));
        let module = path.with_extension("");
        let is_allowed = UNSAFE_MODULES.iter().any(|allowed| module.starts_with(allowed));
        assert!(
            !is_unsafe || is_allowed,
            "{}: unsafe code outside the permitted modules",
            path.display()
        );
    }
    assert_eq!(permissions, UNSAFE_MODULES.len());
}
