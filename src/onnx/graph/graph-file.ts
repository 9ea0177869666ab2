/** An ONNX file -> its graph as nodes that can be changed, and back to bytes. Weights are never read: the written bytes refer to them. */
import fs from 'node:fs';
import path from 'node:path';
import { invalid } from '../model-errors.ts';
import { BYTES, bytesField, type Field, floatField, numberField, Reader } from './protobuf.ts';

/** An attribute's bytes in the file, and its value if it is one or more integers. */
export type Attribute = { readonly name: string; readonly ints: readonly number[]; readonly bytes: Buffer };

/** One operator. Omitted inputs are empty strings. */
export type GraphNode = {
  readonly opType: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: readonly Attribute[];
};

/** Type number and sizes of a weight. */
export type WeightShape = { readonly type: number; readonly sizes: readonly number[] };

/** Field numbers of the format's messages. */
const MODEL = { graph: 7, opset: 8 };
const OPSET = { domain: 1, version: 2 };
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12, valueInfo: 13 };
const NODE = { input: 1, output: 2, opType: 4, attribute: 5, domain: 7 };
const ATTRIBUTE = { name: 1, float: 2, int: 3, tensor: 5, graph: 6, ints: 8, type: 20 };
/** Type numbers of attributes. */
const TYPES = { float: 1, int: 2, ints: 7 };
const TENSOR = { sizes: 1, type: 2, floats: 4, name: 8, rawData: 9, externalData: 13, location: 14 };
const ENTRY = { key: 1, value: 2 };
const VALUE = { name: 1, type: 2, tensor: 1, element: 1 };
/** Value that marks a tensor whose bytes are in another file. */
const EXTERNAL = 1;
const FLOAT32_BYTES = 4;
/** Tensors up to this size are copied: onnxruntime reads them while it optimizes the graph. */
const SMALL_BYTES = 1024;
/** onnxruntime's own operators. */
export const MICROSOFT = 'com.microsoft';

/** Reads a file. Fails with `MODEL_INVALID` if it is not in this format. */
export function readGraphFile(file: string): GraphFile {
  const descriptor = fs.openSync(file, 'r');
  try {
    const reader = new Reader(descriptor, fs.fstatSync(descriptor).size);
    const parts = new GraphFile(file);
    const domains = new Set<string>();
    for (const field of reader.fields(0, reader.size))
      if (field.number === MODEL.graph) parts.readGraph(reader, field);
      else {
        parts.rest.model.push(reader.bytes(field.start, field.end));
        if (field.number !== MODEL.opset) continue;
        const { domain, version } = readOpset(reader, field);
        if (domain === '' || domain === 'ai.onnx') parts.opset = Math.max(parts.opset, version);
        domains.add(domain);
      }
    if (parts.graphs !== 1 || parts.opset === 0) throw new RangeError('no graph');
    if (!domains.has(MICROSOFT)) parts.rest.model.push(bytesField(MODEL.opset, microsoftOpset()));
    return parts;
  } catch (cause) {
    throw invalid(`${file} is damaged, or not an ONNX model`, cause);
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Returns the bytes of a model with these nodes and outputs instead of the file's. Outputs that the file does not have are declared by
 * name. Weights are searched in the file's folder.
 */
export function writeGraph(file: GraphFile, nodes: readonly GraphNode[], outputs: readonly string[]): Buffer {
  const graph = [
    ...nodes.map((node) => bytesField(GRAPH.node, writeNode(node))),
    ...file.rest.graph,
    ...outputs.map((name) =>
      bytesField(GRAPH.output, file.outputs.get(name) ?? bytesField(VALUE.name, name)),
    ),
  ];
  return Buffer.concat([...file.rest.model, bytesField(MODEL.graph, Buffer.concat(graph))]);
}

function writeNode({ opType, domain, inputs, outputs, attributes }: GraphNode): Buffer {
  return Buffer.concat([
    ...inputs.map((name) => bytesField(NODE.input, name)),
    ...outputs.map((name) => bytesField(NODE.output, name)),
    bytesField(NODE.opType, opType),
    ...attributes.map(({ bytes }) => bytesField(NODE.attribute, bytes)),
    bytesField(NODE.domain, domain),
  ]);
}

/** Returns the integers of an attribute. Empty if the node has no such attribute. */
export function attributeOf({ attributes }: GraphNode, wanted: string): readonly number[] {
  return attributes.find(({ name }) => name === wanted)?.ints ?? [];
}

/** Creates a node. An attribute is an integer, a list of integers, or `{ float }`. */
export function makeNode(
  opType: string,
  inputs: readonly string[],
  outputs: readonly string[],
  attributes: Readonly<Record<string, number | readonly number[] | { readonly float: number }>> = {},
  domain = '',
): GraphNode {
  const written = Object.entries(attributes).map(([name, value]): Attribute => {
    const ints = typeof value === 'number' ? [value] : 'float' in value ? [] : value;
    const parts =
      typeof value === 'number'
        ? [numberField(ATTRIBUTE.int, value), numberField(ATTRIBUTE.type, TYPES.int)]
        : 'float' in value
          ? [floatField(ATTRIBUTE.float, value.float), numberField(ATTRIBUTE.type, TYPES.float)]
          : [
              ...value.map((one) => numberField(ATTRIBUTE.ints, one)),
              numberField(ATTRIBUTE.type, TYPES.ints),
            ];
    return { name, ints, bytes: Buffer.concat([bytesField(ATTRIBUTE.name, name), ...parts]) };
  });
  return { opType, domain, inputs, outputs, attributes: written };
}

/** Contents of a file without the weights. */
export class GraphFile {
  readonly file: string;
  /** All operators, including those of branches. */
  readonly operators = new Set<string>();
  /** Version of the standard operators. */
  opset = 0;
  graphs = 0;
  readonly nodes: GraphNode[] = [];
  /** True if there are operators in branches, whose nodes are not in `nodes`. */
  hasBranches = false;
  /** The graph's inputs and the numbers of their types. */
  readonly inputs = new Map<string, number>();
  /** The graph's outputs: names, and their declarations in the file. */
  readonly outputs = new Map<string, Buffer>();
  /** Values of constants that are one 32-bit float. */
  readonly floats = new Map<string, number>();
  /** Weights that no input can override. */
  readonly weights = new Map<string, WeightShape>();
  /** Everything else, to be written unchanged. */
  readonly rest: { readonly model: Buffer[]; readonly graph: Buffer[] } = { model: [], graph: [] };

  constructor(file: string) {
    this.file = file;
  }

  readGraph(reader: Reader, graph: Field): void {
    this.graphs += 1;
    for (const field of reader.fields(graph.from, graph.to))
      if (field.number === GRAPH.node) this.nodes.push(this.#readNode(reader, field));
      else if (field.number === GRAPH.initializer) {
        const { name, value, shape } = readTensor(reader, field);
        if (value !== null) this.floats.set(name, value);
        this.weights.set(name, shape);
        this.rest.graph.push(bytesField(GRAPH.initializer, referTo(reader, field, this.file)));
      } else if (field.number === GRAPH.output)
        this.outputs.set(readValue(reader, field).name, reader.bytes(field.from, field.to));
      else if (field.number !== GRAPH.valueInfo) {
        const { name, type } = field.number === GRAPH.input ? readValue(reader, field) : NO_VALUE;
        if (name !== '') this.inputs.set(name, type);
        this.rest.graph.push(reader.bytes(field.start, field.end));
      }
    for (const name of this.inputs.keys()) this.weights.delete(name);
  }

  #readNode(reader: Reader, field: Field): GraphNode {
    const node = {
      opType: '',
      domain: '',
      inputs: [] as string[],
      outputs: [] as string[],
      attributes: [] as Attribute[],
    };
    for (const part of reader.fields(field.from, field.to))
      if (part.number === NODE.input) node.inputs.push(reader.text(part));
      else if (part.number === NODE.output) node.outputs.push(reader.text(part));
      else if (part.number === NODE.opType) node.opType = reader.text(part);
      else if (part.number === NODE.domain) node.domain = reader.text(part);
      else if (part.number === NODE.attribute) {
        let name = '';
        const ints: number[] = [];
        for (const inner of reader.fields(part.from, part.to))
          if (inner.number === ATTRIBUTE.graph && inner.kind === BYTES) this.#readBranch(reader, inner);
          else if (inner.number === ATTRIBUTE.name) name = reader.text(inner);
          else if (inner.number === ATTRIBUTE.tensor && inner.kind === BYTES) {
            const { value } = readTensor(reader, inner);
            if (value !== null && node.outputs.length === 1) this.floats.set(node.outputs[0]!, value);
          } else if (inner.number === ATTRIBUTE.int || inner.number === ATTRIBUTE.ints)
            for (const number of reader.numbers(inner)) ints.push(number);
        node.attributes.push({ name, ints, bytes: reader.bytes(part.from, part.to) });
      }
    this.operators.add(node.opType);
    return node;
  }

  #readBranch(reader: Reader, graph: Field): void {
    this.hasBranches = true;
    for (const field of reader.fields(graph.from, graph.to))
      if (field.number === GRAPH.node) this.#readNode(reader, field);
  }
}

const NO_VALUE = { name: '', type: 0 };

/** Returns the name of an input or output, and the type number of its elements; 0 if unknown. */
function readValue(reader: Reader, value: Field): { name: string; type: number } {
  let { name, type } = NO_VALUE;
  for (const part of reader.fields(value.from, value.to))
    if (part.number === VALUE.name) name = reader.text(part);
    else if (part.number === VALUE.type)
      for (const inner of reader.fields(part.from, part.to))
        if (inner.number === VALUE.tensor)
          for (const field of reader.fields(inner.from, inner.to))
            if (field.number === VALUE.element) type = field.from;
  return { name, type };
}

/** Returns a tensor's name and shape, and its value if it is one 32-bit float. */
function readTensor(
  reader: Reader,
  tensor: Field,
): { name: string; value: number | null; shape: WeightShape } {
  let [name, type] = ['', 0];
  let value: number | null = null;
  const sizes: number[] = [];
  for (const field of reader.fields(tensor.from, tensor.to))
    if (field.number === TENSOR.type) type = field.from;
    else if (field.number === TENSOR.name) name = reader.text(field);
    else if (field.number === TENSOR.sizes) for (const size of reader.numbers(field)) sizes.push(size);
    else if (field.number === TENSOR.rawData || field.number === TENSOR.floats)
      if (field.to - field.from === FLOAT32_BYTES) value = reader.bytes(field.from, field.to).readFloatLE();
  return { name, value: type === TYPES.float ? value : null, shape: { type, sizes } };
}

/** Returns a tensor that refers to its position in `file` if it is large. */
function referTo(reader: Reader, tensor: Field, file: string): Buffer {
  const parts = [...reader.fields(tensor.from, tensor.to)];
  const raw = parts.find(({ number }) => number === TENSOR.rawData);
  if (!raw || raw.to - raw.from <= SMALL_BYTES) return reader.bytes(tensor.from, tensor.to);
  const entry = (key: string, value: string | number): Buffer =>
    bytesField(
      TENSOR.externalData,
      Buffer.concat([bytesField(ENTRY.key, key), bytesField(ENTRY.value, String(value))]),
    );
  return Buffer.concat([
    ...parts.filter((part) => part !== raw).map(({ start, end }) => reader.bytes(start, end)),
    entry('location', path.basename(file)),
    entry('offset', raw.from),
    entry('length', raw.to - raw.from),
    numberField(TENSOR.location, EXTERNAL),
  ]);
}

/** Returns an operator set and its version. */
function readOpset(reader: Reader, opset: Field): { domain: string; version: number } {
  let [domain, version] = ['', 0];
  for (const field of reader.fields(opset.from, opset.to))
    if (field.number === OPSET.domain) domain = reader.text(field);
    else if (field.number === OPSET.version) version = field.from;
  return { domain, version };
}

function microsoftOpset(): Buffer {
  return Buffer.concat([bytesField(OPSET.domain, MICROSOFT), numberField(OPSET.version, 1)]);
}
