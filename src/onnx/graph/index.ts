/** The graph of an ONNX file -> a faster graph with the same results, as bytes: `graph-file`, `fuse` (and its parts), `fresh`. */
export { type FreshGraph, GROUPED, giveFresh } from './fresh.ts';
export { fuseAttention } from './fuse.ts';
export { readGraphFile, writeGraph } from './graph-file.ts';
