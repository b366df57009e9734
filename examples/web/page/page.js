// Draws on the canvas, and shows the probabilities that the WebAssembly module computes.
//
// data.js, which `examples/web/build` writes, defines `MODULE` and `WEIGHTS`: the WebAssembly module
// and the weights of the net, as base64.
"use strict";

const SIDE = 28;
const PIXELS = SIDE * SIDE;
const DIGITS = 10;
// Extent of a digit and line width in pixels of the net's input, as in the images of training.
const DIGIT_EXTENT = 18;
const LINE_WIDTH = 2.5;

const element = (id) => document.getElementById(id);
const bytesOf = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

// Strokes of the drawing, each a list of points [x, y] on the canvas.
let strokes = [];
// Functions of the WebAssembly module.
let net;

async function load() {
  const { instance } = await WebAssembly.instantiate(bytesOf(MODULE), {});
  const exports = instance.exports;
  const weights = bytesOf(WEIGHTS);
  const address = exports.weights_buffer(weights.length);
  new Uint8Array(exports.memory.buffer, address, weights.length).set(weights);
  check(exports, exports.load_weights());
  net = exports;
}

function check(exports, succeeded) {
  if (!succeeded) {
    const bytes = new Uint8Array(exports.memory.buffer, exports.error_buffer(), exports.error_len());
    throw new Error(new TextDecoder().decode(bytes));
  }
}

// Draws polylines with round ends.
function draw(context, lines, width) {
  const { canvas } = context;
  context.fillStyle = "#000";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = "#fff";
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  for (const [first, ...others] of lines) {
    context.beginPath();
    context.moveTo(...first);
    // A line of length 0 draws a dot.
    for (const point of others.length > 0 ? others : [first]) {
      context.lineTo(...point);
    }
    context.stroke();
  }
}

// Returns the strokes, scaled and moved to the centre of the net's input.
function scaled(lines) {
  const points = lines.flat();
  const [low, high] = [Math.min, Math.max].map((extreme) =>
    [0, 1].map((axis) => extreme(...points.map((point) => point[axis]))));
  const extent = Math.max(high[0] - low[0], high[1] - low[1], 1);
  const place = (point) => point.map((value, axis) =>
    SIDE / 2 + (value - (low[axis] + high[axis]) / 2) * (DIGIT_EXTENT / extent));
  return lines.map((line) => line.map(place));
}

// Returns the 784 pixels of the net's input, integers from 0 to 255.
function inputPixels() {
  const context = element("input").getContext("2d", { willReadFrequently: true });
  draw(context, scaled(strokes), LINE_WIDTH);
  const rgba = context.getImageData(0, 0, SIDE, SIDE).data;
  return Array.from({ length: PIXELS }, (_, index) => rgba[4 * index]);
}

// Returns the probabilities of the digits from 0 to 9.
function recognize(pixels) {
  new Float32Array(net.memory.buffer, net.pixels_buffer(), PIXELS).set(pixels.map((x) => x / 256));
  check(net, net.recognize());
  return Array.from(new Float32Array(net.memory.buffer, net.probabilities_buffer(), DIGITS));
}

function show(probabilities) {
  const best = probabilities.indexOf(Math.max(...probabilities));
  element("probabilities").replaceChildren(...probabilities.map((probability, digit) => {
    const row = document.createElement("tr");
    row.className = digit === best ? "best" : "";
    row.innerHTML = `<th>${digit}</th><td><meter value="${probability}"></meter></td>`
      + `<td>${(100 * probability).toFixed(1)} %</td>`;
    return row;
  }));
}

// Shows the drawing, and the probabilities of the digits if the drawing is not empty.
function update() {
  draw(element("drawing").getContext("2d"), strokes, 20);
  if (strokes.length === 0) {
    draw(element("input").getContext("2d"), [], LINE_WIDTH);
    show(new Array(DIGITS).fill(0));
    return undefined;
  }
  const pixels = inputPixels();
  const start = performance.now();
  const probabilities = recognize(pixels);
  element("status").textContent = `Time: ${(performance.now() - start).toFixed(1)} ms`;
  show(probabilities);
  return { pixels, probabilities };
}

function start() {
  const drawing = element("drawing");
  const addPoint = (event) => {
    strokes[strokes.length - 1].push([event.offsetX, event.offsetY]);
    update();
  };
  drawing.addEventListener("pointerdown", (event) => {
    drawing.setPointerCapture(event.pointerId);
    strokes.push([]);
    addPoint(event);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (drawing.hasPointerCapture(event.pointerId)) {
      addPoint(event);
    }
  });
  element("clear").addEventListener("click", () => {
    strokes = [];
    update();
  });
  element("status").textContent = "";
  update();
}

const started = load().then(start);
started.catch((error) => {
  element("status").textContent = `The net cannot run: ${error.message}`;
});
