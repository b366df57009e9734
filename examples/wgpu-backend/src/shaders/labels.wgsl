
const IGNORED = -1;
const NO_CLASS = -2;

// Returns the class of label `at`, IGNORED for an ignored label, or NO_CLASS for a label that is
// not a class number.
fn class_of(at: u32) -> i32 {
    let value = label[p.label + at];
    if p.has_ignored == 1u && value == p.ignored {
        return IGNORED;
    }
    if value >= 0.0 && value < f32(p.extent) && floor(value) == value {
        return i32(value);
    }
    return NO_CLASS;
}

// Returns the index of label `at`'s score of class 0. The scores of a label have stride `inner`.
fn first_score(at: u32) -> u32 {
    return at / p.inner * p.extent * p.inner + at % p.inner;
}
