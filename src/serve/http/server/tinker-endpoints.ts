/** Tinker's API: sessions, steps of training and samples. A client asks for the result of a request by its id. */
import { randomUUID } from 'node:crypto';
import { errorAt, OnpolicyError } from '../../../errors.ts';
import {
  checkRequest,
  type Requests,
  type TextCompletion,
  type TextCompletionRequest,
} from '../../../protocol/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import {
  openData,
  readData,
  readSamplerId,
  samplerId,
  type Tinker,
  type TinkerCaller,
  tinkerOf,
  toSamples,
} from '../../wires/index.ts';
import { type EndpointHandler, limit, type RequestContext, unsupported } from './context.ts';
import { readBody } from './method-endpoints.ts';
import { requireModel } from './model-access.ts';
import { servedModels } from './model-list.ts';
import { bytes, json } from './wire.ts';

/** Content type of messages of protocol buffers. */
const PROTOBUF = 'application/x-protobuf';

/** Bytes of data of requests under way and of results that are kept, as a multiple of the most bytes of a body. */
const MOST_BODIES = 8;

/** Milliseconds after which a client has to ask again for a result, so that its connection is not cut. */
const WAIT_MS = 20_000;

/** `POST /api/v1/client/config`: what the client does in this server's stead. */
export const showClientConfig: EndpointHandler = async (context) => {
  checkRequest('TinkerConfigBody', await context.body(), context.validation);
  return json({
    pjwt_auth_enabled: false,
    create_model_via_load_weights: false,
    proto_compress_fwdbwd: false,
    use_pyqwest_transport: false,
  });
};

/** `POST /api/v1/client/dynamic_config`: the same while it runs. */
export const showClientChanges: EndpointHandler = async (context) => {
  checkRequest('TinkerConfigBody', await context.body(), context.validation);
  return json({ refresh_interval_sec: 300 });
};

/** `POST /api/v1/telemetry`. */
export const dropTelemetry: EndpointHandler = async (context) => {
  checkRequest('TinkerTelemetryBody', await context.body(), context.validation);
  return json({ status: 'accepted' });
};

/** `GET /api/v1/get_server_capabilities`. */
export const showCapabilities: EndpointHandler = async (context) => {
  const models = await servedModels(context);
  const supported_models = models.flatMap(({ id, card, adapter }) =>
    !adapter && card?.capabilities.includes('completion')
      ? [{ model_name: id, max_context_length: card.contextSize }]
      : [],
  );
  return json({ supported_models });
};

/** `POST /api/v1/create_session`. A session is the name under which a client numbers what it makes. */
export const createSession: EndpointHandler = async (context) => {
  checkRequest('TinkerSessionBody', await context.body(), context.validation);
  return json({ type: 'create_session', session_id: randomUUID() });
};

/** `POST /api/v1/session_heartbeat`. */
export const keepSession: EndpointHandler = async (context) => {
  checkRequest('TinkerHeartbeatBody', await context.body(), context.validation);
  return json({ type: 'session_heartbeat' });
};

/** `POST /api/v1/create_model`. */
export const createModel: EndpointHandler = async (context) => {
  const body = checkRequest('TinkerModelBody', await context.body(), context.validation);
  await requireModel(context, body);
  return json({ request_id: tinkerIn(context).createModel(body, callerIn(context)) });
};

/** `POST /api/v1/get_info`. */
export const showModel: EndpointHandler = async (context) => {
  const { model_id } = checkRequest('TinkerModelIdBody', await context.body(), context.validation);
  return json(await tinkerIn(context).info(model_id, callerIn(context)));
};

/** `POST /api/v1/unload_model`. */
export const unloadModel: EndpointHandler = async (context) => {
  const { model_id } = checkRequest('TinkerModelIdBody', await context.body(), context.validation);
  return json({ request_id: tinkerIn(context).unload(model_id, callerIn(context)), model_id });
};

/** `POST /api/v1/weights_info`. */
export const showWeights: EndpointHandler = async (context) => {
  const { tinker_path } = checkRequest('TinkerWeightsBody', await context.body(), context.validation);
  return json(await tinkerIn(context).weightsInfo(tinker_path, callerIn(context)));
};

/** `POST /api/v1/forward_backward`, which also stands for a pass without gradients. */
export const learnData: EndpointHandler = async (context) => {
  const { headers } = context.request;
  const type = headers.get('content-type') ?? '';
  if (type.split(';')[0]!.trim().toLowerCase() !== PROTOBUF)
    throw errorAt(
      'Content-Type',
      'INVALID_REQUEST',
      `expected ${PROTOBUF}, got ${type.slice(0, 100) || 'nothing'}`,
    );
  const step = openData(await context.bytes());
  return await begin(context, step, async (tinker, caller) => {
    const { maxBodyBytes, maxTrajectories } = context.settings;
    const request = readData(step.message, maxBodyBytes / 8);
    limit('data', request.data.length, maxTrajectories);
    return await tinker.learn(
      step,
      checkRequest('RunDataRequest', request, {}),
      caller,
      MOST_BODIES * maxBodyBytes,
    );
  });
};

/** `POST /api/v1/optim_step`. */
export const takeStep = step('TinkerStepBody', (tinker, body, caller) => tinker.step(body, caller));

/** `POST /api/v1/save_weights`. */
export const saveWeights = step('TinkerSaveBody', (tinker, body, caller) => tinker.save(body, caller));

/** `POST /api/v1/load_weights`. */
export const loadWeights = step('TinkerLoadBody', (tinker, body, caller) => tinker.load(body, caller));

/** `POST /api/v1/save_weights_for_sampler`. */
export const publishWeights = step('TinkerPublishBody', (tinker, body, caller) =>
  tinker.publish(body, caller),
);

/** `POST /api/v1/create_sampling_session`. */
export const createSamplingSession: EndpointHandler = async (context) => {
  const body = checkRequest('TinkerSamplingSessionBody', await context.body(), context.validation);
  await requireModel(context, body);
  const sampler = await tinkerIn(context).samplerOf(body, callerIn(context));
  const sampling_session_id = samplerId(body.session_id, body.sampling_session_seq_id, sampler);
  return json({ type: 'create_sampling_session', sampling_session_id });
};

/** `GET /api/v1/samplers/{id}`. */
export const showSampler: EndpointHandler = async ({ id }) => {
  const { base_model, model_path } = readSamplerId(id, 'id');
  return json({ sampler_id: id, base_model, ...(model_path === null ? {} : { model_path }) });
};

/** `POST /api/v1/asample`. */
export const sample: EndpointHandler = async (context) => {
  const body = checkRequest('TinkerSampleBody', await context.body(), context.validation);
  await requireModel(context, body);
  const { service } = context;
  const [tinker, caller] = [tinkerIn(context), callerIn(context)];
  const { model } = await tinker.samplerOf(body, caller);
  limit('num_samples', body.num_samples ?? 1, context.settings.maxChoices);
  const { request, paths } = toSamples(body, model);
  const checked = (await paths.run(() =>
    readBody('createTextCompletion', request, context),
  )) as TextCompletionRequest;
  if (!hasMethod(service, 'createTextCompletion')) throw unsupported('text completions');
  const ask = () =>
    paths.run(
      async () =>
        (await callChecked(service, 'createTextCompletion', checked, caller.call)) as TextCompletion,
    );
  return json({ request_id: tinker.sample(body, request.prompt, ask, caller) });
};

/** `POST /api/v1/retrieve_future`: the result of a request. */
export const readResult: EndpointHandler = async (context) => {
  const { request_id } = checkRequest('TinkerFutureBody', await context.body(), context.validation);
  const state = await tinkerIn(context).read(request_id, WAIT_MS, callerIn(context), context.call.signal);
  switch (state.status) {
    case 'pending':
      return json({ type: 'try_again', request_id, queue_state: 'active' }, 408);
    case 'completed': {
      const { result } = state;
      return result instanceof Uint8Array ? bytes(result, PROTOBUF) : json(result);
    }
    case 'failed': {
      const { message, status } = context.toError(state.error);
      return json({ error: message, category: status < 500 && status !== 429 ? 'user' : 'server' });
    }
    default:
      return state satisfies never;
  }
};

type StepName = 'TinkerStepBody' | 'TinkerSaveBody' | 'TinkerLoadBody' | 'TinkerPublishBody';

/** Returns an endpoint that begins a step. */
function step<Name extends StepName>(
  name: Name,
  start: (tinker: Tinker, body: Requests[Name], caller: TinkerCaller) => Promise<string>,
): EndpointHandler {
  return async (context) => {
    const given = await context.body();
    return await begin(context, (given ?? {}) as object, async (tinker, caller) =>
      start(tinker, checkRequest(name, given, context.validation), caller),
    );
  };
}

/** Codes of errors that a client's next attempt at the same step would meet again. */
const FINAL: readonly string[] = ['INVALID_REQUEST', 'TOO_LARGE'];

/** Begins a step. If its request is refused, the steps after it do not wait for it. */
async function begin(
  context: RequestContext,
  { model_id, seq_id }: { readonly model_id?: unknown; readonly seq_id?: unknown },
  start: (tinker: Tinker, caller: TinkerCaller) => Promise<string>,
) {
  const [tinker, caller] = [tinkerIn(context), callerIn(context)];
  try {
    return json({ request_id: await start(tinker, caller), model_id });
  } catch (error) {
    const isFinal = error instanceof OnpolicyError && FINAL.includes(error.code);
    if (isFinal && typeof model_id === 'string' && Number.isInteger(seq_id))
      await tinker.refuse(model_id, seq_id as number, caller).catch(() => {}); // the client gets the first error
    throw error;
  }
}

function tinkerIn({ service }: RequestContext): Tinker {
  if (!service.trainingRuns) throw unsupported('training runs');
  return tinkerOf(service, service.trainingRuns);
}

/** Returns the client, whose work goes on when this request has been answered. */
function callerIn({ call: { signal: _, ...call } }: RequestContext): TinkerCaller {
  return { owner: call.clientKey, call };
}
