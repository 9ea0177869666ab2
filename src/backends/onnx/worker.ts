/** Requests -> replies: the thread that computes, one request at a time. */
import path from 'node:path';
import { type MessagePort, parentPort } from 'node:worker_threads';
import type { InferenceSession } from 'onnxruntime-node';
import { messageOf, OnpolicyError } from '../../errors.ts';
import { describeDecoder } from './decoder.ts';
import { fuseAttention, giveFresh, readGraphFile, writeGraph } from './graph/index.ts';
import type { Decoder, OpenRequest, Reply, Request } from './messages.ts';
import { loadRuntime } from './packages.ts';
import { Runner } from './runner.ts';

type Opened = { readonly session: InferenceSession; readonly decoder: Decoder };

let opened: Opened | null = null;
let runner: Runner | null = null;

async function open({ file, threads, providers, sizes }: OpenRequest): Promise<Decoder> {
  const { InferenceSession } = await loadRuntime();
  const graph = readGraphFile(file);
  const changed = fuseAttention(graph, sizes) ?? giveFresh(graph, sizes);
  const options: InferenceSession.SessionOptions = {
    executionProviders: [...providers],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    graphOptimizationLevel: 'all',
    logSeverityLevel: 3,
    extra: {
      session: {
        // Between steps the cores belong to the sampler and to JavaScript: threads sleep, not spin.
        force_spinning_stop: '1',
        model_external_initializers_file_folder_path: path.dirname(file),
      },
    },
  };
  const loading = changed
    ? InferenceSession.create(writeGraph(graph, changed.nodes, changed.outputs), options)
    : InferenceSession.create(file, options);
  const session = await loading.catch((cause: unknown) => {
    throw new OnpolicyError('MODEL_INVALID', `model: ${file} cannot be loaded: ${messageOf(cause)}`, {
      cause,
    });
  });
  const operators = new Set([...graph.operators, ...(changed?.nodes ?? []).map(({ opType }) => opType)]);
  const { inputMetadata: inputs, outputMetadata: outputs } = session;
  const decoder = describeDecoder({ inputs, outputs }, operators, sizes, changed);
  opened = { session, decoder };
  return decoder;
}

async function handle(request: Request): Promise<Decoder | Uint8Array | undefined> {
  switch (request.kind) {
    case 'open':
      return await open(request);
    case 'start': {
      const { Tensor } = await loadRuntime();
      runner = new Runner(opened!.session, opened!.decoder, Tensor, request);
      return undefined;
    }
    case 'step':
      await runner!.step(request);
      return undefined;
    case 'save':
      return runner!.save(request.slot);
    case 'load':
      runner!.edit(request.memoryEdits);
      runner!.load(request.slot, request.state);
      return undefined;
    case 'close':
      runner = null;
      await opened?.session.release();
      opened = null;
      return undefined;
  }
}

async function reply(port: MessagePort, request: Request): Promise<void> {
  let answer: Reply;
  try {
    const value = await handle(request);
    answer = value === undefined ? { kind: 'done' } : { kind: 'done', value };
  } catch (error) {
    const { code } = error as { code?: string };
    const known = error instanceof OnpolicyError ? error.code : code === 'KV_FULL' ? code : 'BACKEND_FAILED';
    answer = { kind: 'failed', code: known, message: messageOf(error) };
  }
  port.postMessage(answer);
  if (request.kind === 'close') port.close();
}

// Requests come one at a time: the next one is sent when this one is answered.
parentPort?.on('message', (request: Request) => reply(parentPort!, request));
