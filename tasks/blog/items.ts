/** The posts of an imported file. This parses untrusted content, so it only runs in a child process. */
import type { UploadFormat } from '../../sql/blog/transfer.ts'
import { fail } from '../../sql/errors.ts'
import { openZip, type ZipEntry, type ZipRules } from '../zip.ts'
import { isDeepJson } from './bounds.ts'
import { isMapping, splitFrontMatter, Unreadable } from './front-matter.ts'
import { interpret, type ReadPost } from './interpret.ts'
import { LIMITS } from './limits.ts'
import { placeOf } from './place.ts'
import { fitted, slugify } from './slugs.ts'
import { Keys } from './values.ts'

/** One post of an imported file. */
export interface Item {
  /** The file that contains it. */
  readonly file: string
  /** @throws Unreadable with the reason. */
  read(): Promise<ReadPost> | ReadPost
}

/** The result of reading an item: a post, or why there is none. */
export type ReadItem = ReadPost | { readonly slug: string | null; readonly message: string }

/** Reads one item. @throws fail('import.refused') when the whole file must be refused. */
export async function readItem(item: Item): Promise<ReadItem> {
  try {
    return await item.read()
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error
    return {
      slug: error.slug && fitted(error.slug, LIMITS.slug),
      message: error.message.slice(0, MESSAGE_CHARACTERS),
    }
  }
}

// Messages quote the content, which may be megabytes.
const MESSAGE_CHARACTERS = 500
// No blog has more posts, and each item has a cost, even an unreadable one.
const MAX_ITEMS = 100_000
// A post has at most a million characters of four bytes, plus front matter.
const MAX_BYTES = 5 * 1024 * 1024

const FOLDER: ZipRules = {
  refused: (reason, cause) => fail('import.refused', { reason }, { cause }),
  isText: true,
}

/** The posts of a file. @throws fail('import.refused' | 'import.encoding') when it does not match its format. */
export async function itemsOf(
  fileName: string,
  format: UploadFormat,
  bytes: Buffer,
): Promise<readonly Item[]> {
  if (format === 'zip') return (await openZip(bytes, FOLDER)).filter(({ path }) => isPost(path)).map(ofZip)
  const text = decoded(bytes)
  if (text === null) throw fail('import.encoding')
  if (format === 'markdown')
    return [{ file: fileName, read: () => named(fileName, async () => readMarkdown(fileName, text)) }]
  const list = listOf(text)
  if (list.length > MAX_ITEMS)
    throw fail('import.refused', { reason: `it holds more than ${MAX_ITEMS} posts` })
  return list.map((value, i) => ({ file: fileName, read: () => readExported(value, i + 1) }))
}

/** Excludes files that an operating system adds. */
const isPost = (path: string): boolean =>
  /(^|\/)[^/.][^/]*\.(md|markdown)$/i.test(path) && !path.startsWith('__MACOSX/')

const ofZip = (entry: ZipEntry): Item => ({
  file: entry.path,
  read: () => named(entry.path, async () => readMarkdown(entry.path, await textOfEntry(entry))),
})

async function textOfEntry(entry: ZipEntry): Promise<string> {
  const bytes = await entry.read(MAX_BYTES)
  if (bytes === null) throw new Unreadable('The file is larger than a post can be')
  if (bytes.subarray(0, 4).equals(Buffer.from('PK\x03\x04')))
    throw fail('import.refused', { reason: 'the archive contains another archive' })
  const text = decoded(bytes)
  if (text === null) throw new Unreadable('The file is not valid UTF-8')
  return text
}

/** An error in a post whose slug is not known yet is reported under the slug of its file. */
async function named(path: string, read: () => Promise<ReadPost>): Promise<ReadPost> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Unreadable) error.slug ??= slugify(placeOf(path).stem) || null
    throw error
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decoded(bytes: Buffer): string | null {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}

function readMarkdown(path: string, text: string): ReadPost {
  const { matter, body } = splitFrontMatter(text)
  return interpret(new Keys(matter), body, { ...placeOf(path), strict: false, defaultStatus: 'published' })
}

function listOf(text: string): readonly unknown[] {
  if (isDeepJson(text)) throw fail('import.refused', { reason: 'it is nested too deeply' })
  let value: unknown
  try {
    value = JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
  } catch (error) {
    throw fail('import.refused', { reason: 'it is not valid JSON' }, { cause: error })
  }
  if (!Array.isArray(value)) throw fail('import.refused', { reason: 'it is not a JSON array' })
  return value
}

const NOWHERE = { stem: '', date: undefined, inDrafts: false }

function readExported(value: unknown, number: number): ReadPost {
  try {
    if (!isMapping(value)) throw new Unreadable('it is not an object')
    const keys = new Keys(value)
    const content = keys.get('content') ?? ''
    if (typeof content !== 'string') throw new Unreadable('content: must be a string')
    return interpret(keys, content, { ...NOWHERE, strict: true, defaultStatus: 'draft' })
  } catch (error) {
    if (error instanceof Unreadable) error.message = `Item ${number}: ${error.message}`
    throw error
  }
}
