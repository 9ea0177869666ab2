/** The fields of llama.cpp's samplers -> the same with their defaults. Only reads: nothing is checked here. */
import type { ChatCompletionRequest } from './generated/request-types.ts';
import type { ValidLlamaSamplers } from './valid-chat-request.ts';

/** Where llama.cpp ends a repetition. */
const BREAKERS = ['\n', ':', '"', '*'];

/** Fills in llama.cpp's defaults, which equal the schema's. */
export function toLlamaSamplers(request: ChatCompletionRequest): ValidLlamaSamplers {
  return {
    typical_p: request.typical_p ?? 1,
    xtc_probability: request.xtc_probability ?? 0,
    xtc_threshold: request.xtc_threshold ?? 0.1,
    dry_multiplier: request.dry_multiplier ?? 0,
    dry_base: request.dry_base ?? 1.75,
    dry_allowed_length: request.dry_allowed_length ?? 2,
    dry_penalty_last_n: request.dry_penalty_last_n ?? -1,
    dry_sequence_breakers: [...(request.dry_sequence_breakers ?? BREAKERS)],
    dynatemp_range: request.dynatemp_range ?? 0,
    dynatemp_exponent: request.dynatemp_exponent ?? 1,
    mirostat: request.mirostat ?? 0,
    mirostat_tau: request.mirostat_tau ?? 5,
    mirostat_eta: request.mirostat_eta ?? 0.1,
  };
}
