/** Returns the median; NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Returns the smallest value that is at least as large as `share` of all values; NaN without values. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!
}

/** Divides our values by the reference's, round by round, which cancels drift of the machine. */
export function ratios(ours: readonly number[], reference: readonly number[]): number[] {
  return ours.slice(0, reference.length).map((value, round) => value / reference[round]!)
}

/** Rotates the items, so that each round begins with another one. */
export function rotate<T>(items: readonly T[], round: number): T[] {
  const start = items.length === 0 ? 0 : round % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

/**
 * Returns the area under the ROC curve: the probability that one of our values exceeds one of the other's, where ties
 * count half. It is the Mann-Whitney U divided by the number of pairs. NaN without pairs.
 */
export function areaUnderCurve(ours: readonly number[], other: readonly number[]): number {
  const all = [...ours.map((value) => ({ value, our: 1 })), ...other.map((value) => ({ value, our: 0 }))]
  all.sort((a, b) => a.value - b.value)
  let ranks = 0
  for (let from = 0, to = 0; from < all.length; from = to) {
    while (to < all.length && all[to]!.value === all[from]!.value) to++
    const rank = (from + 1 + to) / 2
    for (let i = from; i < to; i++) ranks += rank * all[i]!.our
  }
  return (ranks - (ours.length * (ours.length + 1)) / 2) / (ours.length * other.length)
}
