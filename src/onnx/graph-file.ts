/** An ONNX file -> the operators of its graph and its operator sets. Weights are skipped, not read. */
import fs from 'node:fs';
import { OnpolicyError } from '../errors.ts';

/** What stands at the head of a model. */
export type GraphFile = {
  readonly operators: ReadonlySet<string>;
  /** Version of the standard operators. */
  readonly opset: number;
};

/** Field numbers of the format's messages. */
const MODEL = { graph: 7, opset: 8 };
const OPSET = { domain: 1, version: 2 };
const GRAPH = { node: 1 };
const NODE = { opType: 4, attribute: 5 };
const ATTRIBUTE = { graph: 6 };

/** Kinds of fields on the wire. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Reads a file. Fails with `MODEL_INVALID` when it is none of the format. */
export function readGraphFile(file: string): GraphFile {
  const descriptor = fs.openSync(file, 'r');
  try {
    const reader = new Reader(descriptor, fs.fstatSync(descriptor).size);
    const operators = new Set<string>();
    let opset = 0;
    let graphs = 0;
    for (const field of reader.fields(0, reader.size))
      if (field.number === MODEL.graph) {
        graphs += 1;
        readGraph(reader, field, operators);
      } else if (field.number === MODEL.opset) opset = Math.max(opset, readOpset(reader, field));
    if (graphs !== 1 || opset === 0) throw new RangeError('no graph');
    return { operators, opset };
  } catch (cause) {
    throw new OnpolicyError('MODEL_INVALID', `model: ${file} is damaged, or no ONNX model`, {
      cause,
      param: 'model',
    });
  } finally {
    fs.closeSync(descriptor);
  }
}

/** A field: `from` to `to` are its bytes, or `from` its number when it is one. */
type Field = { readonly number: number; readonly kind: number; readonly from: number; readonly to: number };

function readGraph(reader: Reader, graph: Field, operators: Set<string>): void {
  for (const field of reader.fields(graph.from, graph.to)) {
    if (field.number !== GRAPH.node) continue;
    for (const part of reader.fields(field.from, field.to))
      if (part.number === NODE.opType) operators.add(reader.text(part));
      else if (part.number === NODE.attribute)
        for (const inner of reader.fields(part.from, part.to))
          if (inner.number === ATTRIBUTE.graph && inner.kind === BYTES) readGraph(reader, inner, operators);
  }
}

/** The version of the standard operators; 0 for another set. */
function readOpset(reader: Reader, opset: Field): number {
  let [domain, version] = ['', 0];
  for (const field of reader.fields(opset.from, opset.to))
    if (field.number === OPSET.domain) domain = reader.text(field);
    else if (field.number === OPSET.version) version = field.from;
  return domain === '' || domain === 'ai.onnx' ? version : 0;
}

/** Reads a file through a window, so that large tensors cost nothing. */
class Reader {
  readonly size: number;
  readonly #descriptor: number;
  readonly #window = Buffer.alloc(1 << 16);
  #start = 0;
  #end = 0;

  constructor(descriptor: number, size: number) {
    this.#descriptor = descriptor;
    this.size = size;
  }

  *fields(from: number, to: number): Generator<Field> {
    for (let at = from; at < to; ) {
      const tag = this.#varint(at);
      const [number, kind] = [Math.floor(tag.value / 8), tag.value % 8];
      if (kind === VARINT) {
        const { value, next } = this.#varint(tag.next);
        yield { number, kind, from: value, to: value };
        at = next;
        continue;
      }
      const length = kind === BYTES ? this.#varint(tag.next) : fixed(kind, tag.next);
      at = length.next + length.value;
      if (at > to) throw new RangeError('a field ends behind its message');
      yield { number, kind, from: length.next, to: at };
    }
  }

  text({ from, to }: Field): string {
    return Buffer.from(Array.from({ length: to - from }, (_, i) => this.#byte(from + i))).toString('utf8');
  }

  #varint(at: number): { value: number; next: number } {
    let value = 0;
    for (let i = 0; i < 10; i++) {
      const byte = this.#byte(at + i);
      value += (byte & 127) * 2 ** (7 * i);
      if (byte < 128) return { value, next: at + i + 1 };
    }
    throw new RangeError('a number has no end');
  }

  #byte(at: number): number {
    if (at >= this.size) throw new RangeError('the file ends early');
    if (at < this.#start || at >= this.#end) {
      this.#start = at;
      this.#end = at + fs.readSync(this.#descriptor, this.#window, 0, this.#window.length, at);
    }
    return this.#window[at - this.#start]!;
  }
}

function fixed(kind: number, next: number): { value: number; next: number } {
  if (kind === FIXED64) return { value: 8, next };
  if (kind === FIXED32) return { value: 4, next };
  throw new RangeError('an unknown kind of field');
}
