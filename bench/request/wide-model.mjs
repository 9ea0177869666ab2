// Writes a GGUF with random weights and a vocabulary of any size: to measure the cost of the vocabulary.
import fs from 'node:fs';

const [STRING, UINT32, INT32, FLOAT32, ARRAY] = [8, 4, 5, 6, 9];
const ALIGNMENT = 32;

class Writer {
  #parts = [];
  length = 0;
  push(buffer) {
    this.#parts.push(buffer);
    this.length += buffer.length;
  }
  u32(value) {
    const buffer = Buffer.alloc(4);
    buffer.writeUInt32LE(value);
    this.push(buffer);
  }
  u64(value) {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64LE(BigInt(value));
    this.push(buffer);
  }
  string(text) {
    const bytes = Buffer.from(text);
    this.u64(bytes.length);
    this.push(bytes);
  }
  value(type, value) {
    if (type === STRING) return this.string(value);
    const buffer = Buffer.alloc(4);
    if (type === FLOAT32) buffer.writeFloatLE(value);
    else if (type === INT32) buffer.writeInt32LE(value);
    else buffer.writeUInt32LE(value);
    this.push(buffer);
  }
  field(name, type, value) {
    this.string(name);
    this.u32(type);
    this.value(type, value);
  }
  array(name, type, values) {
    this.string(name);
    this.u32(ARRAY);
    this.u32(type);
    this.u64(values.length);
    for (const value of values) this.value(type, value);
  }
  pad() {
    this.push(Buffer.alloc((ALIGNMENT - (this.length % ALIGNMENT)) % ALIGNMENT));
  }
  bytes() {
    return Buffer.concat(this.#parts);
  }
}

/** Weights (rows, columns) as 16-bit floats, about 0.02 large; rows repeat a random block, so that writing is fast. */
function randomHalf(count, random) {
  const block = new Uint16Array(Math.min(count, 1 << 16));
  for (let i = 0; i < block.length; i++) block[i] = (random() & 0x8000) | (0x2000 + (random() & 0x07ff));
  const all = new Uint16Array(count);
  for (let at = 0; at < count; at += block.length)
    all.set(block.subarray(0, Math.min(block.length, count - at)), at);
  return Buffer.from(all.buffer);
}

function ones(count) {
  return Buffer.from(new Float32Array(count).fill(1).buffer);
}

/** Writes a llama with one byte-level token per byte, and filler tokens up to `vocabSize`. */
export function writeWideModel(file, { vocabSize, hidden, layers, heads, feedForward, contextLength }) {
  let state = 12345;
  const random = () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state >>> 8;
  };
  const tokens = Array.from({ length: vocabSize - 1 }, (_, i) =>
    i < 94 ? String.fromCharCode(33 + i) : `Ġw${i}`,
  );
  tokens.push('<|end|>');
  const fields = new Writer();
  const put = (name, type, value) => fields.field(name, type, value);
  put('general.architecture', STRING, 'llama');
  put('general.name', STRING, `wide-${vocabSize}`);
  put('llama.context_length', UINT32, contextLength);
  put('llama.embedding_length', UINT32, hidden);
  put('llama.block_count', UINT32, layers);
  put('llama.feed_forward_length', UINT32, feedForward);
  put('llama.attention.head_count', UINT32, heads);
  put('llama.attention.head_count_kv', UINT32, heads);
  put('llama.attention.layer_norm_rms_epsilon', FLOAT32, 1e-5);
  put('llama.rope.dimension_count', UINT32, hidden / heads);
  put('llama.vocab_size', UINT32, vocabSize);
  put('tokenizer.ggml.model', STRING, 'gpt2');
  put('tokenizer.ggml.pre', STRING, 'gpt-2');
  put('tokenizer.ggml.eos_token_id', UINT32, vocabSize - 1);
  put('tokenizer.ggml.bos_token_id', UINT32, vocabSize - 1);
  put('tokenizer.chat_template', STRING, '{% for m in messages %}{{ m.content }}{% endfor %}');
  fields.array('tokenizer.ggml.tokens', STRING, tokens);
  fields.array(
    'tokenizer.ggml.token_type',
    INT32,
    tokens.map((_, i) => (i === vocabSize - 1 ? 3 : 1)),
  );
  fields.array('tokenizer.ggml.merges', STRING, ['! !']);
  const fieldCount = 19;

  const tensors = [
    ['token_embd.weight', [hidden, vocabSize]],
    ['output_norm.weight', [hidden]],
  ];
  for (let i = 0; i < layers; i++) {
    for (const name of ['attn_norm', 'ffn_norm']) tensors.push([`blk.${i}.${name}.weight`, [hidden]]);
    for (const name of ['attn_q', 'attn_k', 'attn_v', 'attn_output'])
      tensors.push([`blk.${i}.${name}.weight`, [hidden, hidden]]);
    for (const name of ['ffn_gate', 'ffn_up'])
      tensors.push([`blk.${i}.${name}.weight`, [hidden, feedForward]]);
    tensors.push([`blk.${i}.ffn_down.weight`, [feedForward, hidden]]);
  }
  const header = new Writer();
  header.push(Buffer.from('GGUF'));
  header.u32(3);
  header.u64(tensors.length);
  header.u64(fieldCount);
  header.push(fields.bytes());
  const data = new Writer();
  for (const [name, shape] of tensors) {
    header.string(name);
    header.u32(shape.length);
    for (const size of shape) header.u64(size);
    header.u32(shape.length === 1 ? 0 : 1); // 32 bits for norms, 16 for matrices
    header.u64(data.length);
    const count = shape.reduce((product, size) => product * size, 1);
    data.push(shape.length === 1 ? ones(count) : randomHalf(count, random));
    data.pad();
  }
  header.pad();
  fs.writeFileSync(file, Buffer.concat([header.bytes(), data.bytes()]));
}
