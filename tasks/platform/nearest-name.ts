/**
 * Returns the known name that starts with `name`, or else the one with the smallest edit distance. Returns null if more
 * than a third of the letters differ.
 */
export function findNearestName(name: string, known: readonly string[]): string | null {
  const [best] = known
    .map((candidate) => ({ candidate, edits: candidate.startsWith(name) ? 0 : countEdits(name, candidate) }))
    .sort((a, b) => a.edits - b.edits)
  return best !== undefined && best.edits <= Math.max(1, name.length / 3) ? best.candidate : null
}

/** Returns the Levenshtein distance: insertions, deletions and replacements that turn one text into the other. */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1]
    for (let j = 0; j < to.length; j++)
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + Number(letter !== to[j])))
    row = next
  }
  return row[to.length]!
}
