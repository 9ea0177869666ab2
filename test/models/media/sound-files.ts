/** Small sounds of each format, made here: a tone as WAV and FLAC, silence as MP3. */

/** Samples of a tone, 16 bits. */
function tone(count: number): Int16Array {
  return Int16Array.from({ length: count }, (_, i) => Math.round(8000 * Math.sin(i / 5)));
}

/** 16-bit PCM of one channel. */
export function wav(count: number, rate = 16_000): Buffer {
  const samples = Buffer.from(tone(count).buffer);
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + samples.length, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20); // PCM
  header.writeUInt16LE(1, 22); // channels
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(2 * rate, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(samples.length, 40);
  return Buffer.concat([header, samples]);
}

/** MPEG 1 layer 3 of 128 kbit/s at 44,100 Hz: frames without data are silence. */
export function mp3(frames: number): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb9064, 0);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

function crc(bytes: Uint8Array, polynomial: number, bits: 8 | 16): number {
  const top = 1 << (bits - 1);
  let value = 0;
  for (const byte of bytes) {
    value ^= byte << (bits - 8);
    for (let i = 0; i < 8; i++) value = value & top ? (value << 1) ^ polynomial : value << 1;
  }
  return value & ((1 << bits) - 1);
}

/** Frames of 192 samples that are stored as they are. `total`: the length that the header declares. */
export function flac(frames: number, total = frames * 192): Buffer {
  const info = Buffer.alloc(34);
  info.writeUInt16BE(192, 0);
  info.writeUInt16BE(192, 2);
  info.writeUInt32BE((16_000 << 12) | (15 << 4), 10); // rate, one channel, 16 bits
  info.writeUInt32BE(total, 14);
  const parts = [Buffer.from('fLaC'), Buffer.from([0x80, 0, 0, 34]), info];
  const samples = tone(192 * frames);
  for (let i = 0; i < frames; i++) {
    const header = Buffer.from([0xff, 0xf8, 0x10, 0x08, i]); // 192 samples, rate of the header, 16 bits, frame number
    const checked = Buffer.concat([header, Buffer.from([crc(header, 0x07, 8)])]);
    const body = Buffer.alloc(1 + 2 * 192);
    body[0] = 0x02; // stored as they are
    for (let k = 0; k < 192; k++) body.writeInt16BE(samples[192 * i + k]!, 1 + 2 * k);
    const frame = Buffer.concat([checked, body]);
    const sum = crc(frame, 0x8005, 16);
    parts.push(frame, Buffer.from([sum >> 8, sum & 255]));
  }
  return Buffer.concat(parts);
}
