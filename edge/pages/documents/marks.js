// Marks the words of a search in texts. A search also finds other endings and accents, so marks compare beginnings
// without accents.

import { h } from '../parts/dom.js'

const WORD = /[\p{L}\p{M}]+|\p{N}+/gu
// Scripts without spaces, whose words no pattern separates.
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]/

/** Returns a text without case and accents. */
const fold = (text) => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()

/** Returns the folded words of a search, without those behind a minus sign. */
export function readWords(search) {
  const wanted = search.replace(/(^|\s)-("[^"]*"?|\S+)/gu, ' ')
  return [...new Set((wanted.match(WORD) ?? []).map(fold).filter((word) => word !== ''))]
}

// Endings differ by up to this many letters, in words that keep at least four.
const ENDING = 2
const MIN_STEM = 4

const stemOf = (word) => (/^\p{N}/u.test(word) ? word : word.slice(0, Math.max(Math.min(word.length, MIN_STEM), word.length - ENDING)))

/** Returns true if a word of a text matches a word of a search. */
function matches(word, sought) {
  return sought.some((one) => {
    if (UNSPACED.test(one)) return word.includes(one)
    if (word.startsWith(one)) return true
    return word.length <= one.length + ENDING && word.startsWith(stemOf(one))
  })
}

/** Returns the parts of a text as `[text, isMatch]` pairs. */
export function split(text, sought) {
  if (sought.length === 0) return [[text, false]]
  const parts = []
  let end = 0
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!matches(fold(word), sought)) continue
    if (index > end) parts.push([text.slice(end, index), false])
    parts.push([word, true])
    end = index + word.length
  }
  if (end < text.length) parts.push([text.slice(end), false])
  return parts
}

/** Returns a text as nodes, with the words of a search marked. */
export const mark = (text, sought) => split(text, sought).map(([part, isMatch]) => (isMatch ? h('mark', {}, part) : part))

/** Returns the number of words in a text that a search marks; 0 if one of its words is missing. */
export function countMarks(text, sought) {
  const found = new Set()
  let count = 0
  for (const [word] of text.matchAll(WORD)) {
    const folded = fold(word)
    if (!matches(folded, sought)) continue
    count++
    for (const one of sought) if (matches(folded, [one])) found.add(one)
  }
  return found.size === sought.length ? count : 0
}
