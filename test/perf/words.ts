/**
 * Counts the words of a reference and how many of them a text contains, including repetitions. A hyphen at the end of a
 * line joins words.
 */
export function countSharedWords(reference: string, text: string): { shared: number; all: number } {
  const ours = countWords(text)
  let shared = 0
  let all = 0
  for (const [word, count] of countWords(reference)) {
    all += count
    shared += Math.min(count, ours.get(word) ?? 0)
  }
  return { shared, all }
}

function countWords(text: string): Map<string, number> {
  const words = new Map<string, number>()
  const joined = text.normalize('NFKC').replace(/[-\u00ad\u2010]\n/g, '')
  for (const word of joined.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []) words.set(word, (words.get(word) ?? 0) + 1)
  return words
}
