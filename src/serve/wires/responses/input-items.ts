/** Items of a request -> the form in which they are stored: each with a type and an id, messages with a list of parts. */
import { pageOf } from '../../../common/index.ts';
import type {
  ContentPart,
  ListQuery,
  Message,
  ResponseInputItem,
  ResponseInputPart,
  ResponseItemList,
  ResponseRequest,
  ResponseStoredItem,
} from '../../../protocol/index.ts';
import { checkListQuery, fault, throwFaults } from '../../../protocol/index.ts';
import { idOf, PREFIXES } from './to-response.ts';

type InputMessage = Extract<ResponseInputItem, { role: unknown }>;

export function storedItems(input: ResponseRequest['input']): ResponseStoredItem[] {
  const items = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input;
  return items.map(toStored);
}

/** Returns the user messages of a chat as items. */
export function userItems(messages: readonly Message[]): ResponseStoredItem[] {
  return messages.flatMap(({ role, content }) =>
    role === 'user' ? toStored({ role, content: [content ?? []].flat().map(toPart) }) : [],
  );
}

export async function itemPage(
  items: readonly ResponseStoredItem[],
  query: ListQuery,
): Promise<ResponseItemList> {
  const { after, limit, order } = checkListQuery(query);
  const place = after === null ? null : items.findIndex(({ id }) => id === after);
  if (place === -1) throwFaults([fault(['after'], 'value', 'the id of an item of this list', after)]);
  return await pageOf([...items.keys()], { after: place, limit, order }, async (i) => items[i]!);
}

function toStored(item: ResponseInputItem): ResponseStoredItem {
  const { id: given, type: kind } = item;
  const id = typeof given === 'string' ? given : null;
  if (kind !== undefined && kind !== 'message')
    return {
      ...item,
      type: kind,
      id: id ?? idOf((PREFIXES as Readonly<Record<string, string>>)[kind] ?? 'item'),
    };
  const { role, content } = item as InputMessage;
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  return {
    status: 'completed',
    ...item,
    id: id ?? idOf('msg'),
    type: 'message',
    content: typeof content === 'string' ? [{ type, text: content }] : content,
  };
}

function toPart(part: ContentPart): ResponseInputPart {
  if (typeof part === 'string') return { type: 'input_text', text: part };
  if (part.type === 'image_url') return { type: 'input_image', image_url: part.image_url.url as string };
  if (part.type === 'file')
    return { type: 'input_file', ...part.file, file_data: part.file.file_data as string };
  return { type: 'input_text', text: 'text' in part && typeof part.text === 'string' ? part.text : '' };
}
