// A model graph as plain objects -> the bytes of an ONNX file. Knows only the messages and fields used here.
import protobuf from 'protobufjs';

const { root } = protobuf.parse(`
syntax = "proto2";
message Model { optional int64 ir_version = 1; optional string producer_name = 2; optional Graph graph = 7; repeated Opset opset_import = 8; }
message Opset { optional string domain = 1; optional int64 version = 2; }
message Graph { repeated Node node = 1; optional string name = 2; repeated Tensor initializer = 5; repeated Value input = 11; repeated Value output = 12; }
message Node { repeated string input = 1; repeated string output = 2; optional string name = 3; optional string op_type = 4; repeated Attribute attribute = 5; optional string domain = 7; }
message Attribute { optional string name = 1; optional float f = 2; optional int64 i = 3; optional Tensor t = 5; optional Graph g = 6; repeated int64 ints = 8; optional int32 type = 20; }
message Tensor { repeated int64 dims = 1; optional int32 data_type = 2; optional string name = 8; optional bytes raw_data = 9; repeated Entry external_data = 13; optional int32 data_location = 14; }
message Entry { optional string key = 1; optional string value = 2; }
message Value { optional string name = 1; optional Type type = 2; }
message Type { optional TensorType tensor_type = 1; }
message TensorType { optional int32 elem_type = 1; optional Shape shape = 2; }
message Shape { repeated Dimension dim = 1; }
message Dimension { optional int64 dim_value = 1; optional string dim_param = 2; }
`);
const Model = root.lookupType('Model');

/** Element types: their numbers in the format. */
export const TYPES = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9, float16: 10 };

/** Type numbers of attributes. */
const FLOAT = 1;
const INT = 2;
const TENSOR = 4;
const GRAPH = 5;
const INTS = 7;
/** A tensor whose bytes lie in another file. */
const EXTERNAL = 1;

/** An attribute: a number is an integer, a list integers, anything else `{ float }`, `{ tensor }` or `{ graph }`. */
function attribute(name, value) {
  if (Array.isArray(value)) return { name, ints: value, type: INTS };
  if (typeof value === 'number') return { name, i: value, type: INT };
  if (value.tensor) return { name, t: value.tensor, type: TENSOR };
  if (value.graph) return { name, g: value.graph, type: GRAPH };
  return { name, f: value.float, type: FLOAT };
}

/** A node of the graph. Inputs that are left out are empty strings. */
export function node(opType, inputs, outputs, attributes = {}, domain = '') {
  return {
    input: inputs,
    output: outputs,
    name: `${opType}/${outputs[0]}`,
    opType,
    attribute: Object.entries(attributes).map(([name, value]) => attribute(name, value)),
    ...(domain === '' ? {} : { domain }),
  };
}

/** A constant of the graph with its bytes. */
export function tensor(name, type, dims, bytes) {
  return { name, dims, dataType: TYPES[type], rawData: bytes };
}

/** A constant whose bytes lie in `file`, from `offset` on. */
export function externalTensor(name, type, dims, { file, offset, length }) {
  const externalData = Object.entries({ location: file, offset, length }).map(([key, value]) => ({
    key,
    value: String(value),
  }));
  return { name, dims, dataType: TYPES[type], externalData, dataLocation: EXTERNAL };
}

/** An input or output: dimensions that are strings are free. */
export function value(name, type, dims) {
  const dim = dims.map((size) => (typeof size === 'number' ? { dimValue: size } : { dimParam: size }));
  return { name, type: { tensorType: { elemType: TYPES[type], shape: { dim } } } };
}

/** The bytes of a whole file. `opset` is that of the standard operators. */
export function encodeModel(graph, opset) {
  const opsetImport = [
    { domain: '', version: opset },
    { domain: 'com.microsoft', version: 1 },
  ];
  return Buffer.from(
    Model.encode(Model.fromObject({ irVersion: 8, producerName: 'onpolicy', graph, opsetImport })).finish(),
  );
}
