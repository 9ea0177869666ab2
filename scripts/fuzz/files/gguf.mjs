// The bytes of a GGUF file <-> its parts: keys, tensors, data. Parts may say what is wrong; bytes are written as they say.
const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
export const STRING = 8;
export const ARRAY = 9;
/** Tensor types by number: elements and bytes of a block. */
export const BLOCKS = {
  0: [1, 4], 1: [1, 2], 2: [32, 18], 3: [32, 20], 6: [32, 22], 7: [32, 24], 8: [32, 34], 9: [32, 36],
  10: [256, 84], 11: [256, 110], 12: [256, 144], 13: [256, 176], 14: [256, 210], 15: [256, 292], 16: [256, 66],
  17: [256, 74], 18: [256, 98], 19: [256, 50], 20: [32, 18], 21: [256, 110], 22: [256, 82], 23: [256, 136],
  24: [1, 1], 25: [1, 2], 26: [1, 4], 27: [1, 8], 28: [1, 8], 29: [256, 56], 30: [1, 2], 34: [256, 54],
  35: [256, 66], 39: [32, 17], 40: [64, 36], 41: [128, 18], 42: [64, 18],
}; // biome-ignore format: a table

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
};
const sized = (bytes) => [u64(bytes.length), bytes];

/** Parts: keys { name, type, of?, items } with the bytes of each item, tensors { name, dims, type, data }. */
export function decode(bytes) {
  let at = 24;
  const take = (count) => {
    at += count;
    return bytes.subarray(at - count, at);
  };
  const size = () => Number(take(8).readBigUInt64LE());
  const word = () => take(4).readUInt32LE();
  const item = (type) => take(type === STRING ? size() : SIZES[type]);
  const counts = [8, 16].map((from) => Number(bytes.readBigUInt64LE(from)));
  const keys = Array.from({ length: counts[1] }, () => {
    const name = take(size()).toString('latin1');
    const type = word();
    if (type !== ARRAY) return { name, type, items: [item(type)] };
    const of = word();
    return { name, type, of, items: Array.from({ length: size() }, () => item(of)) };
  });
  const tensors = Array.from({ length: counts[0] }, () => {
    const name = take(size()).toString('latin1');
    const dims = Array.from({ length: word() }, () => take(8).readBigInt64LE());
    return { name, dims, type: word(), offset: size() };
  });
  const start = Math.ceil(at / 32) * 32;
  for (const tensor of tensors) {
    const from = start + tensor.offset;
    tensor.data = Buffer.from(bytes.subarray(from, from + bytesOf(tensor)));
    delete tensor.offset;
  }
  return { keys, tensors, alignment: 32 };
}

/** Bytes that a tensor takes as its type and sizes say; NaN for what is no type. */
export function bytesOf({ dims, type }) {
  const [elements, bytes] = BLOCKS[type] ?? [Number.NaN, 1];
  return (Number(dims.reduce((product, size) => product * size, 1n)) / elements) * bytes;
}

/** The file. What a part says of counts, offsets, `extra` bytes is written instead of what is right. */
export function encode({ keys, tensors, alignment, version = 3, counts = {} }) {
  const head = [
    Buffer.from('GGUF'),
    u32(version),
    u64(counts.tensors ?? tensors.length),
    u64(counts.keys ?? keys.length),
  ];
  for (const { name, type, of, items, count } of keys) {
    head.push(...sized(Buffer.from(name, 'latin1')), u32(type));
    if (type === ARRAY) head.push(u32(of), u64(count ?? items.length));
    const isText = (type === ARRAY ? of : type) === STRING;
    for (const bytes of items) head.push(...(isText ? sized(bytes) : [bytes]));
  }
  let offset = 0;
  const data = [];
  for (const tensor of tensors) {
    head.push(...sized(Buffer.from(tensor.name, 'latin1')), u32(tensor.dims.length));
    for (const size of tensor.dims) head.push(u64(size));
    head.push(u32(tensor.type), u64(tensor.offset ?? offset));
    data.push(tensor.data, Buffer.alloc(-tensor.data.length & (alignment - 1)));
    offset += data.at(-2).length + data.at(-1).length;
  }
  const header = Buffer.concat(head);
  return Buffer.concat([header, Buffer.alloc(-header.length & (alignment - 1)), ...data]);
}
