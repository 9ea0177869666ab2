// A scene -> questions about its picture, each with the one right answer. Lists have the order of the places.
const withArticle = (name) => `a ${name}`;
const where = (place) => (place === 'center' ? 'in the center' : `at the ${place}`);

function list(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** By name: scene -> { question, answer }. */
export const SKILLS = {
  description: ({ objects }) => ({
    question: 'What is in the picture?',
    answer: list(
      objects.map(({ color, shape, place }) => `${withArticle(`${color} ${shape}`)} ${where(place)}`),
    ),
  }),
  colors: ({ objects }) => ({
    question: 'What colors are the shapes?',
    answer: list(objects.map(({ color }) => color)),
  }),
  shapes: ({ objects }) => ({
    question: 'Which shapes are there?',
    answer: list(objects.map(({ shape }) => withArticle(shape))),
  }),
  places: ({ objects }) => ({
    question: 'Where are the shapes?',
    answer: list(objects.map(({ place }) => where(place))),
  }),
  count: ({ objects }) => ({ question: 'How many shapes are there?', answer: String(objects.length) }),
};
