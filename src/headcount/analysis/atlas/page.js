// Draws the specifications of page.yaml, and saves the drawings.

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
  const links = head.kind === "dec_enc" ? first?.links : undefined;
  byId("attention-caption").textContent = [
    known.length ? "Rows are queries, columns keys. In the decoder, a query is the last subword read."
      : "No attention is stored: the head was pruned, or no sentence was short enough.",
    links ? "After ›: the subword that it predicts. Frames: gold links of the predicted word." : "",
    ...known.filter(one => !alike.includes(one)).map(([{name}]) =>
      `${name} reads other subwords here: show it by itself.`),
  ].join(" ");
  if (!known.length) return;
  const {source, target} = first;
  const predicting = target.map((piece, i) => `${piece} › ${target[i + 1] ?? "</s>"}`);
  const queries = links ? predicting : head.kind === "enc_self" ? source : target;
  const linked = new Set((links ?? []).map(String));
  const keys = head.kind === "dec_self" ? target : source;
  const rows = alike.flatMap(([model, {weights}]) => weights[head.name].flatMap((line, query) =>
    line.map((weight, key) => ({model: model.name, query, key, from: queries[query],
      to: keys[key], weight: weight / 1000, link: Number(linked.has(`${query},${key}`))}))));
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

// The address of the page stores the choice of the reader, and all drawings follow from it.

const byId = id => document.getElementById(id);
const make = (tag, words) => Object.assign(document.createElement(tag), words);
const data = JSON.parse(byId("data").textContent), {heads, measures, models} = data;
const KINDS = {enc_self: "encoder self", dec_self: "decoder self", dec_enc: "encoder–decoder"};
const ROLE = {id: "role", title: "what it does", short: "what it does", unit: "by its labels",
  group: "What it attends to"};
const place = new Map(heads.map((head, i) => [head.name, i]));
let state;

const modelOf = id => models.find(model => model.id === id);
const measureOf = id => id === ROLE.id ? ROLE : measures.find(measure => measure.id === id);
const shownModels = () => [state.model, state.beside].filter(Boolean).map(modelOf);

// ---- the choice

function choices() {
  const model = modelOf(state.model);
  const numbers = measures.filter(({id}) => shownModels().some(item => id in item.values));
  const coloured = shownModels().some(item => item.roles) ? [...numbers, ROLE] : numbers;
  const listed = list => list.map(({id, short, name, group}) => [id, short ?? name, group]);
  const sentence = pieces => pieces.slice(0, -1).join(" ").replaceAll("@@ ", "");
  return {
    model: listed(models),
    beside: [["", "no other model"], ...listed(models.filter(item => item !== model))],
    colour: listed(coloured),
    x: listed(numbers),
    y: listed(numbers),
    sentence: model.sentences.map(({source}, i) => [String(i), `${i + 1}: ${sentence(source)}`]),
    head: heads.map(({name, kind}) => [name, name, KINDS[kind]]),
  };
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const unknown = [];
  state = {model: models[0].id, beside: ""};
  const take = (name, usual) => {
    const allowed = choices()[name].map(([id]) => id);
    const asked = given.get(name);
    if (asked && !allowed.includes(asked)) unknown.push(`${name} ${asked}`);
    state[name] = [asked, usual, allowed[0]].find(id => allowed.includes(id)) ?? "";
  };
  take("model");
  take("beside", "");
  take("colour", "importance");
  take("x", "importance");
  take("y", "confidence");
  take("sentence", "0");
  const asked = (given.get("heads") ?? "").split(",").filter(Boolean);
  unknown.push(...asked.filter(name => !place.has(name)).map(name => `head ${name}`));
  state.heads = asked.filter(name => place.has(name));
  if (!state.heads.length) state.heads = [largest(modelOf(state.model), state.x)];
  byId("status").textContent = unknown.length
    ? `The address has unknown names: ${unknown.join("; ")}.` : "";
}

function choose(changes) {
  const before = state;
  history.replaceState(null, "", `#${new URLSearchParams({...state, ...changes})}`);
  readAddress();
  draw(before);
}

function chooseHead(name, adding) {
  const rest = state.heads.filter(item => item !== name);
  const taken = rest.length && rest.length < state.heads.length;
  choose({heads: adding ? taken ? rest : [name, ...rest] : [name]});
}

// ---- numbers

function valuesOf(model, id) {
  return (id === ROLE.id ? model.roles?.class : model.values[id]) ?? heads.map(() => null);
}

function largest(model, id) {
  const values = valuesOf(model, id);
  const most = Math.max(...values.filter(value => value !== null));
  return (heads[values.indexOf(most)] ?? heads[0]).name;
}

function rank(model, id, i, among) {
  const values = valuesOf(model, id);
  const rivals = values.filter((value, j) => value !== null && among(heads[j]));
  return `${1 + rivals.filter(value => value > values[i]).length} of ${rivals.length}`;
}

const minus = number => number.replace(/-(?=\d)/g, "−");
const noteOf = (model, id, i) => minus(model.notes[id]?.[i] ?? "");
const withUnit = measure => [measure.title, `(${measure.unit})`];

function text(model, id, i) {
  const value = valuesOf(model, id)[i];
  if (value === null) return "not measured";
  if (id === ROLE.id) return model.roles.function[i] || "no label";
  return [minus(String(value)), noteOf(model, id, i)].filter(Boolean).join(", ");
}

function inCell(model, id, i) {
  const value = valuesOf(model, id)[i];
  if (value === null) return "";
  if (id === ROLE.id) return model.roles.function[i].replace(/, .*/, "…") || "–";
  const digits = Math.abs(value) >= 10 ? 0 : Math.abs(value) >= 1 ? 1 : 2;
  return minus(value.toFixed(digits)).replace(/^(−?)0\./, "$1.");
}

// ---- the page

function drawRanks() {
  const i = place.get(state.heads[0]);
  const sides = shownModels();
  const inLayer = ({kind, layer}) => kind === heads[i].kind && layer === heads[i].layer;
  const part = (tag, ...within) => { const made = make(tag); made.append(...within); return made; };
  const line = (...within) => part("tr", ...within);
  const top = (textContent, colSpan, scope) => make("th", {textContent, colSpan, scope});
  const cells = (model, {id}) => {
    if (valuesOf(model, id)[i] === null) return [make("td", {textContent: "–", colSpan: 3})];
    const value = make("td", {textContent: `${minus(String(valuesOf(model, id)[i]))} `});
    value.append(make("span", {className: "unit", textContent: noteOf(model, id, i)}));
    const ranks = [rank(model, id, i, () => true), rank(model, id, i, inLayer)];
    return [value, ...ranks.map(textContent => make("td", {className: "rank", textContent}))];
  };
  byId("head-title").textContent = heads[i].label;
  byId("role").textContent = sides.filter(model => valuesOf(model, ROLE.id)[i] !== null)
    .map(model => `${model.name}: ${text(model, ROLE.id, i)}`).join(" · ");
  byId("chosen").replaceChildren(...(state.heads.length > 1 ? state.heads : []).map((name, n) => {
    const rest = state.heads.filter(item => item !== name);
    const onclick = () => choose({heads: [name, ...rest]});
    return make("button", {textContent: name, ariaPressed: String(n === 0), onclick});
  }));
  const known = measures.filter(({id}) => sides.some(model => valuesOf(model, id)[i] !== null));
  const bodies = [...new Set(known.map(({group}) => group))].map(group => part("tbody",
    line(top(group, 1 + 3 * sides.length, "rowgroup")),
    ...known.filter(measure => measure.group === group).map(measure => {
      const name = make("th", {textContent: `${measure.short} `, scope: "row"});
      const unit = measure.short === measure.title ? measure.unit : "";
      name.append(make("span", {className: "unit", textContent: unit}));
      return line(name, ...sides.flatMap(model => cells(model, measure)));
    })));
  const columns = sides.flatMap(() => ["value", "rank", "in layer"]).map(name => top(name, 1, "col"));
  const names = sides.map(model => top(model.name, 3, "colgroup"));
  const lines = [line(top("measure", 1, "col"), ...columns)];
  if (state.beside) lines.unshift(line(make("td"), ...names));
  byId("ranks").replaceChildren(part("thead", ...lines), ...bodies);
  tables.ranks = sides.flatMap(model => measures.flatMap(({id, unit}) => heads.map((item, j) => ({
    ...item, model: model.name, measure: id, unit, value: valuesOf(model, id)[j],
    note: model.notes[id]?.[j] ?? "",
  })))).filter(row => row.value !== null);
}

function fillControls() {
  for (const [name, options] of Object.entries(choices())) {
    const chosen = name === "head" ? state.heads[0] : state[name];
    const made = options.map(([id, title]) => new Option(title, id, false, id === chosen));
    const groups = [...new Set(options.map(([, , group]) => group))].map(group => {
      const members = made.filter((_, n) => options[n][2] === group);
      if (!group) return members;
      const box = make("optgroup", {label: group});
      box.append(...members);
      return [box];
    });
    byId(name).replaceChildren(...groups.flat());
  }
  document.querySelector("main").className = state.beside ? "two" : "";
}

let turn = Promise.resolve();  // drawings wait for those before them

function draw(before) {
  const changed = (...names) => !before || names.some(name => before[name] !== state[name]);
  const another = !before || before.heads[0] !== state.heads[0];
  fillControls();
  drawRanks();
  turn = turn.catch(() => {}).then(async () => {  // the console shows a fault, and others go on
    if (changed("model", "beside", "colour")) await drawMaps();
    if (changed("model", "beside", "x", "y")) await drawScatter();
    for (const name of ["maps", "scatter"]) await views[name].signal("chosen", state.heads).runAsync();
    if (another || changed("model", "beside", "sentence")) await drawAttention();
    if (another || changed("model", "beside")) await drawHistory();
    document.body.dataset.drawn = location.hash;
  });
}

for (const name of ["model", "beside", "colour", "x", "y", "sentence"]) {
  byId(name).onchange = event => choose({[name]: event.target.value});
}
byId("head").onchange = event => choose({heads: [event.target.value]});
document.querySelectorAll(".save").forEach(addButtons);
const anew = () => { readAddress(); draw(); };
addEventListener("hashchange", anew);
let width = innerWidth;  // on a phone the height changes as one scrolls
addEventListener("resize", () => { if (width !== innerWidth) { width = innerWidth; anew(); } });
anew();
