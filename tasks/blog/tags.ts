import type { NeededTag } from '../../sql/blog/transfer.ts'
import { isMapping, UnreadablePostError } from './front-matter.ts'
import { exceedsLength, LIMITS, shorten } from './limits.ts'
import { slugifyTag } from './slugs.ts'
import { assertStorable, collectTexts, FrontMatterKeys, toText } from './values.ts'

// Keys of lists, of which a text is split.
const LIST_KEYS = [
  'tags',
  'categories',
  'taxonomies.tags',
  'taxonomies.categories',
  'taxonomy.tag',
  'taxonomy.category',
]
// A text under these keys is one name, as in Jekyll, unless it has commas.
const SINGLE_KEYS = ['tag', 'category', 'maintag', 'primarytag']
const NAME_KEYS = ['name', 'title', 'label', 'slug']

/**
 * Collects the tags of a post, and its categories. Strict sources must obey the limits; from others, names are shortened
 * and the first tags are taken.
 *
 * @throws UnreadablePostError if a tag is invalid.
 */
export function parseTags(keys: FrontMatterKeys, isStrict: boolean): NeededTag[] {
  const found = new Map<string, NeededTag>()
  const add = (tag: NeededTag): void => void (found.has(tag.slug) || found.set(tag.slug, tag))
  for (const name of [...LIST_KEYS, ...SINGLE_KEYS])
    for (const tag of listTags(keys.get(name), SINGLE_KEYS.includes(name))) {
      if (isStrict && exceedsLength(tag.name, LIMITS.tag_name))
        throw new UnreadablePostError(`${name}: each must have at most ${LIMITS.tag_name} characters`)
      assertStorable(name, tag.name)
      add({ slug: tag.slug, name: shorten(tag.name, LIMITS.tag_name) })
    }
  for (const slug of collectTexts(keys.get('tagslugs')))
    add({ slug: slugifyTag(slug), name: slug.slice(0, LIMITS.tag_name) })
  if (isStrict && found.size > LIMITS.tags)
    throw new UnreadablePostError(`tags: must have at most ${LIMITS.tags} entries`)
  return [...found.values()].slice(0, LIMITS.tags)
}

function listTags(value: unknown, isSingle: boolean): NeededTag[] {
  if (Array.isArray(value)) return value.flatMap((item) => (isMapping(item) ? toTags(item) : nameTags(item)))
  if (isMapping(value)) return toTags(value)
  return typeof value === 'string' ? splitText(value, isSingle).map(nameTag) : nameTags(value)
}

const nameTag = (name: string): NeededTag => ({ slug: slugifyTag(name), name })
const nameTags = (value: unknown): NeededTag[] => collectTexts(value, ...NAME_KEYS).map(nameTag)

/** Returns the tag of a mapping, such as `{ name, slug }` of an export. */
function toTags(value: Readonly<Record<string, unknown>>): NeededTag[] {
  const keys = new FrontMatterKeys(value)
  const [name] = collectTexts(value, ...NAME_KEYS)
  if (name === undefined) return []
  const own = keys.get('name')
  const slug = toText(keys.get('slug'))
  // The name of an export is kept as it is, white space included.
  return [{ slug: slugifyTag(slug || name), name: typeof own === 'string' && own !== '' ? own : name }]
}

/** Splits a list at commas or line feeds; if it has neither, at white space, unless it is a single name. */
const splitText = (text: string, isSingle: boolean): string[] =>
  text
    .split(isSingle || /[,\n]/.test(text) ? /[,\n]/ : /\s+/)
    .map((item) => item.trim())
    .filter(Boolean)
