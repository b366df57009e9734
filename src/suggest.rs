//! "Did you mean" suggestions for misspelt names.

/// Maximum length in characters of a word that gets a suggestion. The maximum length bounds the
/// time to compare two names, which is quadratic in their length.
const MAX_WORD_LEN: usize = 64;

/// Returns `` (did you mean `NAME`?)`` with the known name nearest to `word`, or an empty string if
/// no known name is near enough.
///
/// The distance between two names is the smallest number of insertions, deletions and substitutions
/// of characters and swaps of adjacent characters that turns one name into the other, ignoring
/// case. The distance between a suggested name and `word` is at most a third of the length of
/// `word`, or 1 if `word` is shorter than three letters.
pub(crate) fn did_you_mean<'a>(
    word: &str,
    known_names: impl IntoIterator<Item = &'a str>,
) -> String {
    let (word, len) = (word.to_lowercase(), word.chars().count());
    let distance = |name: &str| strsim::osa_distance(&word, &name.to_lowercase());
    let known_names = known_names.into_iter().filter(|_| len <= MAX_WORD_LEN);
    match known_names.map(|name| (distance(name), name)).min() {
        Some((distance, name)) if distance <= (len / 3).max(1) && distance < len => {
            format!(" (did you mean `{name}`?)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn did_you_mean_names_the_nearest_known_name() {
        let known_names = ["base_lr", "ReLU", "PReLU", "SGD", "num_output", "InnerProduct"];
        for (word, want) in [
            ("base_lrr", " (did you mean `base_lr`?)"),
            ("relu", " (did you mean `ReLU`?)"),
            ("SDG", " (did you mean `SGD`?)"),
            ("num_outptu", " (did you mean `num_output`?)"),
            ("InerProdutc", " (did you mean `InnerProduct`?)"),
            ("Softmax", ""),
            ("x", ""),
            ("", ""),
            (&"x".repeat(1 << 20), ""),
        ] {
            assert_eq!(super::did_you_mean(word, known_names), want, "{word}");
        }
        assert_eq!(super::did_you_mean("sdg", []), "");
    }
}
