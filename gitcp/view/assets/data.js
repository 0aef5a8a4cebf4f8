// Reads the data of the page, and answers what the columns ask of it.

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return await new Response(stream).json();
}

function embedded() {
  const text = atob(find('data').textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return unpacked(bytes);
}

// What a row is called in links and commands.
function nameOf(row) {
  return row.n ? `#${row.n}` : row.id;
}

function argumentOf(row) {
  return row.n ? `${row.n}` : row.id;
}

// What a row is about, in one line.
function titleOf(row) {
  if (row.kind === 'hand') return 'changed by hand';
  const text = row.prompt || row.note || '';
  const line = text.trim().split('\n', 1)[0];
  if (line) return line.length > 300 ? `${line.slice(0, 300)}…` : line;
  return row.kind === 'turn' ? '(no prompt was recorded)' : row.trigger;
}

function changedIn(row) {
  return row.changed || [0, 0, 0];
}

// Lines added and deleted, of what is a row's own; null where no lines are known.
function linesOf(row) {
  if (!row.files) return null;
  let add = 0, sub = 0;
  for (const file of row.files) {
    if (file.whose === 'others') continue;
    add += file.add || 0;
    sub += file.sub || 0;
  }
  return [add, sub];
}

function clock(text) {
  const at = new Date(text);
  const two = (number) => String(number).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return { day, time: `${two(at.getHours())}:${two(at.getMinutes())}`, ms: at.getTime() };
}

// Every text of a row, by the column it is in; made once, for the search.
function textsOf(row) {
  if (row.texts) return row.texts;
  const talk = [];
  for (const spoken of row.talk || []) {
    if (spoken.prompt) talk.push(spoken.prompt);
    for (const step of spoken.steps || []) {
      talk.push([step.tool, step.arg, step.text, step.out].filter(Boolean).join(' '));
    }
  }
  if (!row.talk || !row.talk.length) talk.push(row.prompt || row.note || '');
  const files = (row.files || []).map((file) => `${file.path}\n${file.patch || ''}`);
  const reasons = (row.reasons || []).map((one) => `${one.text} ${one.why || ''}`);
  const texts = { talk, files, reasons };
  Object.defineProperty(row, 'texts', { value: texts, enumerable: false });
  return texts;
}
