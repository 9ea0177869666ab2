/** All definitions of the protocol, and which of them are validated at the door. */
import { chatCompletionDefinitions } from './chat-completion.ts';
import { messageDefinitions } from './message.ts';
import type { Definitions } from './schema.ts';
import { structuredDefinitions } from './structured-outputs.ts';
import { toolDefinitions } from './tool.ts';

/** Every definition by name. */
export const definitions: Definitions = {
  ...chatCompletionDefinitions,
  ...messageDefinitions,
  ...toolDefinitions,
  ...structuredDefinitions,
};

/** Definitions that get a compiled validator. */
export const validated = ['ChatCompletionRequest'] as const;
