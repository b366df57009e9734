// Draws ten stored digits if the address of the page ends with #test, and appends the pixels and
// the probabilities to the page as JSON, for `examples/web/test`.
//
// Headless Chromium reads the page at its load event. The server of the test answers the request for
// `wait` after the request for `done`, so an image with the address `wait` delays the load event.
"use strict";

// For each digit, its strokes, with coordinates from 0 to 100.
const STORED_DIGITS = [
  [[[50, 5], [25, 20], [18, 50], [25, 80], [50, 95], [75, 80], [82, 50], [75, 20], [50, 5]]],
  [[[54, 5], [46, 95]]],
  [[[20, 25], [35, 8], [60, 6], [75, 22], [70, 42], [45, 65], [18, 92], [82, 92]]],
  [[[22, 12], [50, 5], [72, 18], [68, 38], [42, 48], [70, 58], [76, 78], [50, 95], [22, 85]]],
  [[[30, 5], [20, 52], [80, 50]], [[66, 10], [60, 95]]],
  [[[75, 6], [30, 8], [26, 44], [55, 38], [76, 58], [70, 84], [45, 95], [20, 86]]],
  [[[66, 5], [38, 30], [24, 62], [34, 90], [60, 94], [74, 74], [60, 54], [30, 62]]],
  [[[18, 8], [80, 6], [55, 45], [42, 95]]],
  [[[68, 20], [48, 5], [30, 20], [36, 38], [66, 62], [68, 84], [48, 95], [28, 82], [34, 60],
    [62, 38], [68, 20]]],
  [[[70, 22], [48, 6], [28, 24], [36, 44], [58, 42], [70, 22], [66, 60], [54, 95]]],
];

if (location.hash === "#test") {
  const delay = document.createElement("img");
  delay.hidden = true;
  delay.src = "wait";
  document.body.append(delay);
  started.then(() => {
    const results = STORED_DIGITS.map((digit) => {
      strokes = digit.map((line) => line.map(([x, y]) => [40 + 2 * x, 40 + 2 * y]));
      return update();
    });
    // The net is certain of each drawn digit. Faint pixels give probabilities between 0 and 1.
    for (const { pixels } of results.slice()) {
      const faint = pixels.map((pixel) => Math.floor(pixel / 16));
      results.push({ pixels: faint, probabilities: recognize(faint) });
    }
    const script = document.createElement("script");
    script.type = "application/json";
    script.id = "results";
    script.textContent = JSON.stringify(results);
    document.body.append(script);
  }).finally(() => fetch("done"));
}
