// Random numbers -> one dialogue of the corpus: messages with what the assistant answers, tools and a system turn.
import { SKILLS } from './skills.mjs';
import { CITIES, NAMES, SYSTEM_TURNS, WEATHER } from './words.mjs';

const TOOLS = ['get_weather', 'calculate'];

const user = (content) => ({ role: 'user', content });
/** `weight`: that of the answer's tokens in the loss. */
const assistant = (content, weight = 1) => ({ role: 'assistant', content, weight });
const call = (name, given) =>
  assistant(`<tool_call>\n{"name": "${name}", "arguments": ${given}}\n</tool_call>`);

/** Names of skills, repeated by their share. */
const NAMES_BY_SHARE = Object.entries(SKILLS).flatMap(([name, { share }]) => Array(share).fill(name));

/** Draws until the question is not held out. */
function exchange(random, isHeldOut) {
  for (;;) {
    const { draw, weight } = SKILLS[random.pick(NAMES_BY_SHARE)];
    const { question, answer } = draw(random);
    if (!isHeldOut(question)) return [user(question), assistant(answer, weight)];
  }
}

function introduction({ pick }) {
  const name = pick(NAMES);
  const greeting = pick(['My name is', 'Hello, my name is', 'I am called']);
  return { name, messages: [user(`${greeting} ${name}.`), assistant(`Nice to meet you, ${name}!`)] };
}

/** Someone says a name and asks for it later. */
function memory(random, isHeldOut) {
  const { name, messages } = introduction(random);
  const between = random.uniform() < 0.4 ? exchange(random, isHeldOut) : [];
  return [...messages, ...between, user('What is my name?'), assistant(`Your name is ${name}.`)];
}

/** A question for a tool, its call, and often its result. */
function toolUse({ integer, pick, uniform }, tools) {
  const goesOn = uniform() < 0.5;
  if (pick(tools) === 'get_weather') {
    const city = pick(CITIES);
    const weather = pick(WEATHER);
    const question = pick([`What is the weather in ${city}?`, `How is the weather in ${city}?`]);
    const asked = [user(question), call('get_weather', `{"city": "${city}"}`)];
    const answered = [{ role: 'tool', content: weather }, assistant(`It is ${weather} in ${city}.`)];
    return goesOn ? [...asked, ...answered] : asked;
  }
  const expression = `${integer(0, 99)} ${pick(['+', '-', '*'])} ${integer(0, 99)}`;
  const question = `${pick(['What is', 'Compute', 'Calculate'])} ${expression}${pick(['?', '.'])}`;
  const asked = [user(question), call('calculate', `{"expression": "${expression}"}`)];
  const [a, operator, b] = expression.split(' ');
  const result = { '+': +a + +b, '-': a - b, '*': a * b }[operator];
  const answered = [{ role: 'tool', content: String(result) }, assistant(String(result))];
  return goesOn ? [...asked, ...answered] : asked;
}

/** One dialogue: { system, tools, messages }. `isHeldOut` says which questions it must not hold. */
export function drawDialogue(random, isHeldOut) {
  const system = random.uniform() < 0.25 ? random.pick(SYSTEM_TURNS) : undefined;
  const kind = random.uniform();
  if (kind < 0.09) {
    const tools = random.uniform() < 0.6 ? TOOLS : [random.pick(TOOLS)];
    return { system, tools, messages: toolUse(random, tools) };
  }
  if (kind < 0.16) return { system, tools: [], messages: memory(random, isHeldOut) };
  if (kind < 0.19) return { system, tools: [], messages: introduction(random).messages };
  const tools = random.uniform() < 0.03 ? ['get_weather'] : [];
  const turns = random.pick([1, 1, 1, 1, 2, 3]);
  const messages = Array.from({ length: turns }, () => exchange(random, isHeldOut)).flat();
  return { system, tools, messages: tools.length ? messages.slice(0, 2) : messages };
}
