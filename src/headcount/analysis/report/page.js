// The page reads without this: contents fold on narrow screens, boxes that scroll say so, and
// folds open for printing.
const contents = document.getElementById("contents");
if (matchMedia("(max-width: 62rem)").matches) contents.open = false;
for (const box of document.querySelectorAll(".scroll")) {
  const wide = box.scrollWidth > box.clientWidth + 1;
  const long = box.scrollHeight > box.clientHeight + 1;
  if (!wide && !long) {
    box.removeAttribute("tabindex");
    continue;
  }
  const hint = document.createElement("p");
  hint.className = "hint";
  hint.textContent = "Scroll this box " + [wide ? "sideways →" : "", long ? "down ↓" : ""].filter(Boolean).join(" and ") + " for the rest.";
  box.before(hint);
}
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
});
