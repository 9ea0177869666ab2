// Random numbers -> scenes of coloured shapes, and their pixels.

/** Pixels of a side of a picture. */
export const SIDE = 64;
/** Pixels of a side of a patch, as the vision encoder cuts pictures. */
export const PATCH = 8;
export const SHAPES = ['circle', 'square', 'triangle', 'cross'];
/** Name -> red, green, blue. */
export const COLORS = {
  red: [220, 40, 40],
  green: [40, 165, 60],
  blue: [45, 85, 225],
  yellow: [235, 215, 45],
  purple: [150, 55, 190],
};
const BACKGROUNDS = { white: 240, gray: 128, black: 16 };
/** Cells of three rows of three. */
export const PLACES = [
  'top left',
  'top',
  'top right',
  'left',
  'center',
  'right',
  'bottom left',
  'bottom',
  'bottom right',
];

/** Objects of a scene at most. */
export const MOST_OBJECTS = 3;
const CELL = SIDE / 3;
/** One in this many scenes is held out of the training. */
const HELD_OUT_SHARE = 20;

/** Draws a scene: { background, objects: [{ shape, color, place, x, y, radius }] }, `count` objects in the order of the places. */
export function drawScene({ integer, pick, sample, uniform }, count = integer(1, MOST_OBJECTS)) {
  const places = sample([...PLACES.keys()], count).sort((a, b) => a - b);
  const objects = places.map((place) => ({
    shape: pick(SHAPES),
    color: pick(Object.keys(COLORS)),
    place: PLACES[place],
    x: ((place % 3) + 0.5) * CELL + 3 * (uniform() - 0.5),
    y: (Math.floor(place / 3) + 0.5) * CELL + 3 * (uniform() - 0.5),
    radius: 6 + 3 * uniform(),
  }));
  return { background: pick(Object.keys(BACKGROUNDS)), objects };
}

/** Returns true if a scene is held out. Depends only on its objects and their places, so all seeds agree. */
export function isHeldOut({ objects }) {
  const text = objects.map(({ shape, color, place }) => `${color} ${shape} ${place}`).join();
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return ((hash ^ (hash >>> 15)) >>> 0) % HELD_OUT_SHARE === 0;
}

/** Tests if a point, relative to the center and in radii, belongs to a shape. */
const INSIDE = {
  circle: (x, y) => x * x + y * y <= 1,
  square: (x, y) => Math.max(Math.abs(x), Math.abs(y)) <= 0.85,
  triangle: (x, y) => y <= 0.8 && y >= -0.95 + 1.75 * Math.abs(x),
  cross: (x, y) => Math.min(Math.abs(x), Math.abs(y)) <= 0.3,
};

/** Pixels of a scene: (SIDE, SIDE, 3) bytes, with shades and noise that differ from picture to picture. */
export function drawPixels({ background, objects }, { integer, uniform }) {
  const pixels = new Uint8ClampedArray(3 * SIDE * SIDE);
  const noise = 12 * uniform();
  const shade = BACKGROUNDS[background] + integer(-14, 14);
  for (let i = 0; i < pixels.length; i++) pixels[i] = shade + noise * (uniform() - 0.5);
  for (const { shape, color, x, y, radius } of objects) {
    const rgb = COLORS[color].map((level) => level + integer(-14, 14));
    const [left, top] = [Math.floor(x - radius), Math.floor(y - radius)];
    const reach = Math.ceil(2 * radius) + 1;
    for (let row = Math.max(0, top); row < Math.min(SIDE, top + reach); row++)
      for (let column = Math.max(0, left); column < Math.min(SIDE, left + reach); column++) {
        const [across, down] = [(column + 0.5 - x) / radius, (row + 0.5 - y) / radius];
        if (Math.max(Math.abs(across), Math.abs(down)) > 1 || !INSIDE[shape](across, down)) continue;
        const at = 3 * (row * SIDE + column);
        for (let channel = 0; channel < 3; channel++)
          pixels[at + channel] = rgb[channel] + noise * (uniform() - 0.5);
      }
  }
  return new Uint8Array(pixels.buffer);
}

/** For each patch what it shows: index of a shape, of a color and of a place, each from 1; 0: background. (patches, 3) bytes. */
export function patchLabels({ objects }) {
  const patches = SIDE / PATCH;
  const labels = new Uint8Array(3 * patches * patches);
  for (let i = 0; i < patches * patches; i++) {
    const [x, y] = [((i % patches) + 0.5) * PATCH, (Math.floor(i / patches) + 0.5) * PATCH];
    const found = objects.find(
      (object) => Math.max(Math.abs(object.x - x), Math.abs(object.y - y)) <= object.radius + 1,
    );
    if (!found) continue;
    const { shape, color, place } = found;
    labels.set(
      [SHAPES.indexOf(shape), Object.keys(COLORS).indexOf(color), PLACES.indexOf(place)].map((at) => at + 1),
      3 * i,
    );
  }
  return labels;
}
