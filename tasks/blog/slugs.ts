import { createRequire } from 'node:module'
import { LIMITS } from './limits.ts'

const require = createRequire(import.meta.url)
const ASCII = /^\p{ASCII}*$/u

/** Transliterates to ASCII. Loads the tables only when needed: they take 90 ms of CPU. */
function toAscii(text: string): string {
  if (ASCII.test(text)) return text
  return (require('transliteration') as typeof import('transliteration')).transliterate(text)
}

/** Converts a text in any script to ASCII letters, digits and single hyphens; the result may be empty. */
export function slugify(text: string): string {
  const spelledOut = text
    .normalize('NFKC')
    // Keeps C, C++ and C# apart.
    .replace(/(?<=[\p{L}\p{N}+])\+/gu, ' plus ')
    .replace(/(?<=[\p{L}\p{N}])#/gu, ' sharp ')
    .replace(/&/g, ' and ')
  return toAscii(spelledOut)
    .toLowerCase()
    .replace(/['`’]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** Truncates a slug to at most `max` characters, at the end of a word if possible. */
export function truncateSlug(slug: string, max: number): string {
  if (slug.length <= max) return slug
  const cut = slug.slice(0, max)
  const wordEnd = slug[max] === '-' ? max : cut.lastIndexOf('-')
  return cut.slice(0, wordEnd > max / 2 ? wordEnd : max).replace(/-$/, '')
}

/** Returns the slug for a title, never empty. */
export const slugifyTitle = (title: string): string => truncateSlug(slugify(title), LIMITS.slug) || 'post'

/** Returns the slug for a tag's name, never empty. */
export const slugifyTag = (name: string): string => truncateSlug(slugify(name), LIMITS.tag_slug) || 'tag'
