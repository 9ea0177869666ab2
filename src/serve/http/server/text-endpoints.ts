/** Endpoints of vLLM and llama.cpp that are answered by text completions: tokens in and out, texts between two others. */
import { randomUUID } from 'node:crypto';
import {
  checkRequest,
  fault,
  type PathTranslation,
  type TextCompletion,
  type TextCompletionChunk,
  type TextCompletionRequest,
  throwFaults,
  toPrompts,
} from '../../../protocol/index.ts';
import { AnswerStream } from '../../../protocol/service/index.ts';
import { callChecked, hasMethod } from '../../checked-calls.ts';
import {
  fromInfill,
  samplingParamsOf,
  toGenerated,
  toGeneratedChunk,
  toInfill,
  toInfillParts,
  toTextCompletion,
  toTextRequest,
} from '../../wires/index.ts';
import { type EndpointHandler, type RequestContext, unsupported } from './context.ts';
import { answerCounted } from './counted-answer.ts';
import { chunkEvents, type EventFormat } from './event-stream.ts';
import { readBody } from './method-endpoints.ts';
import { requireModel } from './model-access.ts';
import { answerResponse } from './stream-response.ts';
import { json } from './wire.ts';

/** `POST /inference/v1/generate`. */
export const generate: EndpointHandler = async (context) => {
  const body = checkRequest('GenerateBody', await context.body(), context.validation);
  const { ask, request, paths } = await readText(toTextRequest(body), context);
  return await paths.run(() =>
    answerCounted(request, context, async (asked) => {
      const answer = await ask(asked);
      if (!isStream(answer)) return toGenerated(answer, body);
      const parts = (async function* () {
        for await (const chunk of answer) yield toGeneratedChunk(chunk, body);
      })();
      return new AnswerStream(parts, () => answer.abort());
    }),
  );
};

/** `POST /v1/completions/render`: bodies for {@link generate}, one per prompt. */
export const renderTexts: EndpointHandler = async (context) => {
  const request = (await readBody(
    'createTextCompletion',
    await context.body(),
    context,
  )) as TextCompletionRequest;
  const { service } = context;
  if (!service.tokenize) throw unsupported('tokens');
  const sampling_params = samplingParamsOf(request);
  const { prompt, model, add_special_tokens, request_id = randomUUID() } = request;
  const settings = { addSpecialTokens: add_special_tokens ?? true, parseSpecial: true };
  const own = model ? { model } : {};
  const bodies: object[] = [];
  for (const [i, { content }] of toPrompts('prompt', prompt).entries()) {
    const token_ids =
      typeof content === 'string' ? await service.tokenize(content, { ...own, ...settings }) : content;
    bodies.push({ request_id: `${request_id}-${i}`, ...own, token_ids, sampling_params });
  }
  return json(bodies);
};

/** `POST /v1/completions/derender`: answers of {@link generate} as a text completion. */
export const derenderTexts: EndpointHandler = async (context) => {
  const { service, validation } = context;
  const body = checkRequest('DerenderBody', await context.body(), validation);
  const { model, generate_responses: answers, prompt_tokens } = body;
  if (prompt_tokens && prompt_tokens.length !== answers.length)
    throwFaults([
      fault(['prompt_tokens'], 'length', `${answers.length}, one for each answer`, prompt_tokens),
    ]);
  await requireModel(context, { model });
  if (!service.detokenize) throw unsupported('tokens');
  const settings = { skipSpecialTokens: true, ...(model ? { model } : {}) };
  const header = {
    created: Math.floor(Date.now() / 1000),
    model: model || (service.servedModels?.()[0] ?? ''),
  };
  const textOf = (ids: readonly number[]): Promise<string> => service.detokenize!(ids, settings);
  const counts = prompt_tokens ?? answers.map(({ usage }) => usage?.prompt_tokens ?? 0);
  return json(await toTextCompletion(answers, counts, header, textOf));
};

/** Events without `[DONE]`, as llama.cpp sends them. */
const INFILL_EVENTS: EventFormat = { ...chunkEvents, end: '' };

/** `POST /infill`. */
export const infill: EndpointHandler = async (context) => {
  const body = checkRequest('InfillBody', await context.body(), context.validation);
  const { ask, request, paths } = await readText(fromInfill(body), context);
  const asked = request.stream ? { ...request, stream_options: { include_usage: true } } : request;
  const answer = await paths.run(() => ask(asked));
  if (!isStream(answer)) return answerResponse(toInfill(answer), context);
  const parts = new AnswerStream(toInfillParts(answer), () => answer.abort());
  return answerResponse(parts, context, INFILL_EVENTS);
};

type TextAnswer = TextCompletion | AnswerStream<TextCompletionChunk>;

function isStream(answer: TextAnswer): answer is AnswerStream<TextCompletionChunk> {
  return Symbol.asyncIterator in answer;
}

type ReadText = {
  readonly request: TextCompletionRequest;
  readonly paths: PathTranslation;
  readonly ask: (request: TextCompletionRequest) => Promise<TextAnswer>;
};

/** Checks a translated request and returns how to ask it. */
async function readText(
  { request, paths }: Pick<ReadText, 'request' | 'paths'>,
  context: RequestContext,
): Promise<ReadText> {
  const { service, call } = context;
  const checked = (await paths.run(() =>
    readBody('createTextCompletion', request, context),
  )) as TextCompletionRequest;
  if (!hasMethod(service, 'createTextCompletion')) throw unsupported('text completions');
  const ask = (asked: TextCompletionRequest) =>
    callChecked(service, 'createTextCompletion', asked, call) as Promise<TextAnswer>;
  return { request: checked, paths, ask };
}
