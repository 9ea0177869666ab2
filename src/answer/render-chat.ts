/** A request's messages and a chat template -> prompt text that contains every text of the messages. */
import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { errorAt } from '../errors.ts';
import type { FunctionTool, ValidChatRequest } from '../protocol/index.ts';
import type { AssistantSpan, ChatTemplate, RenderOptions } from '../template/index.ts';
import type { ReasoningFormat } from '../template/reasoning/index.ts';
import { callsText, type ToolFormat } from '../template/tool-calls/index.ts';
import { arrange, arrangementsOf, type PlacedMessage, placeMessages } from './arrange-messages.ts';
import { CallIds } from './call-ids.ts';
import { effortVariables, thinkingMode } from './effort.ts';
import type { MediaMarkers } from './media-markers.ts';
import { missingMarks, missingMessage, unfoundMessages, withMarks } from './shown-messages.ts';
import { toTemplateMessage } from './template-message.ts';
import { type TemplateTraits, traitsOf } from './template-traits.ts';
import { NO_PARAMETERS } from './tool-traits.ts';

export type RenderContext = {
  readonly template: ChatTemplate;
  readonly tokenizer: Pick<Tokenizer, 'bosText' | 'eosText'>;
  /** Format of the model's reasoning; null if it writes none. */
  readonly reasoning: ReasoningFormat | null;
  readonly calls?: CallPlan;
  /** Receives what the assistant wrote in each text that is rendered. The template must mark it. */
  readonly written?: WrittenSpans;
};

/** Rendered texts, and the parts of each that the assistant wrote. */
export type WrittenSpans = Map<string, readonly AssistantSpan[]>;

/** Options for a template that shows no tools or calls. */
export type CallPlan = {
  /** Format in which the model writes calls. Defaults to `json`. */
  readonly format?: ToolFormat;
  /** True if the tools are described in words. Defaults to true. */
  readonly areToolsTold?: boolean;
};

/**
 * Renders the messages in the first arrangement that the template accepts and that shows all texts. Fails with `TEMPLATE_FAILED`, naming
 * the message, if no arrangement does.
 */
export function renderChat(request: ValidChatRequest, context: RenderContext, markers: MediaMarkers): string {
  const { messages } = request;
  const traits = traitsOf(context.template, request.chat_template_kwargs);
  const { format = 'json', areToolsTold = true } = context.calls ?? {};
  const areTold = areToolsTold && request.tools.length > 0 && traits.showsChats && !traits.tools.areShown;
  const instructions = areTold ? toolInstructions(request.tools, format) : null;
  const placed = placeMessages(messages, traits, instructions);
  let first: unknown = null;
  for (const arrangement of arrangementsOf(placed, traits)) {
    try {
      const text = renderArranged(request, context, arrange(placed, traits, arrangement), traits, markers);
      if (instructions !== null && !text.includes(instructions)) {
        first ??= errorAt(
          'tools',
          'TEMPLATE_FAILED',
          'the chat template shows neither tools nor words about them',
        );
        continue;
      }
      const unfound = traits.showsChats ? unfoundMessages(messages, text) : [];
      if (unfound.length === 0) return text;
      const marked = placeMessages(withMarks(messages, unfound), traits, instructions);
      const again = arrange(marked, traits, arrangement);
      const missing = missingMarks(
        renderArranged(request, context, again, traits, markers.unused()),
        unfound,
      );
      if (missing.length === 0) return text;
      first ??= missingMessage(messages[missing[0]!]!, missing[0]!);
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

function renderArranged(
  request: ValidChatRequest,
  { template, tokenizer, reasoning, calls, written }: RenderContext,
  placed: readonly PlacedMessage[],
  traits: TemplateTraits,
  markers: MediaMarkers,
): string {
  const hasMedia = ({ content }: (typeof placed)[0]) => content.some(({ type }) => type === 'media');
  const hasCalls = placed.some(({ role, tool_calls }) => role === 'tool' || tool_calls !== null);
  const shared = {
    traits,
    toolFormat: calls?.format ?? 'json',
    markers: markers.restart(),
    writesMedia: markers.areWritten && placed.every((one) => !hasMedia(one) || traits.formOf(one.role).list),
    ids: hasCalls ? new CallIds(request.messages, traits.calls) : null,
  };
  const messages = placed.map((message, at) => {
    const isContinued = request.continue_final_message && at === placed.length - 1;
    return toTemplateMessage(message, shared, isContinued);
  });
  const { tools, kwargs } = toolVariables(request.tools, traits);
  const variables = { ...effortVariables(request, traits, reasoning), ...request.chat_template_kwargs };
  const input = {
    messages,
    tools,
    documents: request.documents,
    addGenerationPrompt: request.add_generation_prompt,
    continueFinalMessage: request.continue_final_message,
    kwargs: { ...kwargs, ...thinkingMode(variables, traits), ...variables },
    bosToken: tokenizer.bosText,
    eosToken: tokenizer.eosText,
  };
  const options: RenderOptions = {
    parseToolArguments: !hasCalls || traits.calls.arguments === 'object',
    requireDocumentFields: true,
    growsLists: true,
  };
  if (!written) return template.render(input, options);
  const { text, assistantSpans } = template.renderWithMask(input, options);
  written.set(text, assistantSpans);
  return text;
}

type ToolVariables = {
  readonly tools: readonly unknown[] | null;
  readonly kwargs: Readonly<Record<string, unknown>>;
};

function toolVariables(given: readonly FunctionTool[], traits: TemplateTraits): ToolVariables {
  if (given.length === 0) return { tools: traits.withoutTools, kwargs: {} };
  const { variable, needsDescription, needsParameters } = traits.tools;
  const tools = given.map((tool) => {
    const { description, parameters, ...rest } = tool.function;
    if (description != null && parameters != null) return tool;
    const filled = {
      ...rest,
      ...(description != null ? { description } : needsDescription ? { description: '' } : {}),
      ...(parameters != null ? { parameters } : needsParameters ? { parameters: NO_PARAMETERS } : {}),
    };
    return { ...tool, function: filled };
  });
  return variable === 'tools'
    ? { tools, kwargs: {} }
    : { tools: traits.withoutTools, kwargs: { [variable]: tools } };
}

function toolInstructions(tools: readonly FunctionTool[], format: ToolFormat): string {
  const functions = tools.map(({ function: { name, description, parameters } }) =>
    JSON.stringify({ name, ...(description ? { description } : {}), ...(parameters ? { parameters } : {}) }),
  );
  const example = callsText(format, [{ name: 'NAME', arguments: '{"KEY": "VALUE"}' }]);
  return [
    'You can call functions. Each line is one of them, with the JSON Schema of its arguments:',
    ...functions,
    'To call a function, answer with a line of this form and no other text:',
    example,
    'Answer with text where no function is needed.',
  ].join('\n');
}
