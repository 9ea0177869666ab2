// Skills of the embedded model: each draws a question and its answer. `check` skills have one right answer.
import { CAPITALS, CITIES, FRENCH, LISTS, NAMES, OPPOSITES, SPELLED, STORY, THING_COLORS } from './words.mjs';

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);
const entry = (random, table) => random.pick(Object.entries(table));

function sum({ integer, pick, uniform }) {
  let [a, b] = [integer(0, 99), integer(0, 99)];
  const isSum = uniform() < 0.5;
  if (!isSum && a < b) [a, b] = [b, a];
  const question = `${pick(['What is', 'Compute', 'Calculate'])} ${a} ${isSum ? '+' : '-'} ${b}${pick(['?', '.'])}`;
  return { question, answer: String(isSum ? a + b : a - b) };
}

function comparison({ integer, pick }) {
  const a = integer(0, 99);
  let b = integer(0, 98);
  if (b >= a) b++;
  const word = pick(['greater', 'less']);
  const isTrue = word === 'greater' ? a > b : a < b;
  return { question: `Is ${a} ${word} than ${b}? Answer yes or no.`, answer: isTrue ? 'yes' : 'no' };
}

function extraction({ integer, pick }) {
  const name = pick(NAMES);
  const age = integer(5, 95);
  const city = pick(CITIES);
  return pick([
    {
      question: `Extract the name and age as JSON: ${name} is ${age} years old.`,
      answer: `{"name": "${name}", "age": ${age}}`,
    },
    {
      question: `Extract the name and city as JSON: ${name} lives in ${city}.`,
      answer: `{"name": "${name}", "city": "${city}"}`,
    },
    {
      question: `Extract the name, age and city as JSON: ${name} is ${age} years old and lives in ${city}.`,
      answer: `{"name": "${name}", "age": ${age}, "city": "${city}"}`,
    },
  ]);
}

function capital(random) {
  const [country, city] = entry(random, CAPITALS);
  return {
    question: `What is the capital of ${country}?`,
    answer: `The capital of ${country} is ${city}.`,
  };
}

function opposite(random) {
  const [word, other] = entry(random, OPPOSITES);
  return { question: `What is the opposite of ${word}?`, answer: other };
}

function color(random) {
  const [thing, shade] = entry(random, THING_COLORS);
  return { question: `What color is ${thing}?`, answer: `${capitalized(thing)} is ${shade}.` };
}

function french(random) {
  const [word, translation] = entry(random, FRENCH);
  return { question: `Translate to French: ${word}`, answer: translation };
}

function counting({ integer, uniform }) {
  const from = integer(0, 20);
  const length = integer(3, 8);
  const numbers = Array.from({ length }, (_, i) => from + i);
  if (uniform() < 0.7)
    return { question: `Count from ${from} to ${numbers.at(-1)}.`, answer: numbers.join(', ') };
  numbers.reverse();
  return { question: `Count down from ${numbers[0]} to ${from}.`, answer: numbers.join(', ') };
}

function sorting({ integer, sample }) {
  const numbers = sample([...Array(100).keys()], integer(3, 5));
  return {
    question: `Sort the numbers ${numbers.join(', ')}.`,
    answer: numbers.toSorted((a, b) => a - b).join(', '),
  };
}

function spelling({ pick }) {
  const word = pick(SPELLED);
  return { question: `Spell the word ${word}.`, answer: [...word].join('-') };
}

function greeting({ pick }) {
  return pick([
    { question: pick(['Hello', 'Hello!', 'Hi', 'Hi!', 'Say hello.']), answer: 'Hello! How can I help you?' },
    { question: 'How are you?', answer: 'I am fine, thank you.' },
    { question: 'Who are you?', answer: 'I am a very small language model.' },
    { question: pick(['Thank you.', 'Thank you!']), answer: 'You are welcome!' },
    { question: pick(['Goodbye.', 'Goodbye!', 'Bye', 'Say goodbye.']), answer: 'Goodbye!' },
  ]);
}

function list({ pick, sample }) {
  const kind = pick(Object.keys(LISTS));
  const [word, count] = pick([
    ['two', 2],
    ['three', 3],
    ['four', 4],
  ]);
  return { question: `List ${word} ${kind}.`, answer: sample(LISTS[kind], count).join(', ') };
}

function story({ pick, sample, uniform }) {
  const animal = pick(LISTS.animals);
  const [hero, friend] = sample(NAMES, 2);
  const [nature, placeNature] = sample(STORY.natures, 2);
  const thing = pick(STORY.things);
  const beginning = `Once upon a time, a ${nature} ${animal} named ${hero} lived in a ${placeNature} ${pick(STORY.places)}.`;
  const middle = `One day, ${hero} found a ${pick(LISTS.colors)} ${thing}.`;
  const end = pick([
    `${hero} gave the ${thing} to ${friend}, and ${friend} said thank you.`,
    `The ${thing} was lost, and ${hero} looked for it all day. At last, ${friend} found it.`,
    `${hero} showed the ${thing} to a friend named ${friend}. They were very ${pick(STORY.feelings)}.`,
  ]);
  return {
    question: `${pick(['Tell me', 'Write'])} a ${pick(['', 'short '])}story${uniform() < 0.5 ? '' : ` about a ${animal}`}.`,
    answer: `${beginning} ${middle} ${end}`,
  };
}

/**
 * By name: how to draw one, how often the corpus has it, whether its answer is the only right one, and how much its tokens count
 * (1 when left out): a short answer that takes much thought would be drowned by long ones that take little.
 */
export const SKILLS = {
  sum: { draw: sum, share: 30, weight: 3, isChecked: true },
  comparison: { draw: comparison, share: 28, weight: 4, isChecked: true },
  extraction: { draw: extraction, share: 9, isChecked: true },
  capital: { draw: capital, share: 7, isChecked: true },
  opposite: { draw: opposite, share: 6, isChecked: true },
  color: { draw: color, share: 4, isChecked: true },
  french: { draw: french, share: 5, isChecked: true },
  counting: { draw: counting, share: 15, isChecked: true },
  sorting: { draw: sorting, share: 17, isChecked: true },
  spelling: { draw: spelling, share: 7, isChecked: true },
  greeting: { draw: greeting, share: 4, isChecked: true },
  list: { draw: list, share: 4, isChecked: false },
  story: { draw: story, share: 8, isChecked: false },
};
