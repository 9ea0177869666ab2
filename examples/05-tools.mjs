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
  for (const call of message.tool_calls) {
    if (call.type !== 'function') continue; // tools of the type custom are called with a text
    const { name, arguments: given } = call.function;
    console.log(`${name}(${given})`);
    const run = functions[name];
    const content = run ? run(JSON.parse(given)) : `there is no function ${name}`;
    messages.push({ role: 'tool', tool_call_id: call.id, content });
  }
}
