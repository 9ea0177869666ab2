/** Helpers of the tests of Tinker's API: a server with the embedded model, and requests to it as the package sends them. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { EMBEDDED_MODEL } from '../../../../src/models/named-models.ts';
import { createRuntime, type Runtime } from '../../../../src/runtime/runtime.ts';
import { createHandler, type Handler } from '../../../../src/serve/http/server/handler.ts';
import {
  bytesField,
  doubleField,
  floatBytes,
  floatsIn,
  int32Bytes,
  int64Bytes,
  messageField,
  ProtobufMessage,
  varintField,
} from '../../../../src/serve/wires/tinker/protobuf.ts';

/** The runtime of the server. */
export let runtime: Runtime;
let handler: Handler;

/** Opens the server for the tests of a file. */
export function openServer(): void {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-tinker-'));
  beforeAll(async () => {
    runtime = await createRuntime({ home, gpu: false, threads: 1, models: { small: EMBEDDED_MODEL } });
    handler = createHandler(runtime, { allowAnonymous: true });
  });
  afterAll(async () => {
    await runtime.close();
    fs.rmSync(home, { recursive: true });
  });
}

const PROTOBUF = 'application/x-protobuf';

/** Sends a request. A message is sent as one, all else as JSON. */
export async function send(
  at: string,
  body: object | Uint8Array | null,
  method = 'POST',
  headers: Record<string, string> = {},
) {
  const type = body instanceof Uint8Array ? PROTOBUF : 'application/json';
  const content = body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
  const response = await handler(
    new Request(`http://here/api/v1/${at}`, {
      method,
      headers: { 'content-type': type, accept: PROTOBUF, ...headers },
      ...(body === null ? {} : { body: content }),
    }),
  );
  const isMessage = response.headers.get('content-type') === PROTOBUF;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of any endpoint
  const answer: any = isMessage ? new Uint8Array(await response.arrayBuffer()) : await response.json();
  return { status: response.status, ignored: response.headers.get('x-ignored-fields'), body: answer };
}

/** The result of a request that was begun. */
export async function resultOf(begun: Promise<{ body: { request_id?: string } }>) {
  const { body } = await begun;
  expect(body).toMatchObject({ request_id: expect.any(String) });
  for (;;) {
    const { status, body: result } = await send('retrieve_future', {
      request_id: body.request_id,
      allow_metadata_only: true,
    });
    if (status !== 408) return result;
    expect(result).toEqual({ type: 'try_again', request_id: body.request_id, queue_state: 'active' });
  }
}

let models = 0;

/** The id of a new model. */
export async function createModel(seed = 3): Promise<string> {
  const lora_config = { rank: 4, seed, train_mlp: true, train_attn: true, train_unembed: true };
  const request = { session_id: 'here', model_seq_id: models++, base_model: 'small', lora_config };
  const { type, model_id } = await resultOf(send('create_model', request));
  expect(type).toBe('create_model');
  return model_id;
}

const tokens = [5, 9, 14, 3, 8, 21, 30];
const targets = tokens.slice(1);
type Columns = Readonly<Record<string, readonly number[]>>;

function tensor(name: string, values: readonly number[]): Uint8Array {
  const isId = name === 'target_tokens';
  const numbers = bytesField(1, isId ? int64Bytes(values) : floatBytes(values));
  const shape = varintField(4, values.length);
  return messageField(2, bytesField(1, name), messageField(2, numbers, varintField(3, isId ? 2 : 1), shape));
}

/** A body of `forward_backward` with one datum. */
export function dataBody(
  model: string,
  seq: number,
  loss: string,
  columns: Columns,
  { config = {}, isForward = false, input = tokens.slice(0, -1) } = {},
): Uint8Array {
  const chunk = messageField(1, messageField(1, bytesField(1, int32Bytes(input))));
  const inputs = Object.entries({ target_tokens: targets, ...columns }).map(([name, values]) =>
    tensor(name, values),
  );
  return Buffer.concat([
    bytesField(1, model),
    varintField(2, seq),
    messageField(3, chunk, ...inputs),
    bytesField(4, loss),
    ...Object.entries(config as Record<string, number>).map(([name, value]) =>
      messageField(5, bytesField(1, name), doubleField(2, value)),
    ),
    ...(isForward ? [varintField(6, 1)] : []),
  ]);
}

/** Log-probabilities of all data, and metrics, of an answer to a step on data. */
export function readOutput(bytes: Uint8Array) {
  const message = new ProtobufMessage(bytes);
  const logprobs = message.messages(2).flatMap((record) =>
    record.entries(2).flatMap(([name, entry]) => {
      expect(name).toBe('logprobs');
      return floatsIn(entry.message(2)!.bytes(1)!)!;
    }),
  );
  return {
    logprobs,
    metrics: Object.fromEntries(message.entries(3).map(([name, one]) => [name, one.double(2)])),
  };
}

/** The output of a step on data. */
export const learn = async (...args: Parameters<typeof dataBody>) =>
  readOutput(await resultOf(send('forward_backward', dataBody(...args))));
/** The result of an optimizer step. */
export const stepTo = (model_id: string, seq_id: number) =>
  resultOf(send('optim_step', { model_id, seq_id, adam_params: { learning_rate: 1e-2 } }));
