// @ts-nocheck examples, whose types are checked, import this file
// Metadata and tensors -> a GGUF file (version 3), written in one pass; and a file's key-values -> their raw bytes.
import fs from 'node:fs';

/** Metadata value types of the format that are used here. */
const VALUE = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 };
/** Sizes of the fixed-size metadata value types, by type number. */
const VALUE_BYTES = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
/** Tensor types: number in the file, elements and bytes of one block. */
export const TENSOR_TYPES = {
  f32: { id: 0, blockElements: 1, blockBytes: 4 },
  f16: { id: 1, blockElements: 1, blockBytes: 2 },
  q4_0: { id: 2, blockElements: 32, blockBytes: 18 },
  q8_0: { id: 8, blockElements: 32, blockBytes: 34 },
  q4_k: { id: 12, blockElements: 256, blockBytes: 144 },
  q6_k: { id: 14, blockElements: 256, blockBytes: 210 },
  bf16: { id: 30, blockElements: 1, blockBytes: 2 },
  mxfp4: { id: 39, blockElements: 32, blockBytes: 17 },
};
const ALIGNMENT = 32;

const uint32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const uint64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};
const float32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
};
const string = (value) => {
  const bytes = Buffer.from(value, 'utf8');
  return Buffer.concat([uint64(bytes.length), bytes]);
};

const array = (type, items) =>
  Buffer.concat([uint32(VALUE.array), uint32(type), uint64(items.length), ...items]);

/** Metadata values: each is a type number and its bytes. `raw` passes on what `readKeyValues` gave. */
export const meta = {
  uint32: (value) => Buffer.concat([uint32(VALUE.uint32), uint32(value)]),
  float32: (value) => Buffer.concat([uint32(VALUE.float32), float32(value)]),
  bool: (value) => Buffer.concat([uint32(VALUE.bool), Buffer.of(value ? 1 : 0)]),
  string: (value) => Buffer.concat([uint32(VALUE.string), string(value)]),
  stringArray: (values) => array(VALUE.string, values.map(string)),
  float32Array: (values) => array(VALUE.float32, values.map(float32)),
  uint32Array: (values) => array(VALUE.uint32, values.map(uint32)),
  int32Array: (values) => array(VALUE.int32, values.map(uint32)), // from 0 up
  boolArray: (values) =>
    array(
      VALUE.bool,
      values.map((value) => Buffer.of(value ? 1 : 0)),
    ),
  raw: (bytes) => bytes,
};

/** Bytes of a tensor of `type` with dimensions `dims`, innermost first. */
export function tensorBytes(type, dims) {
  const { blockElements, blockBytes } = TENSOR_TYPES[type];
  if (dims[0] % blockElements !== 0)
    throw new Error(`rows of ${dims[0]} elements do not fit ${type}: its blocks hold ${blockElements}`);
  return (dims.reduce((product, dim) => product * dim, 1) / blockElements) * blockBytes;
}

const padding = (bytes) => (ALIGNMENT - (bytes % ALIGNMENT)) % ALIGNMENT;

/** Returns the bytes before those of the tensors { name, type, dims }, and the length of the file. `keyValues`: see {@link writeGguf}. */
export function headOf(keyValues, tensors) {
  const header = [Buffer.from('GGUF'), uint32(3), uint64(tensors.length), uint64(keyValues.size)];
  for (const [key, value] of keyValues) header.push(string(key), value);
  let offset = 0;
  for (const { name, type, dims } of tensors) {
    header.push(
      string(name),
      uint32(dims.length),
      ...dims.map(uint64),
      uint32(TENSOR_TYPES[type].id),
      uint64(offset),
    );
    const bytes = tensorBytes(type, dims);
    offset += bytes + padding(bytes);
  }
  const bare = Buffer.concat(header);
  const head = Buffer.concat([bare, Buffer.alloc(padding(bare.length))]);
  return { head, totalBytes: head.length + offset };
}

/**
 * Writes a GGUF file; a reader sees it whole or not at all.
 * `keyValues` is a Map of key -> `meta` value; a tensor is { name, type, dims, chunks() }, dims innermost first, and
 * chunks() yields Buffers of its bytes in order.
 */
export function writeGguf(file, keyValues, tensors, onProgress = () => {}) {
  const { head, totalBytes } = headOf(keyValues, tensors);
  const partial = `${file}.${process.pid}.partial`; // another process may write the same file
  const descriptor = fs.openSync(partial, 'w');
  try {
    let writtenBytes = 0;
    const put = (bytes) => {
      fs.writeSync(descriptor, bytes);
      writtenBytes += bytes.length;
      onProgress(writtenBytes / totalBytes);
    };
    put(head);
    for (const tensor of tensors) {
      const bytes = tensorBytes(tensor.type, tensor.dims);
      for (const chunk of tensor.chunks()) put(chunk);
      put(Buffer.alloc(padding(bytes)));
    }
    if (writtenBytes !== totalBytes)
      throw new Error(`${file}: ${writtenBytes} bytes written, ${totalBytes} planned`);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
  fs.renameSync(partial, file);
}

/** The key-values of a GGUF file: Map of key -> type number and value, as the bytes in the file. */
export function readKeyValues(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.toString('latin1', 0, 4) !== 'GGUF') throw new Error(`${file} is no GGUF file`);
  let at = 24;
  const readSize = () => {
    at += 8;
    return Number(bytes.readBigUInt64LE(at - 8));
  };
  const skipValue = (type) => {
    if (type === VALUE.string) {
      const length = readSize();
      at += length;
    } else if (type === VALUE.array) {
      const elementType = bytes.readUInt32LE(at);
      at += 4;
      const count = readSize();
      for (let i = 0; i < count; i++) skipValue(elementType);
    } else at += VALUE_BYTES[type];
  };
  const keyValues = new Map();
  for (let left = Number(bytes.readBigUInt64LE(16)); left > 0; left--) {
    const keyBytes = readSize();
    const key = bytes.toString('utf8', at, at + keyBytes);
    at += keyBytes;
    const start = at;
    at += 4;
    skipValue(bytes.readUInt32LE(start));
    keyValues.set(key, bytes.subarray(start, at));
  }
  return keyValues;
}

/** The numbers of a raw int32 array value. */
export function int32Array(raw) {
  const count = Number(raw.readBigUInt64LE(8));
  return Int32Array.from({ length: count }, (_, i) => raw.readInt32LE(16 + 4 * i));
}

/** A raw array of texts or int32 numbers with `itemsOf(count, first)` behind it, so that it has `size` items. */
export function extended(raw, size, itemsOf) {
  const count = Number(raw.readBigUInt64LE(8));
  const isText = raw.readUInt32LE(4) === VALUE.string;
  const items = itemsOf(size - count, count).map((item) => (isText ? string(item) : uint32(item)));
  return Buffer.concat([raw.subarray(0, 8), uint64(size), raw.subarray(16), ...items]);
}
