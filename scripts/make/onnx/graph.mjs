// Builds the graph of a model node by node; its large constants go into files beside it, or into the graph.
import fs from 'node:fs';
import { toHalf } from './half.mjs';
import { encodeModel, externalTensor, node, tensor, value } from './proto.mjs';

/** Smaller constants, counted in numbers, stay in the graph. */
const SMALL_COUNT = 256;

/** Nodes in the order of execution. A method that adds one returns the name of its output. */
export class Graph {
  #nodes = [];
  #constants = new Map(); // name -> tensor
  #known = new Set(); // what is made once
  #inputs = [];
  #outputs = [];
  #count = 0;
  #file;
  #opset;
  #hasConstantNodes;
  #data = []; // for each file of large constants: its name, descriptor and size

  /**
   * @param dataFiles how many files large constants go into in turn, named `file + '_data'`, `'_data_1'` and so on; 0: into the graph
   * @param hasConstantNodes whether small constants are nodes, as exporters of torch write them, or initializers
   */
  constructor(file, { dataFiles = 0, opset = 17, hasConstantNodes = false } = {}) {
    this.#file = file;
    this.#opset = opset;
    this.#hasConstantNodes = hasConstantNodes;
    const name = file.split(/[\\/]/).at(-1);
    for (let i = 0; i < dataFiles; i++) {
      const ending = i === 0 ? '_data' : `_data_${i}`;
      this.#data.push({ name: name + ending, descriptor: fs.openSync(file + ending, 'w'), bytes: 0 });
    }
  }

  input(name, type, dims) {
    this.#inputs.push(value(name, type, dims));
    return name;
  }

  output(name, type, dims) {
    this.#outputs.push(value(name, type, dims));
  }

  /** Adds a node with one output, named or not. */
  add(opType, inputs, attributes = {}, output = this.#name(opType)) {
    this.#nodes.push(node(opType, inputs, [output], attributes));
    return output;
  }

  /** Adds a node with several named outputs. */
  addMany(opType, inputs, outputs, attributes = {}, domain = '') {
    this.#nodes.push(node(opType, inputs, outputs, attributes, domain));
  }

  /** Adds a node of onnxruntime's own operators with one output. */
  addFused(opType, inputs, attributes = {}, output = this.#name(opType)) {
    this.addMany(opType, inputs, [output], attributes, 'com.microsoft');
    return output;
  }

  /** A choice between two graphs that see everything of this one; `build*` name their outputs like those of this graph. */
  choose(condition, buildThen, buildElse) {
    const [then, other] = [this.#branch(buildThen), this.#branch(buildElse)];
    const outputs = then.output.map(({ name }) => name);
    this.addMany('If', [condition], outputs, { then_branch: { graph: then }, else_branch: { graph: other } });
    this.#outputs.push(...then.output);
  }

  #branch(build) {
    const [nodes, outputs, known] = [this.#nodes, this.#outputs, this.#known];
    [this.#nodes, this.#outputs, this.#known] = [[], [], new Set()];
    build();
    const graph = { name: 'branch', node: this.#nodes, output: this.#outputs };
    [this.#nodes, this.#outputs, this.#known] = [nodes, outputs, known];
    return graph;
  }

  #name(opType) {
    return `${opType}_${this.#count++}`;
  }

  /** A small constant of integers; equal ones are stored once. `dims` of a scalar: []. */
  ints(values, dims = [values.length]) {
    const bytes = Buffer.from(BigInt64Array.from(values, BigInt).buffer);
    return this.#constant(`int_${values.join('_')}_${dims.length}`, 'int64', dims, bytes);
  }

  /** A constant number. */
  float(number, type = 'float32') {
    const values = Float32Array.of(number);
    const bytes = Buffer.from((type === 'float16' ? toHalf(values) : values).buffer);
    return this.#constant(`${type}_${number}`, type, [], bytes);
  }

  #constant(name, type, dims, bytes) {
    if (!this.#hasConstantNodes) {
      if (!this.#constants.has(name)) this.#constants.set(name, tensor(name, type, dims, bytes));
      return name;
    }
    const value = { tensor: tensor('', type, dims, bytes) };
    this.once(name, () => this.add('Constant', [], { value }, name));
    return name;
  }

  /** Adds the nodes that compute `name`, unless this branch has them. */
  once(name, build) {
    if (!this.#known.has(name)) build();
    this.#known.add(name);
  }

  /** A large constant from its bytes, or from a list of chunks of them; the same name is written once. */
  weight(name, type, dims, chunks) {
    if (this.#constants.has(name)) return name;
    const list = Buffer.isBuffer(chunks) ? [chunks] : chunks;
    const isSmall = dims.reduce((product, size) => product * size, 1) < SMALL_COUNT;
    if (this.#data.length === 0 || isSmall) {
      this.#constants.set(name, tensor(name, type, dims, Buffer.concat([...list])));
      return name;
    }
    const file = this.#data[this.#constants.size % this.#data.length];
    const offset = file.bytes;
    for (const chunk of list) file.bytes += fs.writeSync(file.descriptor, chunk);
    const place = { file: file.name, offset, length: file.bytes - offset };
    this.#constants.set(name, externalTensor(name, type, dims, place));
    return name;
  }

  /** A large constant of 32-bit floats, written as 32- or 16-bit ones. */
  floats(name, type, dims, values) {
    const { buffer } = type === 'float16' ? toHalf(values) : values;
    return this.weight(name, type, dims, Buffer.from(buffer));
  }

  /** Writes the file. */
  save() {
    for (const { descriptor } of this.#data) fs.closeSync(descriptor);
    const graph = {
      name: 'main',
      node: this.#nodes,
      initializer: [...this.#constants.values()],
      input: this.#inputs,
      output: this.#outputs,
    };
    fs.writeFileSync(this.#file, encodeModel(graph, this.#opset));
  }
}
