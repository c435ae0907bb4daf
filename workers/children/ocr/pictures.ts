/** Reads the words of pictures on pages that may also have text. */
import type { PageResult } from '../../../tasks/context.ts'
import { readCpuMs } from '../../../tasks/platform/process-usage.ts'
import { appendParagraphs, cleanText } from '../documents/texts.ts'
import type { GreyImage } from '../images/grey.ts'
import { isBlank, Unreadable } from '../images/images.ts'
import type { OpenOptions } from '../work.ts'
import { readGrey } from './ocr-page.ts'
import { modelOf } from './vision.ts'

/** A picture in a document. */
export interface Picture {
  /** Equal pictures have equal keys: a repeated one is read once. */
  readonly key: string
  /** Returns its grey levels; null if it is too small for words or cannot be decoded. */
  load(): Promise<GreyImage | null>
}

// CPU time for the pictures of one page in ms, below the child's limit for a page.
const MAX_PICTURES_CPU_MS = 20_000
// With less CPU time left than this, another picture is not worth starting.
const MIN_PICTURE_MS = 1000

/** Reads pictures of one document, each on the first page that shows it. */
export class PictureReader {
  readonly #options: OpenOptions
  readonly #pageOf = new Map<string, number>()

  constructor(options: OpenOptions) {
    this.#options = options
  }

  /** Returns the page with the words of its pictures behind its text. */
  async append(page: PageResult, pageNumber: number, pictures: readonly Picture[]): Promise<PageResult> {
    const end = readCpuMs() + MAX_PICTURES_CPU_MS
    const texts: string[] = []
    let skipped = 0
    for (const picture of pictures) {
      const first = this.#pageOf.get(picture.key) ?? pageNumber
      this.#pageOf.set(picture.key, first)
      if (first !== pageNumber) continue
      if (end - readCpuMs() < MIN_PICTURE_MS) skipped++
      else texts.push(await this.#read(picture, end - readCpuMs()))
    }
    const words = [...new Set(texts)].filter((text) => text !== '')
    const detail =
      skipped > 0
        ? `${skipped} of ${pictures.length} pictures were not read: they exceed the time limit`
        : null
    return addWords(page, words, modelOf(this.#options.languages ?? 'eng'), detail)
  }

  /** Returns the words of a picture; '' if it has none. */
  async #read(picture: Picture, limitMs: number): Promise<string> {
    try {
      const grey = await picture.load()
      if (grey === null || isBlank(grey)) return ''
      return (await readGrey(grey, this.#options, undefined, limitMs)).text.trim()
    } catch (error) {
      if (error instanceof Unreadable) return ''
      throw error
    }
  }
}

const ONLY_PICTURES_DETAIL = 'The page has only pictures, and no words were found in them'

function addWords(
  page: PageResult,
  words: readonly string[],
  model: string,
  detail: string | null,
): PageResult {
  const text = page.text.trim()
  if (words.length === 0)
    return { ...page, detail: detail ?? (text === '' ? ONLY_PICTURES_DETAIL : page.detail) }
  const cleaned = cleanText([...(text === '' ? [] : [page.text.trimEnd()]), ...words].join('\n\n'))
  return {
    ...page,
    method: text === '' ? 'vision' : page.method,
    model,
    text: cleaned.text,
    markdown: appendParagraphs(page.markdown ?? null, words),
    detail: cleaned.detail ?? detail ?? (text === '' ? null : page.detail),
  }
}
