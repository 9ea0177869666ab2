/** Requests of Ollama's API about models -> lists, facts, and downloads. */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { OnpolicyError } from '../../../errors.ts';
import { checkRequest, fault, throwFaults } from '../../../protocol/index.ts';
import { AnswerStream } from '../../../protocol/service/index.ts';
import { type RequestContext, unsupported } from './context.ts';
import { jsonLines } from './event-stream.ts';
import { requireModel } from './model-access.ts';
import { type ServedModel, servedModels } from './model-list.ts';
import { ownName } from './ollama-endpoints.ts';
import { answerResponse } from './stream-response.ts';
import { json, type ServedResponse } from './wire.ts';

/** Version of Ollama whose API this is. Clients refuse versions that are too old. */
const API_VERSION = '0.12.6';

/** `GET /api/version`. */
export async function ollamaVersion(): Promise<ServedResponse> {
  return json({ version: API_VERSION });
}

/** `GET /api/tags`: the models that requests can name. */
export async function ollamaTags(context: RequestContext): Promise<ServedResponse> {
  const models = await servedModels(context);
  return json({
    models: models.map((model) => ({ ...summary(model), capabilities: capabilitiesOf(model) })),
  });
}

/** `GET /api/ps`: the models of these that are in memory. */
export async function ollamaLoaded(context: RequestContext): Promise<ServedResponse> {
  const { service } = context;
  if (!service.loaded) throw unsupported('what is loaded');
  const loaded = new Map(service.loaded().map((resident) => [resident.path, resident]));
  const models = (await servedModels(context)).flatMap((model) => {
    const resident = loaded.get(model.card?.path ?? '');
    if (resident?.state !== 'ready') return [];
    const size = resident.memory?.total ?? 0;
    const until = { expires_at: NEVER, size_vram: 0, context_length: model.card!.contextSize };
    return [{ ...summary(model), size, ...until }];
  });
  return json({ models });
}

/** `POST /api/show`. */
export async function ollamaShow(context: RequestContext): Promise<ServedResponse> {
  const { served, asked } = await readModel(context);
  if (!served) throw new OnpolicyError('MODEL_NOT_FOUND', `model '${asked}' not found`);
  const { card } = served;
  const { details, modified_at } = summary(served);
  const { 'tokenizer.chat_template': _, ...metadata } = card?.metadata ?? {};
  return json({
    license: '',
    modelfile: '',
    parameters: card ? `num_ctx ${card.contextSize}` : '',
    template: card?.chatTemplate ?? '',
    system: '',
    details,
    model_info: { ...metadata, 'general.parameter_count': card?.parameters ?? null },
    capabilities: capabilitiesOf(served),
    modified_at,
  });
}

/** `POST /api/pull`: downloads a model unless its files are on this machine. */
export async function ollamaPull(context: RequestContext): Promise<ServedResponse> {
  const { service, call } = context;
  const { served, own, stream } = await readModel(context);
  const isHere = served?.card != null;
  if (!isHere && !service.download) throw unsupported('downloads');
  const loading = new AbortController();
  const signal = AbortSignal.any([call.signal, loading.signal]);
  const done = isHere ? Promise.resolve() : service.download!(own, { signal }).then(() => {});
  if (stream === false) {
    await done;
    return json({ status: 'success' });
  }
  const steps = new AnswerStream(pullSteps(done, own), () => loading.abort());
  return answerResponse(steps, { ...context, charge: () => {} }, jsonLines);
}

/** Time of unloading in lists, because the real one is not known in advance. */
const NEVER = '9999-12-31T23:59:59Z';

/** Milliseconds between progress lines of a download. */
const STEP_MS = 1000;

async function* pullSteps(done: Promise<void>, model: string): AsyncGenerator<{ status: string }> {
  const ended = done.then(() => true);
  ended.catch(() => {}); // it is awaited below
  yield { status: 'pulling manifest' };
  while (!(await Promise.race([ended, sleep(STEP_MS, false, { ref: false })])))
    yield { status: `pulling ${model}` };
  yield { status: 'success' };
}

type Named = {
  readonly asked: string;
  readonly own: string;
  readonly served: ServedModel | undefined;
  readonly stream: boolean | null | undefined;
};

/** Returns the model that a body names, and the facts about it. */
async function readModel(context: RequestContext): Promise<Named> {
  const body = checkRequest('OllamaModelRequest', await context.body(), context.validation);
  const { model, name, stream } = body;
  const asked = model || name || '';
  if (asked === '') throwFaults([fault(['model'], 'value', 'the name of a model', asked)]);
  const own = ownName(asked, context)!;
  await requireModel(context, { model: own });
  const served = (await servedModels(context)).find(({ id }) => id === own);
  return { asked, own, served, stream };
}

function capabilitiesOf({ card }: ServedModel): readonly string[] {
  return card?.capabilities ?? ['completion'];
}

/** Returns the entry of a model in lists. */
function summary({ id, card }: ServedModel) {
  const { path, bytes = 0, modifiedMs = 0, format = 'gguf', architecture = '' } = card ?? {};
  return {
    name: id,
    model: id,
    modified_at: new Date(modifiedMs).toISOString(),
    size: bytes,
    // Digest of path, size and time. Hashing the content would mean reading many gigabytes.
    digest: createHash('sha256').update(`${path} ${bytes} ${modifiedMs}`).digest('hex'),
    details: {
      parent_model: '',
      format,
      family: architecture,
      families: architecture === '' ? [] : [architecture],
      parameter_size: shortNumber(card?.parameters ?? 0),
      quantization_level: card?.weightType ?? '',
    },
  };
}

/** Returns a short form of a number, for example `7.6B`. */
function shortNumber(count: number): string {
  if (count >= 1e9) return `${(count / 1e9).toFixed(1)}B`;
  return count >= 1e6 ? `${(count / 1e6).toFixed(1)}M` : count > 0 ? `${(count / 1e3).toFixed(1)}K` : '';
}
