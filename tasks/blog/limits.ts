/** Maximum lengths of the texts of posts and tags, in characters. */
export const LIMITS = {
  title: 200,
  slug: 220,
  excerpt: 500,
  content: 1_000_000,
  author_name: 320,
  seo_title: 200,
  seo_description: 320,
  hero_image_url: 1024,
  tag_name: 80,
  tag_slug: 100,
  /** Maximum number of tags per post. */
  tags: 100,
} as const

/** True if a text has more than `max` characters, counted in code points as PostgreSQL does. */
export function exceedsLength(text: string, max: number): boolean {
  if (text.length <= max) return false
  if (text.length > 2 * max) return true
  let count = 0
  for (const _ of text) if (++count > max) return true
  return false
}

/** Truncates a text to at most `max` characters; a truncated text ends with an ellipsis. */
export function shorten(text: string, max: number): string {
  if (!exceedsLength(text, max)) return text
  const kept = Array.from(text.slice(0, 2 * max))
    .slice(0, max - 1)
    .join('')
  return `${kept.trimEnd()}…`
}
