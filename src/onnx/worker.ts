/** Graphs of a decoder -> its steps, on the compute thread. */
import type { InferenceSession } from 'onnxruntime-node';
import { describeDecoder } from './decoder.ts';
import { fuseAttention, giveFresh, readGraphFile, writeGraph } from './graph/index.ts';
import type { Decoder, DecoderSizes, GraphStep, SessionSettings, StartOptions } from './messages.ts';
import { unsupported } from './model-errors.ts';
import { loadRuntime } from './packages.ts';
import { createRunner } from './runner.ts';
import { serve } from './serve.ts';
import { openSession } from './session.ts';

/** The graphs to open, and sizes that they do not state. */
export type DecoderFiles = {
  readonly file: string;
  readonly sizes: DecoderSizes;
  /** The graph from ids to embeddings. Null if the decoder takes ids. */
  readonly embeddings: string | null;
};

type Opened = {
  readonly session: InferenceSession;
  readonly decoder: Decoder;
  readonly embeddings: InferenceSession | null;
};

let opened: Opened | null = null;
let runner: ReturnType<typeof createRunner> | null = null;

async function open({ file, sizes, embeddings }: DecoderFiles, settings: SessionSettings): Promise<Decoder> {
  const graph = readGraphFile(file);
  const changed = fuseAttention(graph, sizes) ?? giveFresh(graph, sizes);
  const bytes = changed ? writeGraph(graph, changed.nodes, changed.outputs) : null;
  const session = await openSession(file, settings, bytes);
  const operators = new Set([...graph.operators, ...(changed?.nodes ?? []).map(({ opType }) => opType)]);
  const { inputMetadata: inputs, outputMetadata: outputs } = session;
  const decoder = describeDecoder({ inputs, outputs }, operators, sizes, changed);
  if (decoder.takesEmbeddings !== (embeddings !== null))
    throw unsupported(
      decoder.takesEmbeddings
        ? `${file} takes inputs_embeds, and there is no embed_tokens*.onnx beside it`
        : `${file} takes input_ids, so that no picture can come in, but there is an embed_tokens*.onnx beside it`,
    );
  opened = {
    session,
    decoder,
    embeddings: embeddings === null ? null : await openEmbeddings(embeddings, settings),
  };
  return decoder;
}

/** Opens the graph from ids to embeddings. */
async function openEmbeddings(file: string, settings: SessionSettings): Promise<InferenceSession> {
  const session = await openSession(file, settings);
  const [output] = session.outputMetadata;
  if (session.inputNames.join() === 'input_ids' && output?.isTensor && output.type === 'float32')
    return session;
  throw unsupported(`${file}: expected a graph from input_ids to embeddings of float32`);
}

const methods = {
  open,
  async start(options: StartOptions): Promise<void> {
    runner = createRunner(opened!, (await loadRuntime()).Tensor, options);
  },
  step: (step: GraphStep): Promise<void> => runner!.step(step),
  save: (edits: Int32Array, slot: number): Uint8Array => runner!.save(edits, slot),
  load: (edits: Int32Array, slot: number, state: Uint8Array): boolean => runner!.load(edits, slot, state),
  async close(): Promise<void> {
    await opened?.session.release();
    await opened?.embeddings?.release();
  },
};

/** Methods of the decoder's thread. */
export type DecoderMethods = typeof methods;

serve(methods);
