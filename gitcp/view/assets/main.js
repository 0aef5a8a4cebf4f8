// Begins: unpacks the data, shows it, selects the turn that the address names.

// What is printed: every turn, in the mode that is on, with its files and reasons by name.
function toPaper(state) {
  const made = state.page.rows.map((row) => {
    const head = el('h2', '', el('span', 'number', nameOf(row)), ' ', clock(row.at).day, ' ', clock(row.at).time, ' ', ...badges(row));
    const talk = (row.talk || []).flatMap((spoken) => turn(spoken));
    const files = (row.files || []).map((file) => el('li', '', file.status, ' ', el('bdi', '', oneLine(file.path)), ' ', lineCounts(file)));
    const reasons = (row.reasons || []).map((one) => el('li', '', el('b', '', KIND_NAMES[one.kind] || one.kind), ' ', one.text, one.why ? `, because ${one.why}` : null));
    return el('article', '', head, ...(talk.length ? talk : [el('div', 'prompt', titleOf(row))]),
      files.length ? el('ul', 'files', ...files) : null, reasons.length ? el('ul', 'reasons', ...reasons) : null);
  });
  const place = find('paper');
  place.dataset.mode = state.talk.mode;
  refill(place, el('h1', '', `${state.page.session} ${state.page.project || ''}`), ...made);
}

async function main() {
  const state = new State();
  state.show(await embedded());
  new Keys(state);
  if (!state.follow()) state.select(state.page.selected ?? state.page.rows.length - 1);
  const paper = matchMedia('print');
  paper.addEventListener('change', (event) => { if (event.matches) toPaper(state); else find('paper').replaceChildren(); });
  addEventListener('beforeprint', () => toPaper(state));
  addEventListener('afterprint', () => find('paper').replaceChildren());
  const { live } = document.documentElement.dataset;
  if (live !== 'no') new Live(state, live).start();
  document.body.dataset.ready = 'yes';
  performance.mark('ready');
}

main().catch((error) => {
  document.body.dataset.ready = 'no';
  refill(find('talk'), el('p', 'trouble', `The page cannot show its data: ${error.message}`));
});
