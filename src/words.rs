//! What was meant by a misspelt word.

/// Longer words are not compared: it takes time by the product of their lengths.
const MAX_WORD_LEN: usize = 64;

/// ` (did you mean …?)` with the known word that is nearest to `word`, if one is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(known) => format!(" (did you mean `{known}`?)"),
        None => String::new(),
    }
}

fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |word: &str| word.to_lowercase().chars().collect::<Vec<_>>();
    let word = letters(word);
    if word.len() > MAX_WORD_LEN {
        return None;
    }
    let near = known.into_iter().map(|known| (distance(&word, &letters(known)), known));
    let (distance, known) = near.min()?;
    (distance <= (word.len() / 3).max(1) && distance < word.len()).then_some(known)
}

/// Letters to insert, remove, replace or swap with the next one (Damerau 1964, with no letter
/// changed twice).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, distance, nearest};

    #[test]
    fn near_words_are_found() {
        let known = ["base_lr", "ReLU", "PReLU", "SGD", "num_output", "InnerProduct"];
        let cases = [
            ("base_lrr", Some("base_lr")),
            ("relu", Some("ReLU")),
            ("SDG", Some("SGD")),
            ("num_outptu", Some("num_output")),
            ("InerProdutc", Some("InnerProduct")),
            ("Softmax", None),
            ("x", None),
            ("", None),
        ];
        for (word, want) in cases {
            assert_eq!(nearest(word, known), want, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
        assert_eq!(did_you_mean("sdg", known), " (did you mean `SGD`?)");
        assert_eq!(did_you_mean("sdg", []), "");
    }

    #[test]
    fn distances_count_letters() {
        let of = |a: &str, b: &str| {
            distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>())
        };
        for (a, b, want) in
            [("", "", 0), ("ab", "", 2), ("abcd", "acbd", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((of(a, b), of(b, a)), (want, want), "{a} {b}");
        }
    }
}
