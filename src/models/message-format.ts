/** A model's template and a request -> how to read the model's text: which machines, and which special tokens they need. */
import type { ValidChatRequest } from '../protocol/index.ts';
import {
  detectReasoning,
  isReasoningOpen,
  type ReasoningFormat,
  reasoningMarkers,
} from '../reasoning/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import {
  detectToolFormat,
  type ToolDefinition,
  type ToolFormat,
  toolCallMarkers,
  toolFormat,
} from '../tool-calls/index.ts';

/** How one model writes tool calls and reasoning. */
export type MessageFormat = {
  readonly tools: ToolFormat;
  /** Null: it does not mark its reasoning. */
  readonly reasoning: ReasoningFormat | null;
  /** Special tokens with a meaning in these formats: they stay in the text that the machines read. */
  readonly markerIds: ReadonlySet<number>;
  /** The texts of those. */
  readonly markerTexts: ReadonlySet<string>;
};

export const PLAIN_TEXT: MessageFormat = {
  tools: 'none',
  reasoning: null,
  markerIds: new Set(),
  markerTexts: new Set(),
};

/** How to read one answer; null where there is nothing to look for. */
export type MessagePlan = {
  readonly tools: {
    readonly format: ToolFormat;
    readonly definitions: readonly ToolDefinition[];
    /** Names of tools that must not be called. */
    readonly refused: ReadonlySet<string>;
    /** Names of tools whose one argument is the text that the answer has. */
    readonly custom: ReadonlySet<string>;
    readonly parallel: boolean;
    /** The answer is calls and nothing else. */
    readonly isForced: boolean;
  } | null;
  readonly reasoning: { readonly format: ReasoningFormat; readonly startsInside: boolean } | null;
  readonly includeReasoning: boolean;
};

/** Looks at a model's template. `override` names the tool format where looking is not enough. */
export function detectMessageFormat(
  template: string,
  tokenizer: Tokenizer,
  override: string | undefined,
): MessageFormat {
  const tools = override === undefined ? detectToolFormat(template) : toolFormat(override);
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
  return { tools, reasoning, markerIds, markerTexts };
}

/** What an answer to this request is read for. `promptTail`: the end of the rendered prompt. */
export function planMessage(
  format: MessageFormat,
  request: ValidChatRequest,
  promptTail: string,
): MessagePlan {
  const isHarmony = format.tools === 'harmony'; // its framing is in every answer
  const wantsCalls = request.tools.length > 0 && request.tool_choice !== 'none';
  const isAllowed = ({ function: { name } }: ToolDefinition) => request.allowed_tools?.has(name) ?? true;
  return {
    tools:
      isHarmony || (wantsCalls && format.tools !== 'none')
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
    reasoning: format.reasoning && {
      format: format.reasoning,
      startsInside: isReasoningOpen(format.reasoning, promptTail),
    },
    includeReasoning: request.include_reasoning,
  };
}
