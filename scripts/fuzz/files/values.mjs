// A value -> a value of a GGUF file's metadata: its type and the bytes of its items.
import { ARRAY, STRING } from './gguf.mjs';

export const u32 = (value) => ({ type: 4, items: [words([value])] });
export const f32 = (value) => ({ type: 6, items: [floats([value])] });
export const flag = (value) => ({ type: 7, items: [Buffer.from([value ? 1 : 0])] });
export const text = (value) => ({ type: STRING, items: [Buffer.from(value)] });
export const list = (of, items) => ({ type: ARRAY, of, items });
export const texts = (values) =>
  list(
    STRING,
    values.map((value) => Buffer.from(value)),
  );
export const numbers = (values) =>
  list(
    4,
    values.map((value) => words([value])),
  );
export const words = (values) => Buffer.from(Uint32Array.from(values).buffer);
export const floats = (values) => Buffer.from(Float32Array.from(values).buffer);
