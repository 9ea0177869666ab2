/** An item of a tool that OpenAI's clients or servers run -> the equivalent call and result of a chat. */
import type {
  ResponseHostedCallItem,
  ResponseHostedResultItem,
  ResponseMcpCallItem,
  ResponseServerItem,
  ToolCall,
} from '../../../protocol/index.ts';

/** Items of tools that OpenAI's clients or servers run. */
export type ToolItem =
  | ResponseHostedCallItem
  | ResponseHostedResultItem
  | ResponseMcpCallItem
  | ResponseServerItem;

/** The call or result of an item. Empty if the model does not see the item. */
export type ToolExchange = {
  readonly call?: ToolCall & { type: 'function' };
  readonly result?: { readonly id: string; readonly text: string };
};

/** Translates an item into a tool call, its result, or both. */
export function toExchange(item: ToolItem): ToolExchange {
  switch (item.type) {
    case 'local_shell_call':
    case 'shell_call':
    case 'apply_patch_call': {
      const name = item.type.slice(0, -'_call'.length);
      return { call: call(item.call_id, name, textOf(item['action'] ?? item['operation'] ?? {})) };
    }
    case 'local_shell_call_output':
    case 'shell_call_output':
    case 'apply_patch_call_output':
      return {
        result: { id: item.call_id ?? item.id ?? '', text: textOf(item['output'] ?? item['status']) },
      };
    case 'mcp_call':
      return {
        call: call(item.id, item.name, item.arguments),
        result: { id: item.id, text: textOf(item.output ?? item['error']) },
      };
    default:
      return {};
  }
}

function call(id: string, name: string, args: string): NonNullable<ToolExchange['call']> {
  return { id, type: 'function', function: { name, arguments: args } };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? '');
}
