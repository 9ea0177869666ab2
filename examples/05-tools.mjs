// @ts-check
/** Functions that the model may call: it asks for one, this program runs it, and the model answers with the result. */
import { createCompletion } from 'onpolicy';

/** @type {Record<string, (args: any) => string>} */
const functions = {
  get_weather: ({ city }) => (city === 'Paris' ? 'sunny' : 'rainy'),
};
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
/** @type {import('onpolicy').Tool[]} */
const tools = [
  { type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters } },
];

/** @type {import('onpolicy').Message[]} */
const messages = [{ role: 'user', content: 'What is the weather in Paris?' }];
for (let turn = 0; turn < 5; turn++) {
  const { choices } = await createCompletion({ messages, tools, temperature: 0 });
  const message = choices[0]?.message;
  if (!message?.tool_calls?.length) {
    console.log(message?.content);
    break;
  }
  messages.push(message);
  for (const { id, function: call } of message.tool_calls) {
    console.log(`${call.name}(${call.arguments})`);
    const run = functions[call.name];
    const content = run ? run(JSON.parse(call.arguments)) : `there is no function ${call.name}`;
    messages.push({ role: 'tool', tool_call_id: id, content });
  }
}
