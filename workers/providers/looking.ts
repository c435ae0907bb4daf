/** Words from the pixels of a page: by a model elsewhere, or by the reader on this machine. */
import type { PageResult } from '../../tasks/context.ts'
import {
  type Canvas,
  type Grey,
  isBlank,
  type PageImage,
  release,
  toGrey,
  toPng,
  Unreadable,
} from './images.ts'
import { transcribe } from './models.ts'
import type { OpenOptions } from './pages.ts'
import { tidy } from './texts.ts'
import { recognizeUpright } from './upright.ts'
import { VISION_MODEL } from './vision.ts'

// A model that is less sure than this of its words has looked at a photograph.
const LEAST_CONFIDENCE = 30

/** Only what is the document's own fault becomes a page; anything else is thrown on. */
export function unread(error: unknown): PageResult {
  if (!(error instanceof Unreadable)) throw error
  return { status: 'unread', method: 'none', model: null, detail: error.message, text: '', image: null }
}

/**
 * Reads `large`; `kept` is stored: a canvas (which may be `large`), or the size of what is drawn when somebody asks for
 * it. Encoding and reading run side by side, on other threads.
 */
export async function readPixels(
  large: Canvas,
  kept: Canvas | PageResult['image'],
  options: OpenOptions,
  isIncomplete = async () => false,
): Promise<PageResult> {
  const encoding = kept !== null && 'getContext' in kept ? toPng(kept).finally(() => release(kept)) : null
  const looking = look(large, encoding, options, isIncomplete).catch(unread)
  const [seen, encoded] = await Promise.allSettled([looking, encoding])
  release(large)
  if (seen.status === 'rejected') throw seen.reason
  if (encoded.status === 'rejected') throw encoded.reason
  return { ...seen.value, image: encoded.value ?? (kept as PageResult['image']) }
}

async function look(
  canvas: Canvas,
  encoding: Promise<PageImage> | null,
  options: OpenOptions,
  isIncomplete: () => Promise<boolean>,
): Promise<Omit<PageResult, 'image'>> {
  if (options.vision === 'none') {
    throw new Unreadable('There is no text layer, and no vision provider is set up to read the image')
  }
  const grey = toGrey(canvas)
  if (isBlank(grey)) {
    if (await isIncomplete())
      throw new Unreadable('The content of the page is damaged or too large to be drawn')
    return { status: 'read', method: 'vision', model: null, detail: null, text: '' }
  }
  const byModel = await askModel(encoding, options)
  if (byModel !== null) return byModel
  return readGrey(grey, options)
}

/** What the reader on this machine makes of a page that is not blank. Throws `Unreadable`. */
export async function readGrey(grey: Grey, { signal }: OpenOptions): Promise<Omit<PageResult, 'image'>> {
  const { text, confidence } = await recognizeUpright(grey, { signal })
  if (!/[\p{L}\p{N}]/u.test(text) || confidence < LEAST_CONFIDENCE) {
    throw new Unreadable('No words were found in the image of the page')
  }
  return { status: 'read', method: 'vision', model: VISION_MODEL, ...tidy(text.trimEnd()) }
}

// With what the local reader takes afterwards, if it must, less than the minute and a half after which a job has stalled.
const MODEL_MS = 45_000

/** What the model of an AI provider reads; null when there is none, or it fails, and the local reader has its turn. */
async function askModel(
  encoding: Promise<PageImage> | null,
  { vision, signal }: OpenOptions,
): Promise<Omit<PageResult, 'image'> | null> {
  if (typeof vision === 'string' || encoding === null) return null
  const { png } = await encoding
  try {
    const timeoutMs = Math.min(MODEL_MS, vision.timeoutSeconds * 1000)
    const { text, model } = await transcribe(vision, png, { signal, timeoutMs })
    if (!/[\p{L}\p{N}]/u.test(text)) return null
    return { status: 'read', method: 'vision', model, ...tidy(text.trimEnd()) }
  } catch {
    signal?.throwIfAborted()
    return null
  }
}
