/** Reads the posts of an imported file. Runs only in a child process, because it parses untrusted content. */
import type { UploadFormat } from '../../sql/blog/transfer.ts'
import { fail } from '../../sql/errors.ts'
import { openZip, type ZipEntry, type ZipRules } from '../formats/zip.ts'
import { isJsonNestedTooDeeply } from './bounds.ts'
import { isMapping, splitFrontMatter, UnreadablePostError } from './front-matter.ts'
import { type ForeignPost, listGhostPosts } from './ghost.ts'
import { interpretPost, type ParsedPost } from './interpret.ts'
import { LIMITS } from './limits.ts'
import { parsePostPath } from './post-path.ts'
import { explainNoPost, isRepositoryFile, PAGE_REASON, REPOSITORY_FILE_REASON } from './site-files.ts'
import { slugify, truncateSlug } from './slugs.ts'
import { FrontMatterKeys } from './values.ts'
import { listWordPressPosts } from './wordpress.ts'

/** One post of an imported file. */
export interface Item {
  /** Name of the file that contains the post. */
  readonly file: string
  /** Reads the post, or returns why the file is none. @throws UnreadablePostError if the post is invalid. */
  read(): Promise<ParsedPost | NoPost> | ParsedPost | NoPost
}

/** A file that makes no post. */
export interface NoPost {
  /** Null if unknown. */
  readonly slug: string | null
  readonly message: string
  /** True if the file is not a post, false if the post is invalid. */
  readonly isSkipped: boolean
}

export type ItemResult = ParsedPost | NoPost

/** Reads one item. @throws fail('import.refused') if the whole file must be rejected. */
export async function readItem(item: Item): Promise<ItemResult> {
  try {
    return await item.read()
  } catch (error) {
    if (!(error instanceof UnreadablePostError)) throw error
    return {
      slug: error.slug && truncateSlug(error.slug, LIMITS.slug),
      message: error.message.slice(0, MAX_MESSAGE_CHARACTERS),
      isSkipped: false,
    }
  }
}

// Maximum length of an error message, which might quote megabytes of content.
const MAX_MESSAGE_CHARACTERS = 500
// Rejects larger imports, because even an unreadable item takes time. No real blog has this many posts.
const MAX_ITEMS = 100_000
// A post has at most a million characters of up to four bytes, plus front matter.
const MAX_POST_BYTES = 5 * 1024 * 1024

const ZIP_RULES: ZipRules = {
  createError: (reason, cause) => fail('import.refused', { reason }, { cause }),
  isTextOnly: true,
}

/** Lists the posts of a file. @throws fail('import.refused' | 'import.encoding') if it does not match its format. */
export async function listItems(
  fileName: string,
  format: UploadFormat,
  bytes: Buffer,
): Promise<readonly Item[]> {
  if (format === 'zip') return (await openZip(bytes, ZIP_RULES)).map(toZipItem)
  const text = decodeUtf8(bytes)
  if (text === null) throw fail('import.encoding')
  if (format === 'markdown')
    return [
      {
        file: fileName,
        read: () => withFileSlug(fileName, async () => parseMarkdown(fileName, readFrontMatter(text))),
      },
    ]
  const reads = format === 'xml' ? listXmlPosts(text) : listJsonPosts(parseJson(text))
  if (reads.length > MAX_ITEMS)
    throw fail('import.refused', { reason: `it contains more than ${MAX_ITEMS} posts` })
  return reads.map((read, i) => ({ file: fileName, read: () => readNumbered(i + 1, read) }))
}

const skip = (message: string): NoPost => ({ slug: null, message, isSkipped: true })

function toZipItem(entry: ZipEntry): Item {
  const { path } = entry
  const reason = explainNoPost(path)
  if (reason !== null) return { file: path, read: () => skip(reason) }
  const read = async (): Promise<ParsedPost | NoPost> => {
    const file = readFrontMatter(await readEntryText(entry))
    const isSkipped = isRepositoryFile(path) && !isOwnExport(file.keys)
    return isSkipped ? skip(REPOSITORY_FILE_REASON) : parseMarkdown(path, file)
  }
  return { file: path, read: () => withFileSlug(path, read) }
}

/** True for the front matter that this blog exports. */
const isOwnExport = (keys: FrontMatterKeys): boolean =>
  ['slug', 'status', 'createdat', 'tagslugs'].every((name) => keys.get(name) !== undefined)

async function readEntryText(entry: ZipEntry): Promise<string> {
  const bytes = await entry.read(MAX_POST_BYTES)
  if (bytes === null) throw new UnreadablePostError('The file exceeds the size limit for a post')
  if (bytes.subarray(0, 4).equals(Buffer.from('PK\x03\x04')))
    throw fail('import.refused', { reason: 'the archive contains another archive' })
  const text = decodeUtf8(bytes)
  if (text === null) throw new UnreadablePostError('The file is not valid UTF-8')
  return text
}

/** Runs `read`. If it throws an error without a slug, adds the slug of the file. */
async function withFileSlug<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof UnreadablePostError) error.slug ??= slugify(parsePostPath(path).stem) || null
    throw error
  }
}

const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeUtf8(bytes: Buffer): string | null {
  try {
    return utf8Decoder.decode(bytes)
  } catch {
    return null
  }
}

interface MarkdownFile {
  readonly keys: FrontMatterKeys
  readonly body: string
  readonly isDoubtful: boolean
}

function readFrontMatter(text: string): MarkdownFile {
  const { frontMatter, ...file } = splitFrontMatter(text)
  return { ...file, keys: new FrontMatterKeys(frontMatter) }
}

const parseMarkdown = (path: string, { keys, body, isDoubtful }: MarkdownFile): ParsedPost =>
  interpretPost(keys, body, {
    ...parsePostPath(path),
    strict: false,
    defaultStatus: isDoubtful ? 'draft' : 'published',
  })

function parseJson(text: string): unknown {
  if (isJsonNestedTooDeeply(text)) throw fail('import.refused', { reason: 'it is nested too deeply' })
  try {
    return JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
  } catch (error) {
    throw fail('import.refused', { reason: 'it is not valid JSON' }, { cause: error })
  }
}

/** Lists the posts of this blog's own export, or of Ghost's. @throws fail('import.refused') for other JSON. */
function listJsonPosts(value: unknown): readonly (() => ParsedPost | NoPost)[] {
  if (Array.isArray(value)) return value.map((one) => () => parseExportedPost(one))
  const posts = listGhostPosts(value)
  if (posts === null) throw fail('import.refused', { reason: 'it is not a JSON array' })
  return posts.map((post) => () => parseForeignPost(post))
}

const EMPTY_PATH = { stem: '', date: undefined, inDrafts: false }

/** Lists the posts of an export of WordPress. @throws fail('import.refused') for other XML. */
function listXmlPosts(text: string): readonly (() => ParsedPost | NoPost)[] {
  const posts = listWordPressPosts(text)
  if (posts === null) throw fail('import.refused', { reason: 'it is not an export of WordPress' })
  return posts.map((post) => () => parseForeignPost(post))
}

/** Reads a post. If it is invalid, its number is part of the message. */
function readNumbered(number: number, read: () => ParsedPost | NoPost): ParsedPost | NoPost {
  try {
    const result = read()
    return 'post' in result ? result : { ...result, message: `Item ${number}: ${result.message}` }
  } catch (error) {
    if (error instanceof UnreadablePostError) error.message = `Item ${number}: ${error.message}`
    throw error
  }
}

function parseExportedPost(value: unknown): ParsedPost {
  if (!isMapping(value)) throw new UnreadablePostError('it is not an object')
  const keys = new FrontMatterKeys(value)
  const content = keys.get('content') ?? ''
  if (typeof content !== 'string') throw new UnreadablePostError('content: must be a string')
  return interpretPost(keys, content, { ...EMPTY_PATH, strict: true, defaultStatus: 'draft' })
}

function parseForeignPost({ keys, content, isPost }: ForeignPost): ParsedPost | NoPost {
  if (!isPost) return skip(PAGE_REASON)
  return interpretPost(new FrontMatterKeys(keys), content, {
    ...EMPTY_PATH,
    strict: false,
    defaultStatus: 'draft',
  })
}
