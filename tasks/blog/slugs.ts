import { createRequire } from 'node:module'
import { LIMITS } from './limits.ts'

const require = createRequire(import.meta.url)
const ASCII = /^\p{ASCII}*$/u

/** A text in ASCII. The transliteration tables, which take 90 ms of CPU, are loaded when first needed. */
function inAscii(text: string): string {
  if (ASCII.test(text)) return text
  return (require('transliteration') as typeof import('transliteration')).transliterate(text)
}

/** A text in any script as letters, digits and single hyphens; '' when nothing is left of it. */
export function slugify(text: string): string {
  const spelled = text
    .normalize('NFKC')
    // Distinguishes C, C++ and C#.
    .replace(/(?<=[\p{L}\p{N}+])\+/gu, ' plus ')
    .replace(/(?<=[\p{L}\p{N}])#/gu, ' sharp ')
    .replace(/&/g, ' and ')
  return inAscii(spelled)
    .toLowerCase()
    .replace(/['`’]/g, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** A slug cut to at most `max` characters, at the end of a word if possible. */
export function fitted(slug: string, max: number): string {
  if (slug.length <= max) return slug
  const cut = slug.slice(0, max)
  const end = slug[max] === '-' ? max : cut.lastIndexOf('-')
  return cut.slice(0, end > max / 2 ? end : max).replace(/-$/, '')
}

/** The slug of a title. */
export const slugOfTitle = (title: string): string => fitted(slugify(title), LIMITS.slug) || 'post'

/** The slug of a tag's name. */
export const slugOfTag = (name: string): string => fitted(slugify(name), LIMITS.tag_slug) || 'tag'
