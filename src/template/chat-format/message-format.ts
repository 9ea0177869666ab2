/** A model's template and a request -> the plan for reading the model's text: its parsers, and the special tokens they need. */

import type { ValidChatRequest } from '../../protocol/index.ts';
import {
  continuedReasoning,
  continuesReasoning,
  detectReasoning,
  isReasoningOpen,
  REASONING_FORMATS,
  type ReasoningFormat,
  reasoningMarkers,
} from '../reasoning/index.ts';
import {
  detectToolFormat,
  formatRow,
  type ToolDefinition,
  type ToolFormat,
  toolCallMarkers,
  toolFormat,
} from '../tool-calls/index.ts';

/** The part of a tokenizer that is needed to find special tokens that mark calls or reasoning. */
export type VocabularyTexts = {
  readonly vocabSize: number;
  isSpecial(id: number): boolean;
  bytesOf(id: number): Uint8Array;
};

/** Formats in which a model writes tool calls and reasoning. */
export type MessageFormat = {
  readonly tools: ToolFormat;
  /** True if the caller named the format. The caller then describes tools itself if the template does not show them. */
  readonly isNamed: boolean;
  /** Null if the model does not mark its reasoning. */
  readonly reasoning: ReasoningFormat | null;
  /** Special tokens with a meaning in these formats. They stay in the text that the parsers read. */
  readonly markerIds: ReadonlySet<number>;
  /** Texts of `markerIds`. */
  readonly markerTexts: ReadonlySet<string>;
};

export const PLAIN_TEXT: MessageFormat = {
  tools: 'none',
  isNamed: false,
  reasoning: null,
  markerIds: new Set(),
  markerTexts: new Set(),
};

/** The plan for reading one answer. A field is null if there is nothing to parse. */
export type MessagePlan = {
  readonly tools: {
    readonly format: ToolFormat;
    readonly definitions: readonly ToolDefinition[];
    /** Names of tools that must not be called. */
    readonly refused: ReadonlySet<string>;
    /** Names of custom tools. The answer has their only argument as plain text. */
    readonly custom: ReadonlySet<string>;
    readonly parallel: boolean;
    /** True if the answer consists of calls only. */
    readonly isForced: boolean;
  } | null;
  readonly reasoning: { readonly format: ReasoningFormat; readonly startsInside: boolean } | null;
  readonly includeReasoning: boolean;
};

/** Detects the formats from a model's template. `override` names the tool format if detection is not enough. */
export function detectMessageFormat(
  template: string,
  tokenizer: VocabularyTexts,
  override: string | undefined,
): MessageFormat {
  const detected = detectToolFormat(template);
  const told = detected === 'none' ? 'json' : detected; // tools are then described in a message
  const tools = override === undefined ? told : toolFormat(override);
  const reasoning = detectReasoning(template);
  const markers = [...toolCallMarkers(tools), ...(reasoning ? reasoningMarkers(reasoning) : [])].join('\n');
  const markerIds = new Set<number>();
  const markerTexts = new Set<string>();
  const decoder = new TextDecoder();
  for (let id = 0; id < tokenizer.vocabSize && markers !== ''; id++) {
    if (!tokenizer.isSpecial(id)) continue;
    const text = decoder.decode(tokenizer.bytesOf(id));
    if (text === '' || !markers.includes(text)) continue;
    markerIds.add(id);
    markerTexts.add(text);
  }
  return { tools, isNamed: override !== undefined, reasoning, markerIds, markerTexts };
}

/** Plans how reasoning is separated from the answer. `promptTail` is the end of the rendered prompt. A continued message is read on. */
export function planReasoning(
  { reasoning }: MessageFormat,
  request: ValidChatRequest,
  promptTail: string,
): MessagePlan['reasoning'] {
  const format = reasoning ?? (continuedReasoning(request) === null ? null : REASONING_FORMATS.think);
  if (format === null) return null;
  const startsInside = isReasoningOpen(format, promptTail) || continuesReasoning(format, request);
  return { format, startsInside };
}

/** Plans how an answer to this request is parsed. */
export function planMessage(
  format: MessageFormat,
  request: ValidChatRequest,
  reasoning: MessagePlan['reasoning'],
): MessagePlan {
  const wantsCalls = request.tools.length > 0 && request.tool_choice !== 'none';
  const isAllowed = ({ function: { name } }: ToolDefinition) => request.allowed_tools?.has(name) ?? true;
  return {
    tools:
      formatRow(format.tools).framesText || (wantsCalls && format.tools !== 'none')
        ? {
            format: format.tools,
            definitions: request.tools.filter(isAllowed),
            refused: new Set(
              request.tools.filter((tool) => !isAllowed(tool)).map((tool) => tool.function.name),
            ),
            custom: new Set(request.custom_tools.keys()),
            parallel: request.parallel_tool_calls && !request.uses_functions,
            isForced: wantsCalls && request.tool_choice !== 'auto',
          }
        : null,
    reasoning,
    includeReasoning: request.include_reasoning,
  };
}
