/** Validation of supervised training: any input -> a valid request, or one error that lists every fault. */
import { checkSftRequest, type SftConfig, withDefaults } from '../protocol/index.ts';
import type { SftExample, SftSettings } from './sft.ts';

/** What `runtime.sft` is asked for. */
export type SftRequest = {
  /** Id of the model. */
  readonly model_id: string;
  /** Conversations; their assistant turns are what is learned. */
  readonly data: readonly SftExample[];
  readonly config?: SftConfig | null | undefined;
};

/** Checks the request and fills in its settings. Throws `INVALID_REQUEST` with all faults. */
export function validateSftRequest(
  request: SftRequest,
): Pick<SftRequest, 'model_id' | 'data'> & { readonly settings: SftSettings } {
  checkSftRequest(request);
  const { model_id, data, config } = request;
  return { model_id, data, settings: withDefaults('SftConfig', config) };
}
