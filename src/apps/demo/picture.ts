/** A PNG file as scripts/make/seeing/png.mjs writes it -> its pixels; pixels -> lines of characters. Part of the demo. */
import fs from 'node:fs';
import zlib from 'node:zlib';

type Picture = { readonly width: number; readonly height: number; readonly lines: Uint8Array };
type Rgb = readonly [number, number, number];

const HEADER_BYTES = 33; // signature and first chunk
const CHUNK_BYTES = 12; // length, name and check of a chunk
/** Pixels per character, which on terminals is twice as high as wide. */
const [WIDE, HIGH] = [2, 4];
const GRAYEST = 60; // largest difference of the channels of a gray pixel
const NAMES: Readonly<Record<string, Rgb>> = {
  red: [220, 40, 40],
  green: [40, 165, 60],
  blue: [45, 85, 225],
  yellow: [235, 215, 45],
  purple: [150, 55, 190],
};

/** Reads a file with eight bits per channel and no filters, whose data is in the second chunk. */
export function readPicture(file: string): Picture {
  const bytes = fs.readFileSync(file);
  const size = bytes.readUInt32BE(HEADER_BYTES);
  const data = bytes.subarray(HEADER_BYTES + 8, HEADER_BYTES + CHUNK_BYTES + size - 4);
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20), lines: zlib.inflateSync(data) };
}

/** Returns lines of blocks in the colors of a terminal, or of the first letters of colors. */
export function drawPicture({ width, height, lines }: Picture, usesColor: boolean): string[] {
  const at = (x: number, y: number): Rgb => {
    const start = y * (1 + 3 * width) + 1 + 3 * x;
    return [lines[start]!, lines[start + 1]!, lines[start + 2]!];
  };
  const toText = usesColor ? blockOf : letterOf;
  return Array.from({ length: Math.floor(height / HIGH) }, (_, row) =>
    Array.from({ length: Math.floor(width / WIDE) }, (_, column) =>
      toText(at(column * WIDE + WIDE / 2, row * HIGH + HIGH / 2)),
    ).join(''),
  );
}

/** Returns a block in the nearest of a terminal's 216 colors. */
function blockOf(rgb: Rgb): string {
  const [red, green, blue] = rgb.map((level) => Math.round(level / 51)) as [number, number, number];
  return `\u001b[38;5;${16 + 36 * red + 6 * green + blue}m█\u001b[0m`;
}

function letterOf(rgb: Rgb): string {
  if (Math.max(...rgb) - Math.min(...rgb) < GRAYEST) return '.';
  const distance = (other: Rgb): number => other.reduce((sum, level, i) => sum + (level - rgb[i]!) ** 2, 0);
  const [name] = Object.entries(NAMES).reduce((best, one) =>
    distance(one[1]) < distance(best[1]) ? one : best,
  );
  return name[0]!;
}
