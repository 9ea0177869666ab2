// Builds the graph of a model node by node; its large constants go into a file beside it, or into the graph.
import fs from 'node:fs';
import { encodeModel, externalTensor, node, tensor, value } from './proto.mjs';

const OPSET = 17;

/** Nodes in the order of computing. Every method that adds one returns the name of its output. */
export class Graph {
  #nodes = [];
  #constants = new Map(); // name -> tensor
  #inputs = [];
  #outputs = [];
  #count = 0;
  #file;
  #data = null; // descriptor of the file for large constants
  #dataBytes = 0;

  /** @param external whether large constants go into `file + '_data'` */
  constructor(file, { external }) {
    this.#file = file;
    if (external) this.#data = fs.openSync(`${file}_data`, 'w');
  }

  input(name, type, dims) {
    this.#inputs.push(value(name, type, dims));
    return name;
  }

  output(name, type, dims) {
    this.#outputs.push(value(name, type, dims));
  }

  /** Adds a node with one output, named or not. */
  add(opType, inputs, attributes = {}, output = `${opType}_${this.#count++}`) {
    this.#nodes.push(node(opType, inputs, [output], attributes));
    return output;
  }

  /** Adds a node with several named outputs. */
  addMany(opType, inputs, outputs, attributes = {}, domain = '') {
    this.#nodes.push(node(opType, inputs, outputs, attributes, domain));
  }

  /** A small constant of integers; the same one is kept once. `dims` of a scalar: []. */
  ints(values, dims = [values.length]) {
    const name = `int_${values.join('_')}_${dims.length}`;
    const bytes = Buffer.from(BigInt64Array.from(values, BigInt).buffer);
    if (!this.#constants.has(name)) this.#constants.set(name, tensor(name, 'int64', dims, bytes));
    return name;
  }

  /** A constant number. */
  float(number) {
    const name = `float_${number}`;
    if (!this.#constants.has(name))
      this.#constants.set(name, tensor(name, 'float32', [], Buffer.from(Float32Array.of(number).buffer)));
    return name;
  }

  /** A large constant from its bytes, or from a list of chunks of them. */
  weight(name, type, dims, chunks) {
    const list = Buffer.isBuffer(chunks) ? [chunks] : chunks;
    if (this.#data === null) {
      this.#constants.set(name, tensor(name, type, dims, Buffer.concat([...list])));
      return name;
    }
    const offset = this.#dataBytes;
    for (const chunk of list) this.#dataBytes += fs.writeSync(this.#data, chunk);
    const place = {
      file: `${this.#file.split(/[\\/]/).at(-1)}_data`,
      offset,
      length: this.#dataBytes - offset,
    };
    this.#constants.set(name, externalTensor(name, type, dims, place));
    return name;
  }

  /** Writes the file. */
  save() {
    if (this.#data !== null) fs.closeSync(this.#data);
    const graph = {
      name: 'main',
      node: this.#nodes,
      initializer: [...this.#constants.values()],
      input: this.#inputs,
      output: this.#outputs,
    };
    fs.writeFileSync(this.#file, encodeModel(graph, OPSET));
  }
}
