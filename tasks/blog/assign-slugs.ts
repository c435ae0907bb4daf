import { LIMITS } from './limits.ts'
import { truncateSlug } from './slugs.ts'

/** A slug of an import. */
export interface ChosenSlug {
  readonly slug: string
  /** True if the post names the slug. False if its path, address or title does. */
  readonly isGiven: boolean
}

/**
 * Returns the slugs of an import, in its order. A derived slug that another post has gets the next free number. The slugs
 * depend on the import alone, so that the same file gets the same ones again.
 */
export function assignSlugs(chosen: readonly ChosenSlug[]): string[] {
  const reserved = new Set(chosen.map(({ slug }) => slug))
  const used = new Set(chosen.filter(({ isGiven }) => isGiven).map(({ slug }) => slug))
  const lastNumbers = new Map<string, number>()
  return chosen.map(({ slug, isGiven }) => {
    if (isGiven) return slug
    if (!used.has(slug)) {
      used.add(slug)
      return slug
    }
    for (let number = (lastNumbers.get(slug) ?? 1) + 1; ; number++) {
      const suffix = `-${number}`
      const next = truncateSlug(slug, LIMITS.slug - suffix.length) + suffix
      if (reserved.has(next) || used.has(next)) continue
      lastNumbers.set(slug, number)
      used.add(next)
      return next
    }
  })
}
