/** Compile-time checks: the official OpenAI client's types take our responses and chunks, and ours take its requests. */
import type OpenAI from 'openai';
import { describe, expectTypeOf, it } from 'vitest';
import type {
  AssistantMessage,
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionRequest,
  ChatMessage,
  EmbeddingRequest,
  EmbeddingResponse,
  Message,
  ResponseCustomCallItem,
  ResponseCustomChoice,
  ResponseMessage,
  TextCompletion,
  TextCompletionChunk,
  Tool,
  ValidChatRequest,
} from '../../src/protocol/index.ts';

type Theirs = OpenAI.Chat.Completions.ChatCompletion;
type TheirChunk = OpenAI.Chat.Completions.ChatCompletionChunk;
type TheirRequest = OpenAI.Chat.Completions.ChatCompletionCreateParams;

describe('the OpenAI client', () => {
  it('takes our responses and chunks', () => {
    expectTypeOf<ChatCompletion>().toExtend<Theirs>();
    expectTypeOf<ChatCompletion['choices'][number]>().toExtend<Theirs['choices'][number]>();
    expectTypeOf<ChatCompletionChunk>().toExtend<TheirChunk>();
    expectTypeOf<ChatCompletionChunk['choices'][number]>().toExtend<TheirChunk['choices'][number]>();
  });

  it('takes our embeddings, and we take its requests for them', () => {
    expectTypeOf<EmbeddingResponse>().toExtend<OpenAI.CreateEmbeddingResponse>();
    expectTypeOf<OpenAI.EmbeddingCreateParams>().toExtend<EmbeddingRequest>();
  });

  it('takes our text completions', () => {
    expectTypeOf<TextCompletion>().toExtend<OpenAI.Completion>();
    expectTypeOf<TextCompletionChunk>().toExtend<Omit<OpenAI.Completion, 'usage'>>();
  });

  it('has custom tools of the responses API that we take', () => {
    expectTypeOf<OpenAI.Responses.ToolChoiceCustom>().toExtend<ResponseCustomChoice>();
    expectTypeOf<OpenAI.Responses.ResponseCustomToolCall>().toExtend<
      Pick<ResponseCustomCallItem, 'type' | 'call_id' | 'name' | 'input'>
    >();
  });

  it('has requests that we take', () => {
    type Text = Pick<
      TheirRequest,
      | 'frequency_penalty'
      | 'logit_bias'
      | 'logprobs'
      | 'max_completion_tokens'
      | 'max_tokens'
      | 'metadata'
      | 'model'
      | 'n'
      | 'parallel_tool_calls'
      | 'presence_penalty'
      | 'response_format'
      | 'seed'
      | 'service_tier'
      | 'stop'
      | 'store'
      | 'stream'
      | 'stream_options'
      | 'temperature'
      | 'top_logprobs'
      | 'top_p'
      | 'user'
    >;
    expectTypeOf<Text>().toExtend<Omit<ChatCompletionRequest, 'messages'>>();
    type OurRoles = Extract<
      TheirRequest['messages'][number],
      { role: 'system' | 'user' | 'developer' | 'tool' }
    >;
    expectTypeOf<Exclude<OurRoles['content'], object>>().toExtend<Message['content']>();
    expectTypeOf<OpenAI.Chat.Completions.ChatCompletionSystemMessageParam>().toExtend<Message>();
    expectTypeOf<OpenAI.Chat.Completions.ChatCompletionToolMessageParam>().toExtend<Message>();
    expectTypeOf<OpenAI.Chat.Completions.ChatCompletionFunctionTool>().toExtend<Tool>();
    expectTypeOf<Theirs['choices'][number]['message']['content']>().toExtend<AssistantMessage['content']>();
  });
});

describe('our own types', () => {
  it('take the message of a response back', () => {
    expectTypeOf<ResponseMessage>().toExtend<Message>();
  });

  it('leave nothing optional after validation', () => {
    expectTypeOf<ValidChatRequest>().toExtend<Required<ValidChatRequest>>();
    expectTypeOf<ChatMessage>().toEqualTypeOf<Required<ChatMessage>>();
    expectTypeOf<undefined>().not.toExtend<ValidChatRequest[keyof ValidChatRequest]>();
  });

  it('know what every field takes', () => {
    expectTypeOf<ChatCompletionRequest['temperature']>().toEqualTypeOf<number | null | undefined>();
    expectTypeOf<ChatCompletionRequest['seed']>().toEqualTypeOf<number | bigint | null | undefined>();
    expectTypeOf<ChatCompletionRequest['stop']>().toEqualTypeOf<
      string | readonly string[] | null | undefined
    >();
    expectTypeOf<ChatCompletionRequest['echo']>().toEqualTypeOf<boolean | undefined>();
    expectTypeOf<{ messages: []; temprature: 1 }>().toExtend<ChatCompletionRequest>();
    // @ts-expect-error a misspelt field of a literal
    ({ messages: [], temprature: 1 }) satisfies ChatCompletionRequest;
    // @ts-expect-error a value of another type
    ({ messages: [], n: '2' }) satisfies ChatCompletionRequest;
  });
});
