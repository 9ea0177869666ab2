/** Results of training runs and text completions -> the answers of Tinker's API, messages of protocol buffers. */
import type { TextCompletion, TrainingRunResult } from '../../../protocol/index.ts';
import {
  bytesField,
  doubleField,
  floatBytes,
  int32Bytes,
  int64Bytes,
  messageField,
  varintField,
} from './protobuf.ts';

const FLOAT32 = 1;
const RECORD = 'ArrayRecord';

type Output = NonNullable<TrainingRunResult['loss_fn_outputs']>[number]['logprobs'];

/** Returns the answer to a step on data: the log-probability of every target, and the sum of the loss. */
export function toDataAnswer({
  loss_fn_outputs = [],
  metrics = {},
}: TrainingRunResult): Uint8Array<ArrayBuffer> {
  const outputs = loss_fn_outputs.map(({ logprobs }) => logprobs);
  const records = ofOneWidth(outputs).map((some) =>
    messageField(
      2,
      bytesField(1, RECORD),
      messageField(2, bytesField(1, 'logprobs'), messageField(2, ...batchOf(some))),
      varintField(3, some.length),
    ),
  );
  const sum = metrics['loss:sum'] ?? 0;
  const ofLoss = messageField(3, bytesField(1, 'loss:sum'), doubleField(2, sum));
  return Buffer.concat([bytesField(1, RECORD), ...records, ofLoss]);
}

/** Returns runs of outputs with the same number of targets per position. */
function ofOneWidth(outputs: readonly Output[]): Output[][] {
  const runs: Output[][] = [];
  for (const output of outputs) {
    const last = runs.at(-1);
    if (last && last[0]!.shape[1] === output.shape[1]) last.push(output);
    else runs.push([output]);
  }
  return runs;
}

/** Returns the fields of the numbers of several outputs, one after the other, with the byte at which each begins. */
function batchOf(outputs: readonly Output[]): Uint8Array[] {
  const starts = [0];
  for (const { data } of outputs) starts.push(starts.at(-1)! + 4 * data.length);
  return [
    bytesField(1, Buffer.concat(outputs.map(({ data }) => floatBytes(data)))),
    bytesField(2, int64Bytes(starts)),
    varintField(3, FLOAT32),
    ...outputs[0]!.shape.slice(1).map((width) => varintField(4, width)),
  ];
}

/** Placeholder of a missing log-probability among the likeliest tokens of a position. */
const NO_LOGPROB = -99_999;

/** Fields of a request that decide what its answer has. */
type Asked = {
  readonly num_samples?: number | undefined;
  readonly prompt_logprobs?: boolean | null | undefined;
  readonly topk_prompt_logprobs?: number | null | undefined;
};

/** Returns the answer to a request for samples. */
export function toSampleAnswer(
  { choices, usage }: TextCompletion,
  prompt: readonly number[],
  { num_samples = 1, prompt_logprobs, topk_prompt_logprobs }: Asked,
): Uint8Array<ArrayBuffer> {
  const places = choices[0]!.prompt_logprobs ?? [];
  const top = topk_prompt_logprobs ?? 0;
  const own = prompt.map((token, i) => places[i]?.[token]?.logprob ?? Number.NaN);
  const sequences = choices.map(({ token_ids, logprobs, finish_reason }) =>
    messageField(
      1,
      varintField(1, finish_reason === 'stop' ? 0 : 1),
      bytesField(2, int32Bytes(token_ids!)),
      bytesField(3, floatBytes(logprobs!.token_logprobs)),
    ),
  );
  return Buffer.concat([
    ...Array.from({ length: num_samples }, (_, i) => sequences[i % sequences.length]!), // all are the same if only one was asked for
    ...(prompt_logprobs ? [bytesField(2, floatBytes(own))] : []),
    ...(top > 0 ? [messageField(3, ...likeliest(places, prompt.length, top))] : []),
    varintField(4, usage.prompt_tokens_details?.cached_tokens ?? 0),
  ]);
}

type Places = NonNullable<TextCompletion['choices'][number]['prompt_logprobs']>;

/** Returns the fields of the likeliest tokens: matrices of positions x `count`. */
function likeliest(places: Places, positions: number, count: number): Uint8Array[] {
  const [ids, logprobs]: number[][] = [[], []];
  for (let i = 0; i < positions; i++) {
    const ranked = Object.entries(places[i] ?? {})
      .filter(([, { rank }]) => rank <= count)
      .sort(([, one], [, other]) => one.rank - other.rank);
    for (let place = 0; place < count; place++) {
      const [id, score] = ranked[place] ?? ['0', { logprob: NO_LOGPROB }];
      ids!.push(Number(id));
      logprobs!.push(score.logprob);
    }
  }
  return [
    bytesField(1, int32Bytes(ids!)),
    bytesField(2, floatBytes(logprobs!)),
    varintField(3, count),
    varintField(4, positions),
  ];
}
