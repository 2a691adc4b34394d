/* Order of search results: pages first, then stubs of single names and pages of source code. */
var Scorer = {
  /* Sphinx gives a page the score of its best word, so that several words leave ties: count the words in its title. */
  score: ([page, title, anchor, description, score]) => {
    if (/^(generated|_modules)\//.test(page)) return score - 100;
    if (page === "changelog") return score - 50;
    const words = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\s+/).filter((word) => word.length > 2);
    const place = `${title} ${page}`.toLowerCase();
    const base = /^(derivations|papers)\//.test(page) ? score - 1 : score;
    return words.length < 2 ? base : base + 3 * words.filter((word) => place.includes(word)).length;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
