// Draws the specifications of charts.yaml, and saves the drawings. page.js decides what they show.

const BESIDE = 65;  // what stands beside a panel's cells, in pixels
const HIDDEN = ["name", "label", "panel", "shown", "text", "described"];  // no columns of a CSV
const views = {};  // Vega's, by the figure
const tables = {};  // what a figure shows, as rows

function fill(template, own) {
  const values = {colours: data.colours, ...own};
  return JSON.parse(JSON.stringify(template), (_, value) =>
    typeof value === "string" && value.startsWith("@") ? values[value.slice(1)] : value);
}

// The box has no name for screen readers: the heads in it are listed elsewhere.
function hideBox(drawing) {
  for (const mark of drawing.marks) if (mark.name?.startsWith("box_")) mark.aria = false;
  return drawing;
}

async function show(figure, spec, name, rows) {
  tables[figure] = rows;
  spec.description = byId(`${figure}-title`).textContent;
  spec.datasets = {[name]: rows.map((row, order) => ({...row, order}))};
  views[figure]?.finalize();
  const how = {config: data.style, actions: false, renderer: "svg", ast: true};
  views[figure] = (await vegaEmbed(byId(figure), spec, {...how, patch: hideBox})).view;
}

// A page that is not laid out yet has no width, and is drawn again when it has.
const room = figure => Math.max(300, byId(figure).clientWidth);

function listen(view) {
  view.addEventListener("click", (event, item) => {
    if (place.has(item?.datum?.name)) chooseHead(item.datum.name, event.shiftKey);
  });
}

async function drawMaps() {
  const measure = measureOf(state.colour);
  const rows = shownModels().flatMap(model => heads.map((head, i) => ({
    ...head, model: model.name, measure: measure.id, value: valuesOf(model, measure.id)[i],
    panel: `${state.beside ? `${model.name}: ` : ""}${KINDS[head.kind]}`,
    shown: inCell(model, measure.id, i), text: text(model, measure.id, i),
    described: `${head.label}, ${model.name}: ${measure.title} ${text(model, measure.id, i)}`,
  })));
  const order = Object.keys(KINDS);
  const values = rows.map(row => row.value).filter(value => value !== null);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (measure.around_zero) low = -(high = Math.max(-low, high));
  if (low === high) high = low + 1;
  const scale = measure === ROLE ? "roles" : measure.around_zero ? "diverging" : "sequential";
  const spec = fill(data.charts.map, {scale: fill(data.scales[scale], {low, high}),
    type: measure === ROLE ? "nominal" : "quantitative", title: withUnit(measure).join(" "),
    chosen: state.heads});
  const most = 1 + Math.max(...heads.map(({head}) => head));
  const step = columns => Math.floor((room("maps") / columns - BESIDE) / most);
  const abreast = state.beside ? 2 : 3;  // two models, or the kinds of one
  spec.columns = step(abreast) >= 16 ? abreast : 1;
  spec.spec.width.step = Math.min(40, step(spec.columns));
  rows.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
  const means = measure === ROLE ? "By the labels of Voita et al., which are of encoder heads."
    : `Larger: ${measure.more}. From ${measure.source}.`;
  byId("maps-caption").textContent = `${means} Pale: not measured, or pruned.`;
  await show("maps", spec, "heads", rows);
  listen(views.maps);
}

async function drawScatter() {
  const [x, y] = [measureOf(state.x), measureOf(state.y)];
  const all = shownModels().flatMap(model => heads.map((head, i) => ({
    ...head, model: model.name, x: valuesOf(model, x.id)[i], y: valuesOf(model, y.id)[i],
    described: `${head.label}, ${model.name}: ${text(model, x.id, i)}; ${text(model, y.id, i)}`,
  })));
  const rows = all.filter(row => row.x !== null && row.y !== null);
  const lacking = shownModels().filter(({name}) => !rows.some(row => row.model === name));
  byId("scatter-caption").textContent = [
    "A point is a head. Draw a box to choose the heads in it; with the shift key a click adds a "
      + "head, or takes it out.",
    ...lacking.map(({name}) => `${name} has no point: one of the two was not measured.`),
  ].join(" ");
  const spec = fill(data.charts.scatter, {chosen: state.heads, x: withUnit(x), y: withUnit(y)});
  spec.width = room("scatter") - BESIDE - 10;
  await show("scatter", spec, "heads", rows);
  tables.scatter = rows.map(({x: across, y: up, ...row}) => ({...row, [x.id]: across, [y.id]: up}));
  listen(views.scatter);
  let waiting;
  views.scatter.addSignalListener("box", (_, box) => {
    const inside = (value, [first, last]) => value >= first && value <= last;
    const boxed = box.x && box.y
      ? rows.filter(row => inside(row.x, box.x) && inside(row.y, box.y)) : [];
    clearTimeout(waiting);  // until the box is drawn
    const names = [...new Set(boxed.map(row => row.name))];
    if (names.length) waiting = setTimeout(() => choose({heads: names}), 150);
  });
}

async function drawAttention() {
  const head = heads[place.get(state.heads[0])];
  const known = shownModels().map(model => [model, model.sentences[state.sentence]])
    .filter(([, sentence]) => sentence && head.name in sentence.weights);
  byId("attention").hidden = !known.length;
  const first = known[0]?.[1];
  const alike = known.filter(([, {source, target}]) =>
    String([source, target]) === String([first.source, first.target]));
  byId("attention-caption").textContent = [
    known.length ? "Rows are queries, columns keys. In the decoder, a query is the last subword read."
      : "No attention is stored: the head was pruned, or no sentence was short enough.",
    ...known.filter(one => !alike.includes(one)).map(([{name}]) =>
      `${name} reads other subwords here: show it by itself.`),
  ].join(" ");
  if (!known.length) return;
  const {source, target} = first;
  const queries = head.kind === "enc_self" ? source : target;
  const keys = head.kind === "dec_self" ? target : source;
  const rows = alike.flatMap(([model, {weights}]) => weights[head.name].flatMap((line, query) =>
    line.map((weight, key) => ({model: model.name, query, key, from: queries[query],
      to: keys[key], weight: weight / 1000}))));
  const spec = fill(data.charts.attention, {queries, keys, title: head.label});
  const step = Math.floor((room("attention") / 2 - BESIDE) / keys.length);
  spec.columns = alike.length > 1 && step >= 14 ? 2 : 1;
  if (spec.columns > 1) spec.spec.width.step = Math.min(step, spec.spec.width.step);
  await show("attention", spec, "weights", rows);
}

async function drawHistory() {
  const i = place.get(state.heads[0]);
  const rows = shownModels().flatMap(model => model.histories.flatMap(({what, of, steps, values}) =>
    steps.map((step, s) => ({
      what, of: state.beside && of !== model.name ? `${of}, ${model.name}` : of,
      step, value: values[i][s],
    })))).filter(row => row.value !== null);
  byId("history").hidden = !rows.length;
  byId("history-caption").textContent = rows.length
    ? "Over the updates of training, or of fine-tuning with gates."
    : "Nothing of this head was measured over updates.";
  if (!rows.length) return;
  const spec = fill(data.charts.history, {title: heads[i].label});
  spec.spec.width = Math.min(520, room("history") - BESIDE);
  const {color} = spec.spec.encoding;
  if (new Set(rows.map(row => row.of)).size > color.scale.range.length) {
    Object.assign(color, {type: "ordinal", sort: null, scale: {scheme: "viridis"}});
  }
  await show("history", spec, "points", rows);
}

// ---- saving

function csv(rows) {
  const columns = Object.keys(rows[0] ?? {}).filter(name => !HIDDEN.includes(name));
  const cell = value => {
    const text = String(value ?? "");
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [columns, ...rows.map(row => columns.map(name => row[name]))];
  return lines.map(line => `${line.map(cell).join(",")}\n`).join("");
}

async function save(figure, form) {
  const texts = {csv: () => csv(tables[figure]), txt: () => `${state.heads.join("\n")}\n`};
  const href = form in texts ? URL.createObjectURL(new Blob([texts[form]()], {type: "text/plain"}))
    : await views[figure].toImageURL(form, form === "png" ? 2 : 1);
  make("a", {href, download: form === "txt" ? "mask.txt" : `atlas-${figure}.${form}`}).click();
}

function addButtons(bar) {
  const figure = bar.dataset.figure;
  const ofHeads = {csv: "CSV of all heads", txt: "mask.txt of the chosen heads"};
  for (const form of figure === "ranks" ? Object.keys(ofHeads) : ["svg", "png", "csv"]) {
    const textContent = figure === "ranks" ? ofHeads[form] : form.toUpperCase();
    const ariaLabel = `Save ${figure} as ${textContent}`;
    bar.append(make("button", {textContent, ariaLabel, onclick: () => save(figure, form)}));
  }
}
