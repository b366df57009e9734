//! Compares changed images with the results of OpenCV in `tests/opencv/image_changes.txt`, which
//! `tests/opencv/image_changes.py` writes.

use super::{Border, Image, Interpolation, bgr_of_hsv, hsv_of_bgr, scaled};

/// Returns the image to change, which the script `image_changes.py` generates in the same way.
fn image(channels: usize, height: usize, width: usize) -> Image {
    let mut state = 7_u32;
    let mut value = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let pixels = (0..channels * height * width).map(|_| value()).collect();
    Image { channels, height, width, pixels }
}

/// Returns the name of each change and the image that OpenCV computed.
fn results() -> Vec<(&'static str, Image)> {
    let text = include_str!("../../../tests/opencv/image_changes.txt");
    let result = |line: &'static str| {
        let fields: Vec<_> = line.split(' ').collect();
        let [channels, height, width] = [1, 2, 3].map(|i| fields[i].parse().unwrap());
        let byte = |i: usize| u8::from_str_radix(&fields[4][2 * i..2 * i + 2], 16).unwrap();
        let pixels = (0..channels * height * width).map(byte).collect();
        (fields[0], Image { channels, height, width, pixels })
    };
    text.lines().map(result).collect()
}

#[test]
fn resized_images_equal_those_of_opencv() {
    let mut count = 0;
    for (name, want) in results() {
        let fields: Vec<_> = name.split('-').collect();
        let interpolation = match fields[0] {
            "area" => Interpolation::Area,
            "nearest" => Interpolation::Nearest,
            "cubic" => Interpolation::Cubic,
            "lanczos4" => Interpolation::Lanczos4,
            _ => continue,
        };
        let [channels, rows, columns, height, width] =
            std::array::from_fn(|i| fields[i + 1].parse().unwrap());
        let got = image(channels, rows, columns).resize_by(height, width, interpolation).unwrap();
        assert_eq!(got, want, "{name}");
        count += 1;
    }
    assert_eq!(count, 40);
}

#[test]
fn changed_colors_and_values_equal_those_of_opencv() {
    let mut count = 0;
    for (name, want) in results() {
        let (kind, value) = name.split_once('-').unwrap_or((name, ""));
        let dark = || {
            let mut x = image(want.channels, 11, 13);
            x.change_values(|x| x / 2 + 30);
            x
        };
        let number = || value.parse::<f32>().unwrap();
        let mut x = image(3, 11, 13);
        match kind {
            "hsv" => x.convert_to_hsv(),
            "bgr" => x.change_colors(bgr_of_hsv),
            "saturation" => x.change_colors(|color| {
                let [h, s, v] = hsv_of_bgr(color);
                bgr_of_hsv([h, scaled(s, number(), 0.0), v])
            }),
            "hue" => x.change_colors(|color| {
                let [h, s, v] = hsv_of_bgr(color);
                bgr_of_hsv([scaled(h, 1.0, number()), s, v])
            }),
            "contrast" => x.scale(number(), 0.0),
            "brightness" => x.scale(1.0, number()),
            "decolorize" => x.decolorize(),
            "gauss_blur" => {
                x = dark();
                x.blur();
            }
            "erode" => {
                x = dark();
                x.erode();
            }
            "hist_eq" => {
                x = dark();
                x.equalize();
            }
            "reflect" => x = dark().framed([4, 5], [18, 20], &Border::Reflected).unwrap(),
            "repeat" => x = dark().framed([4, 5], [18, 20], &Border::Repeated).unwrap(),
            "constant" => {
                let border = Border::Constant(vec![9, 8, 7]);
                x = dark().framed([4, 5], [18, 20], &border).unwrap();
            }
            _ => continue,
        }
        assert_eq!(x, want, "{name}");
        count += 1;
    }
    assert_eq!(count, 25);
}
