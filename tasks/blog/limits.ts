/** How long the texts of posts and tags may be, in characters. */
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
  /** Tags of one post. */
  tags: 100,
} as const

/** Whether a text has more than `most` characters, counted in code points as PostgreSQL does. */
export function isLonger(text: string, most: number): boolean {
  if (text.length <= most) return false
  if (text.length > 2 * most) return true
  let count = 0
  for (const _ of text) if (++count > most) return true
  return false
}

/** A text cut to at most `most` characters, ending with an ellipsis if it was too long. */
export function shortened(text: string, most: number): string {
  if (!isLonger(text, most)) return text
  const kept = Array.from(text.slice(0, 2 * most))
    .slice(0, most - 1)
    .join('')
  return `${kept.trimEnd()}…`
}
