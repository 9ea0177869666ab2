/** The door of supervised training: any input -> a valid request, or one error that lists every fault. */
import { type ErrorDetail, invalidInput } from '../errors.ts';
import { resolveSftSettings, type SftConfig, type SftExample, type SftSettings } from './sft.ts';

/** What `runtime.sft` is asked for. */
export type SftRequest = {
  /** Id of the model. */
  readonly model_id: string;
  /** Conversations; their assistant turns are what is learned. */
  readonly data: readonly SftExample[];
  readonly config?: SftConfig | undefined;
};

/** Checks the request and fills in its settings. Throws `INVALID_REQUEST` with all faults. */
export function validateSftRequest({
  model_id,
  data,
  config = {},
}: SftRequest): Pick<SftRequest, 'model_id' | 'data'> & { readonly settings: SftSettings } {
  const faults: ErrorDetail[] = [];
  const expect = (holds: boolean, loc: readonly (string | number)[], expected: string, input: unknown) => {
    if (!holds) faults.push({ loc: loc.map(String), type: 'type', msg: `expected ${expected}`, input });
  };
  expect(typeof model_id === 'string', ['model_id'], 'a UUID', model_id);
  expect(Array.isArray(data) && data.length > 0, ['data'], 'an array with at least one conversation', data);
  for (const [i, example] of (Array.isArray(data) ? data : []).entries()) {
    const messages = example?.messages;
    const isList = Array.isArray(messages) && messages.every((message) => typeof message?.role === 'string');
    expect(isList, ['data', i, 'messages'], 'an array of messages with a role', messages);
  }
  if (faults.length > 0) throw invalidInput(faults);
  return { model_id, data, settings: resolveSftSettings(config) };
}
