/** The window: a question, its answer as it comes, a button that stops it, and how far the model is. */
const { model } = window;
const [state, form, question, stop, answer] = ['state', 'form', 'question', 'stop', 'answer'].map((id) =>
  document.getElementById(id),
);

model.onState((now) => {
  const percent = Math.round((now.fraction ?? 0) * 100);
  const texts = { loading: `${now.phase}: ${percent} %`, ready: 'ready', failed: now.error?.message };
  state.textContent = texts[now.state];
});

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  answer.textContent = '';
  const messages = [{ role: 'user', content: question.value }];
  const { ended, abort } = model.ask({ messages }, (chunk) => {
    answer.textContent += chunk.choices[0]?.delta.content ?? '';
  });
  stop.disabled = false;
  stop.onclick = abort;
  const error = await ended;
  stop.disabled = true;
  if (error) answer.textContent += `\n(${error.code}: ${error.message})`;
});
