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
