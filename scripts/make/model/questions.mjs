// Skills -> exam questions, held out of the corpus where a skill has enough.
import { examination } from './corpus.mjs';
import { CITIES, LISTS, NAMES } from './words.mjs';

const WEATHER_TOOL = {
  type: 'function',
  function: { name: 'get_weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const CALCULATOR = {
  type: 'function',
  function: {
    name: 'calculate',
    parameters: { type: 'object', properties: { expression: { type: 'string' } } },
  },
};
const STORY =
  /^Once upon a time, a \w+ \w+ named (\w+) lived in a \w+ \w+\. One day, \1 found a \w+ (\w+)\. (\1 gave the \2 to|The \2 was lost, and \1|\1 showed the \2 to)/;

const user = (content) => ({ role: 'user', content });

/** A call of `name` with exactly these arguments, and nothing else. */
function isCall(message, name, given) {
  const calls = message.tool_calls ?? [];
  if (calls.length !== 1 || calls[0].function.name !== name) return false;
  try {
    return JSON.stringify(JSON.parse(calls[0].function.arguments)) === JSON.stringify(given);
  } catch {
    return false;
  }
}

const memory = ({ pick }) => {
  const name = pick(NAMES);
  const messages = [
    user(`My name is ${name}.`),
    { role: 'assistant', content: `Nice to meet you, ${name}!` },
    user('What is my name?'),
  ];
  return { messages, answer: `Your name is ${name}.` };
};

const weather = ({ pick }) => {
  const city = pick(CITIES);
  return {
    messages: [user(`What is the weather in ${city}?`)],
    tools: [WEATHER_TOOL, CALCULATOR],
    isRight: (message) => isCall(message, 'get_weather', { city }),
  };
};

const calculation = ({ integer, pick }) => {
  const expression = `${integer(0, 99)} ${pick(['+', '-', '*'])} ${integer(0, 99)}`;
  return {
    messages: [user(`What is ${expression}?`)],
    tools: [WEATHER_TOOL, CALCULATOR],
    isRight: (message) => isCall(message, 'calculate', { expression }),
  };
};

/** `count` different things of a kind. */
const list = ({ pick }) => {
  const kind = pick(Object.keys(LISTS));
  const [word, count] = pick([
    ['two', 2],
    ['three', 3],
    ['four', 4],
  ]);
  return {
    messages: [user(`List ${word} ${kind}.`)],
    isRight: ({ content }) => {
      const things = (content ?? '').split(', ');
      return new Set(things).size === count && things.every((thing) => LISTS[kind].includes(thing));
    },
  };
};

const story = () => ({
  messages: [user('Tell me a story.')],
  isRight: ({ content }) => STORY.test(content ?? ''),
});

/** Map of skill -> questions, `count` of most. */
export function drawQuestions(random, count) {
  const exams = examination(random, count);
  const add = (name, draw, times) =>
    exams.set(
      name,
      Array.from({ length: times }, () => draw(random)),
    );
  add('name told before', memory, count);
  add('call of get_weather', weather, Math.min(count, CITIES.length));
  add('call of calculate', calculation, count);
  add('list', list, Math.min(count, 9));
  add('story', story, 1);
  return exams;
}
