/* Order of search results: pages first, then stubs of single names and pages of source code. */
var Scorer = {
  score: ([page, title, anchor, description, score]) => /^(generated|_modules)\//.test(page) ? score - 100 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
