// Pixels -> a PNG file: 8 bits a channel, red, green and blue, no filters.
import zlib from 'node:zlib';

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
const HEADER_REST = [8, 2, 0, 0, 0]; // bits, RGB, deflate, filters, not interlaced

/** `pixels`: (height, width, 3) bytes. */
export function encodePng(pixels, width, height) {
  const lines = Buffer.alloc(height * (1 + 3 * width)); // a line begins with its filter: none
  for (let y = 0; y < height; y++)
    lines.set(pixels.subarray(3 * width * y, 3 * width * (y + 1)), y * (1 + 3 * width) + 1);
  const size = Buffer.alloc(8);
  size.writeUInt32BE(width);
  size.writeUInt32BE(height, 4);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', Buffer.concat([size, Buffer.from(HEADER_REST)])),
    chunk('IDAT', zlib.deflateSync(lines, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type, body) {
  const named = Buffer.concat([Buffer.from(type), body]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(body.length);
  check.writeUInt32BE(zlib.crc32(named));
  return Buffer.concat([length, named, check]);
}
