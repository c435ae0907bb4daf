/** The middle value; the mean of the two middle ones for an even count. NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** The smallest value that at least this share of all values does not exceed; NaN for none. */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!
}

/** Our values divided by the reference's, round by round, which cancels drift of the machine. */
export function ratios(ours: readonly number[], reference: readonly number[]): number[] {
  return ours.slice(0, reference.length).map((value, round) => value / reference[round]!)
}

/** The items, with another one first in each round. */
export function rotate<T>(items: readonly T[], round: number): T[] {
  const start = items.length === 0 ? 0 : round % items.length
  return [...items.slice(start), ...items.slice(0, start)]
}

/**
 * The probability that one of our values exceeds one of the other's; ties count half. This is the area under the ROC curve
 * (Mann-Whitney U over the number of pairs). NaN without pairs.
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
