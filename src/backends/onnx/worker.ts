/** Requests -> replies: the thread that computes, one request at a time. */
import type { InferenceSession } from 'onnxruntime-node';
import { errorAt, OnpolicyError } from '../../errors.ts';
import { describeDecoder } from './decoder.ts';
import { fuseAttention, giveFresh, readGraphFile, writeGraph } from './graph/index.ts';
import type { ComputeValue, Decoder, OpenRequest, Request } from './messages.ts';
import { loadRuntime } from './packages.ts';
import { Runner } from './runner.ts';
import { serve } from './serve.ts';
import { openSession, type SessionSettings } from './session.ts';

type Opened = {
  readonly session: InferenceSession;
  readonly decoder: Decoder;
  readonly embeddings: InferenceSession | null;
};

let opened: Opened | null = null;
let runner: Runner | null = null;

async function open(request: OpenRequest): Promise<Decoder> {
  const { file, sizes } = request;
  const graph = readGraphFile(file);
  const changed = fuseAttention(graph, sizes) ?? giveFresh(graph, sizes);
  const bytes = changed ? writeGraph(graph, changed.nodes, changed.outputs) : null;
  const session = await openSession(file, request, bytes);
  const operators = new Set([...graph.operators, ...(changed?.nodes ?? []).map(({ opType }) => opType)]);
  const { inputMetadata: inputs, outputMetadata: outputs } = session;
  const decoder = describeDecoder({ inputs, outputs }, operators, sizes, changed);
  if (decoder.takesEmbeddings !== (request.embeddings !== null))
    throw new OnpolicyError(
      'UNSUPPORTED',
      decoder.takesEmbeddings
        ? `model: ${file} takes inputs_embeds, and there is no embed_tokens*.onnx beside it`
        : `model: ${file} takes input_ids, so that no picture can come in, but there is an embed_tokens*.onnx beside it`,
      { param: 'model' },
    );
  const embeddings = request.embeddings === null ? null : await openEmbeddings(request.embeddings, request);
  opened = { session, decoder, embeddings };
  return decoder;
}

/** The graph from ids to embeddings. */
async function openEmbeddings(file: string, settings: SessionSettings): Promise<InferenceSession> {
  const session = await openSession(file, settings);
  const [output] = session.outputMetadata;
  if (session.inputNames.join() === 'input_ids' && output?.isTensor && output.type === 'float32')
    return session;
  throw errorAt('model', 'UNSUPPORTED', `${file}: expected a graph from input_ids to embeddings of float32`);
}

async function handle(request: Request): Promise<ComputeValue | undefined> {
  switch (request.kind) {
    case 'open':
      return await open(request);
    case 'start': {
      const { Tensor } = await loadRuntime();
      runner = new Runner(opened!, Tensor, request);
      return undefined;
    }
    case 'step':
      await runner!.step(request);
      return undefined;
    case 'save':
      runner!.edit(request.memoryEdits);
      return runner!.save(request.slot);
    case 'load':
      runner!.edit(request.memoryEdits);
      runner!.load(request.slot, request.state);
      return undefined;
    case 'close':
      runner = null;
      await opened?.session.release();
      await opened?.embeddings?.release();
      opened = null;
      return undefined;
  }
}

serve<Request, ComputeValue>(handle);
