// Loads each page into a frame of 400 and of 1280 px, and sends what is wrong with it. WORK is set by site_check.py.
const NARROW = 400, WIDE = 1280, CONTRAST = 4.5;

function pause(milliseconds) { return new Promise((done) => setTimeout(done, milliseconds)); }

function load(frame, address) {
  return new Promise((done) => { frame.onload = done; frame.src = address; });
}

function send(answer) {
  return fetch("/-answer-", { method: "POST", body: JSON.stringify(answer) });
}

function label(element) {
  const text = (element.textContent || element.getAttribute("src") || "").trim().replace(/\s+/g, " ").slice(0, 50);
  const kind = element.getAttribute("class");
  return `<${element.tagName.toLowerCase()}${kind ? ` class="${kind}"` : ""}> "${text}"`;
}

// Colours are "rgb(r, g, b)", "rgba(r, g, b, a)" or "color(srgb r g b / a)".
function colour(text) {
  const numbers = text.match(/[\d.]+(e-?\d+)?/g).map(Number);
  const scale = text.startsWith("color(") ? 255 : 1;
  return [numbers[0] * scale, numbers[1] * scale, numbers[2] * scale, numbers.length > 3 ? numbers[3] : 1];
}

function over(top, below) {
  return [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
}

// Relative luminance and contrast as in WCAG 2.1.
function luminance(rgb) {
  const [r, g, b] = rgb.map((value) => {
    const v = value / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function painted(element, view, cache) {
  // Colour behind an element, and the product of opacities down to it.
  if (!element) return { ground: [255, 255, 255], opacity: 1 };
  if (cache.has(element)) return cache.get(element);
  const above = painted(element.parentElement, view, cache);
  const style = view.getComputedStyle(element);
  const own = colour(style.backgroundColor);
  const result = { ground: own[3] ? over(own, above.ground) : above.ground, opacity: above.opacity * Number(style.opacity) };
  cache.set(element, result);
  return result;
}

function faint(page, theme) {
  const view = page.defaultView, cache = new Map(), seen = new Set(), found = [];
  page.body.dataset.theme = theme;
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    if (!walker.currentNode.data.trim()) continue;
    const element = walker.currentNode.parentElement;
    if (["SCRIPT", "STYLE", "NOSCRIPT", "TITLE"].includes(element.tagName)) continue;
    // Words of one kind in one block of code have one colour.
    const kind = element.closest("pre") ? `code ${element.className} ${element.closest("pre").parentElement.className}` : null;
    if (kind && seen.has(kind)) continue;
    if (kind) seen.add(kind);
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const { ground, opacity } = painted(element, view, cache);
    const ink = colour(view.getComputedStyle(element).color);
    const ratio = contrast(over([...ink.slice(0, 3), ink[3] * opacity], ground), ground);
    const key = `${ratio.toFixed(2)} ${element.className}`;
    if (ratio < CONTRAST && !seen.has(key)) {
      seen.add(key);
      found.push(`contrast ${ratio.toFixed(2)} in ${theme}: ${label(element)}`);
    }
  }
  return found;
}

function scrolls(element, end, view) {
  for (let place = element; place && place !== end; place = place.parentElement) {
    if (["auto", "scroll"].includes(view.getComputedStyle(place).overflowX)) return true;
  }
  return false;
}

function cut(page) {
  const view = page.defaultView, root = page.documentElement, found = [];
  if (root.scrollWidth > root.clientWidth) found.push(`scrolls sideways at ${view.innerWidth} px: ${root.scrollWidth} px wide`);
  const body = page.querySelector("article") || page.body;
  for (const element of body.querySelectorAll("*")) {
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.right <= root.clientWidth + 1 || scrolls(element, body, view)) continue;
    found.push(`cut at ${view.innerWidth} px: ${label(element)} ends at ${Math.round(box.right)} px`);
    if (found.length > 3) break;
  }
  return found;
}

function untitled(page) {
  if (page.location.pathname === "/search.html") return [];  // its title is written by the search
  const title = page.querySelector("h1");
  if (!title) return ["no title"];
  const top = title.getBoundingClientRect().top + page.defaultView.scrollY;
  return top > 150 ? [`the title begins only at ${Math.round(top)} px`] : [];
}

function unnamed(page) {
  return [...page.querySelectorAll("img")]
    .filter((image) => !(image.alt || "").trim() || /\.(svg|png|jpe?g)$/.test(image.alt))
    .map((image) => `image without alternative text: ${image.getAttribute("src")}`);
}

async function check(frame, name) {
  frame.style.width = `${NARROW}px`;
  await load(frame, `/${name}`);
  const page = frame.contentDocument;
  const still = page.createElement("style");
  still.textContent = "*, *::before, *::after { transition: none !important; animation: none !important; }";
  page.head.append(still);
  const findings = [...untitled(page), ...cut(page), ...unnamed(page)];
  frame.style.width = `${WIDE}px`;
  findings.push(...cut(page), ...faint(page, "light"), ...faint(page, "dark"));
  await send({ page: name, findings });
}

// Sphinx writes how many pages it found when a search is done. A loaded machine takes long, and a page whose index
// did not arrive is loaded again.
async function search(frame, word) {
  const text = (part) => (frame.contentDocument.querySelector(`#search-results ${part}`)?.textContent || "").trim();
  let round = 0;
  do {
    await load(frame, `/search.html?q=${encodeURIComponent(word)}`);
    for (let wait = 0; wait < 600 && !text(".search-summary"); wait++) await pause(100);
  } while (!text(".search-summary") && ++round < 5);
  if (!text(".search-summary")) throw new Error("the search did not end");
  const links = [...frame.contentDocument.querySelectorAll("#search-results ul.search > li > a")];
  const pages = links.map((link) => new URL(link.href).pathname.slice(1).replace(/\.html$/, ""));
  await send({ word, hits: [...new Set(pages)].slice(0, 10) });
}

(async function () {
  const frame = document.createElement("iframe");
  frame.style.height = "800px";
  document.body.append(frame);
  for (const name of WORK.pages) {
    try { await check(frame, name); } catch (error) { await send({ page: name, findings: [`check failed: ${error}`] }); }
  }
  for (const word of WORK.words) {
    try { await search(frame, word); } catch (error) { await send({ word, hits: [`${error}`] }); }
  }
})();
